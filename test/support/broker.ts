import { spawn } from "node:child_process";
import { once } from "node:events";
import { freePort } from "../../sandbox/nodered.js";

export interface Broker {
  url: string;
  stop(): Promise<void>;
}

/** Starts a Mosquitto of this machine's own; nothing where none is installed. */
export async function startBroker(): Promise<Broker | undefined> {
  const port = await freePort(18_830);
  const child = spawn("mosquitto", ["-v", "-p", String(port)], { stdio: ["ignore", "ignore", "pipe"] });
  const ended = once(child, "exit").catch(() => {});
  const running = await new Promise<boolean>((resolve) => {
    child.once("error", () => resolve(false));
    child.once("exit", () => resolve(false));
    child.stderr.on("data", (chunk: Buffer) => {
      if (chunk.includes("running")) resolve(true);
    });
  });
  if (!running) return undefined;
  return {
    url: `mqtt://127.0.0.1:${port}`,
    async stop() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}
