import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { documents } from "./documents.js";
import { root } from "./nodered.js";

/** `npm run docs`: writes what the documents take from the code. */
for (const [path, text] of Object.entries(documents())) writeFileSync(join(root, path), text);
