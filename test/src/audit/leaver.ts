import { createShared } from "../../../src/audit/shared/shared.js";
import { LEASE } from "../../support/servers.js";
import { createBench, createFake, inQueue, urls } from "./fake.js";

/** A process of its own that audits pages, and closes its audit when its input ends. Then nothing is left to keep it alive. */
const shared = createShared({ url: String(process.argv[2]), prefix: "leaver" }, { lease: LEASE });
const { audit, add } = createBench("", createFake({ latency: 50 }), { create: inQueue(shared) });
await add(urls(200));
process.stdin.resume().once("end", () => void audit.close());
process.stdout.write("ready");
