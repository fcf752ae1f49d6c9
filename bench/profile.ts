import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { contenders } from "./contenders.js";
import { startInstance } from "./instance.js";
import { startNginx, startNode } from "./servers.js";

/** `node dist/bench/profile.js`: where the processor's time goes with 32 messages in flight, by package and by file. */
const { values: options } = parseArgs({
  options: {
    name: { type: "string", default: "seo-report-list" },
    requests: { type: "string", default: "40000" },
    top: { type: "string", default: "40" },
  },
});
const { name } = options;
const IN_FLIGHT = 32;

/** What a file belongs to: a package, Node itself, or a file of ours. */
function owner(url: string): string {
  const [, ours] = /\/dist\/((?:src|nodes|bench)\/.*)$/.exec(url) ?? [];
  if (ours) return ours;
  const packages = [...url.matchAll(/\/node_modules\/((?:@[^/]+\/)?[^/]+)/g)];
  return packages.at(-1)?.[1] ?? (url === "" ? "V8" : "Node");
}

const folder = mkdtempSync(join(tmpdir(), "seo-bench-"));
const server = (await startNginx(folder)) ?? (await startNode());
const instance = startInstance();
try {
  const flow = contenders[name]?.flow(server.origin) ?? [];
  await instance.do("boot", { userDir: instance.userDir, flow });
  const span = { warm: 0, ms: 0, requests: Number(options.requests) };
  const input = { name, origin: server.origin, inFlight: IN_FLIGHT, span };
  await instance.do("measure", { ...input, span: { ...span, requests: 8000 } });
  const { figures, profile } = await instance.do("profile", input);
  const reports = fileURLToPath(new URL("../../reports/", import.meta.url));
  mkdirSync(reports, { recursive: true });
  const file = join(reports, `${name.replace(/\W+/g, "-")}.cpuprofile`);
  writeFileSync(file, JSON.stringify(profile));
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const files = new Map<string, number>();
  const functions = new Map<string, number>();
  let busy = 0;
  for (const [index, id] of (profile.samples ?? []).entries()) {
    const { functionName, url, lineNumber } = nodes.get(id)?.callFrame ?? { functionName: "", url: "", lineNumber: 0 };
    const time = profile.timeDeltas?.[index] ?? 0;
    if (functionName === "(idle)") continue;
    busy += time;
    const whose = functionName.startsWith("(") ? functionName : owner(url);
    const place = functionName.startsWith("(")
      ? functionName
      : `${functionName || "(anonymous)"} ${url.split("/").at(-1)}:${lineNumber + 1} ${owner(url)}`;
    files.set(whose, (files.get(whose) ?? 0) + time);
    functions.set(place, (functions.get(place) ?? 0) + time);
  }
  const print = (title: string, times: Map<string, number>) => {
    console.log(`\n${title}`);
    for (const [place, time] of [...times].sort(([, a], [, b]) => b - a).slice(0, Number(options.top))) {
      const share = time / busy;
      console.log(
        `${(share * 100).toFixed(1).padStart(5)} % ${(share * figures.cpu).toFixed(2).padStart(7)} µs  ${place}`,
      );
    }
  };
  console.log(`${name}: ${figures.cpu.toFixed(1)} µs of processor time per request; the profile is ${file}`);
  print("By owner", files);
  print("By function", functions);
} finally {
  await instance.stop();
  server.stop();
  rmSync(folder, { recursive: true });
}
