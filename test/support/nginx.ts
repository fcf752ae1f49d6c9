import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { freePort } from "../../dev/nodered.js";

/** Starts nginx with the configuration of a server. Without nginx: an error in CI, elsewhere one line and undefined. */
export async function startNginx(server: string) {
  const folder = mkdtempSync(join(tmpdir(), "seo-nginx-"));
  const port = await freePort(0);
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  writeFileSync(
    join(folder, "nginx.conf"),
    `daemon off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log;
events {}
http {
  access_log off; ${paths.join(" ")}
  server {
    listen 127.0.0.1:${port};
    ${server}
  }
}
`,
  );
  const child = spawn("nginx", ["-p", folder, "-c", join(folder, "nginx.conf"), "-e", join(folder, "error.log")], {
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` },
    stdio: "ignore",
  });
  let hasEnded = false;
  const ended = once(child, "exit")
    .catch(() => {})
    .then(() => {
      hasEnded = true;
    });
  const accepts = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => resolve(true)).on("error", () => resolve(false));
      socket.on("connect", () => socket.destroy());
    });
  while (!(await accepts())) {
    if (hasEnded) {
      const hint = "There is no nginx.";
      if (process.env.CI) throw new Error(hint);
      console.log(`      ${hint}`);
      return undefined;
    }
    await setTimeout(20);
  }
  return {
    url: `http://127.0.0.1:${port}`,
    async close(): Promise<void> {
      child.kill("SIGTERM");
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}
