import { spawn } from "node:child_process";
import { once } from "node:events";
import { freePort } from "../../dev/nodered.js";

export interface Broker {
  url: string;
  stop(): Promise<void>;
}

/** Starts a local Mosquitto. Without one: an error in CI, elsewhere one line and undefined. */
export async function startBroker(): Promise<Broker | undefined> {
  const port = await freePort();
  const child = spawn("mosquitto", ["-v", "-p", String(port)], { stdio: ["ignore", "ignore", "pipe"] });
  const ended = once(child, "exit").catch(() => {});
  const running = await new Promise<boolean>((resolve) => {
    child.once("error", () => resolve(false));
    child.once("exit", () => resolve(false));
    child.stderr.on("data", (chunk: Buffer) => {
      if (chunk.includes("running")) resolve(true);
    });
  });
  if (!running) {
    const hint = "There is no Mosquitto, so the flows that need a broker are not tested.";
    if (process.env.CI) throw new Error(hint);
    console.log(`      ${hint}`);
    return undefined;
  }
  return {
    url: `mqtt://127.0.0.1:${port}`,
    async stop() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}
