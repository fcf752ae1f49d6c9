import { writeSync } from "node:fs";
import { answer, listen } from "./faulty.js";

/** A process of its own that can be killed: answers every request soon, and writes each down first. */
const { url } = await listen((socket, { body }) => {
  writeSync(1, `${body}\n`);
  setTimeout(() => socket.write(answer(201, '{"data":{"id":7}}')), 5);
});
writeSync(1, `${url}\n`);
