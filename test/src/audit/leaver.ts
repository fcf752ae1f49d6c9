import { createShared } from "../../../src/audit/shared/shared.js";
import { LEASE } from "../../support/fleet.js";
import { createBench, createFake, urls } from "./fake.js";

/** A process of its own that audits pages, and closes its audit when its input ends. Then nothing is left to keep it alive. */
const place = { url: String(process.argv[2]), prefix: "leaver" };
const { open } = createShared(place, { node: "node", service: "service", rate: 6000 }, LEASE);
const { audit, add } = createBench("", createFake({ latency: 50 }), { open });
await add(urls(200));
process.stdin.resume().once("end", () => void audit.close());
process.stdout.write("ready");
