import { type ChildProcess, fork, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { freePort } from "../dev/nodered.js";
import { page, path } from "./page.js";

/** A server in a process of its own. */
export interface Server {
  name: string;
  origin: string;
  stop(): void;
}

/** The stand-in of service.ts. */
export async function startNode(): Promise<Server> {
  const child = fork(new URL("service.js", import.meta.url));
  const [port] = (await once(child, "message")) as [number];
  return { name: "Node's http", origin: `http://127.0.0.1:${port}`, stop: () => child.disconnect() };
}

const config = (port: number, body: string) => `
daemon off; worker_processes 1; pid nginx.pid; error_log stderr crit;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 1000000000; default_type application/json;
  server { listen 127.0.0.1:${port} backlog=4096; location = ${path} { return 200 '${body}'; } }
}`;

async function listening(origin: string, child: ChildProcess): Promise<void> {
  while (child.exitCode === null) {
    const answer = await fetch(origin + path).catch(() => undefined);
    if (answer?.ok) return;
    await setTimeout(20);
  }
  throw new Error("nginx did not start.");
}

/** One page of a list by the system's nginx, which takes less of the machine than what is measured; undefined without it. */
export async function startNginx(folder: string): Promise<Server | undefined> {
  if (spawnSync("nginx", ["-v"]).error) return undefined;
  const port = await freePort(0);
  writeFileSync(join(folder, "nginx.conf"), config(port, page(1, 1, 10)));
  const child = spawn("nginx", ["-p", folder, "-c", "nginx.conf", "-e", "stderr"], { stdio: "inherit" });
  const origin = `http://127.0.0.1:${port}`;
  await listening(origin, child);
  return { name: "nginx", origin, stop: () => child.kill() };
}
