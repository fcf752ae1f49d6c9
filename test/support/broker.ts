import { spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
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

/** A relay between an instance and the broker that can lose the broker's packets and then the connection. */
export async function startRelay(broker: string) {
  const clients = new Set<Socket>();
  let deaf = false;
  const server = createServer((client) => {
    const upstream = connect(Number(new URL(broker).port), "127.0.0.1");
    clients.add(client);
    client.on("close", () => clients.delete(client) && upstream.destroy()).on("error", () => {});
    upstream.on("close", () => client.destroy()).on("error", () => {});
    client.pipe(upstream);
    upstream.on("data", (chunk) => deaf || client.write(chunk));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = () => {
    for (const client of clients) client.destroy();
    deaf = false;
  };
  return {
    url: `mqtt://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Discards everything from the broker until `cut`. */
    deafen: () => {
      deaf = true;
    },
    cut,
    stop() {
      server.close();
      cut();
    },
  };
}
