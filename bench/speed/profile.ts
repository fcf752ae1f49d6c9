import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "../../dev/nodered.js";
import { contenders } from "./contenders.js";
import { startInstance } from "./instance.js";
import { startNginx, startNode } from "./servers.js";

/** `node dist/bench/speed/profile.js`: the processor time with 32 messages in flight, by package and by function. */
const { values: options } = parseArgs({
  options: {
    name: { type: "string", default: "seo-report-list" },
    requests: { type: "string", default: "40000" },
    top: { type: "string", default: "40" },
  },
});
const { name } = options;

/** The package that a file belongs to, Node, or a file of ours. */
function owner(url: string): string {
  const [, ours] = /\/dist\/((?:src|nodes|bench)\/.*)$/.exec(url) ?? [];
  const packages = [...url.matchAll(/\/node_modules\/((?:@[^/]+\/)?[^/]+)/g)];
  return ours ?? packages.at(-1)?.[1] ?? (url === "" ? "V8" : "Node");
}

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

  const frames = new Map(profile.nodes.map(({ id, callFrame }) => [id, callFrame]));
  const byOwner: Record<string, number> = {};
  const byFunction: Record<string, number> = {};
  let busy = 0;
  for (const [index, id] of (profile.samples ?? []).entries()) {
    const { functionName = "", url = "", lineNumber = 0 } = frames.get(id) ?? {};
    const time = profile.timeDeltas?.[index] ?? 0;
    if (functionName === "(idle)") continue;
    busy += time;
    const native = functionName.startsWith("(");
    const place = `${functionName || "(anonymous)"} ${url.split("/").at(-1)}:${lineNumber + 1} ${owner(url)}`;
    const add = (times: Record<string, number>, key: string) => {
      times[key] = (times[key] ?? 0) + time;
    };
    add(byOwner, native ? functionName : owner(url));
    add(byFunction, native ? functionName : place);
  }
  console.log(`${name}: ${figures.cpu.toFixed(1)} µs of processor time per request. Profile: ${file}`);
  for (const [title, times] of Object.entries({ "By owner": byOwner, "By function": byFunction })) {
    console.log(`\n${title}`);
    const sorted = Object.entries(times).sort(([, a], [, b]) => b - a);
    for (const [place, time] of sorted.slice(0, Number(options.top))) {
      const share = time / busy;
      const microseconds = (share * figures.cpu).toFixed(2).padStart(7);
      console.log(`${(share * 100).toFixed(1).padStart(5)}% ${microseconds} µs  ${place}`);
    }
  }
} finally {
  await instance.stop();
  stop();
  rmSync(folder, { recursive: true });
}
