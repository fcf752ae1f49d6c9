import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "../../nodered.js";
import { contenders } from "./contenders.js";
import { startInstance } from "./instance.js";
import { divide } from "./owners.js";
import { startNginx, startNode } from "./servers.js";

/** `node dist/dev/bench/speed/profile.js`: the processor time with 32 messages in flight, by package and by function. */
const { values: options } = parseArgs({
  options: {
    name: { type: "string", default: "seo-report-list" },
    requests: { type: "string", default: "40000" },
    top: { type: "string", default: "40" },
  },
});
const { name } = options;

const folder = mkdtempSync(join(tmpdir(), "seo-bench-"));
const { origin, stop } = (await startNginx(folder)) ?? (await startNode());
const instance = startInstance();
try {
  await instance.run("boot", { userDir: instance.userDir, flow: contenders[name]?.flow(origin) ?? [] });
  const input = (requests: number) => ({ name, origin, inFlight: 32, span: { warm: 0, ms: 0, requests } });
  await instance.run("measure", input(8000));
  const { figures, profile } = await instance.run("profile", input(Number(options.requests)));
  const file = join(root, "reports", `${name.replace(/\W+/g, "-")}.cpuprofile`);
  mkdirSync(join(root, "reports"), { recursive: true });
  writeFileSync(file, JSON.stringify(profile));

  const { owners, functions } = divide(profile, figures.cpu);
  console.log(`${name}: ${figures.cpu.toFixed(1)} µs of processor time per request. Profile: ${file}`);
  for (const [title, times] of Object.entries({ "By owner": owners, "By function": functions })) {
    console.log(`\n${title}`);
    const sorted = Object.entries(times).sort(([, a], [, b]) => b - a);
    for (const [place, time] of sorted.slice(0, Number(options.top)))
      console.log(`${time.toFixed(2).padStart(7)} µs  ${place}`);
  }
} finally {
  await instance.stop();
  stop();
  rmSync(folder, { recursive: true });
}
