import { fork, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { freePort } from "../../nodered.js";
import { page, path } from "./service.js";

/** A server in its own process. */
export interface Server {
  name: string;
  origin: string;
  stop(): void;
}

/** Keeps a process, and all that it starts, on one processor, if there are two and the system can. */
export function pin(pid: number | undefined, processor: 0 | 1): void {
  if (cpus().length > 1) spawnSync("taskset", ["-a", "-p", "-c", String(processor), String(pid)]);
}

/** Starts service.ts. */
export async function startNode(): Promise<Server> {
  const child = fork(new URL("service.js", import.meta.url));
  pin(child.pid, 1);
  const [port] = (await once(child, "message")) as [number];
  return { name: "Node's http", origin: `http://127.0.0.1:${port}`, stop: () => child.connected && child.disconnect() };
}

const config = (port: number) => `
daemon off; worker_processes 1; ${cpus().length > 1 ? "worker_cpu_affinity 10;" : ""} pid nginx.pid; error_log stderr crit;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 1000000000; default_type application/json;
  server { listen 127.0.0.1:${port} backlog=4096; location = ${path} { return 200 '${page(1, 1, 10)}'; } }
}`;

/** Serves one page with the system's nginx, which needs less of the machine than what is measured; undefined without it. */
export async function startNginx(folder: string): Promise<Server | undefined> {
  if (spawnSync("nginx", ["-v"]).error) return undefined;
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  writeFileSync(join(folder, "nginx.conf"), config(port));
  const child = spawn("nginx", ["-p", folder, "-c", "nginx.conf", "-e", "stderr"], { stdio: "inherit" });
  while (!(await fetch(origin + path).catch(() => undefined))?.ok) {
    if (child.exitCode !== null) throw new Error("nginx did not start.");
    await setTimeout(20);
  }
  return { name: "nginx", origin, stop: () => child.kill() };
}
