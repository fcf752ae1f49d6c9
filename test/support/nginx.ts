import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../dev/nodered.js";
import { startProgram } from "./program.js";

/** Starts nginx with the configuration of a server. */
export async function startNginx(server: string) {
  const folder = mkdtempSync(join(tmpdir(), "seo-nginx-"));
  const port = await freePort();
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  const file = join(folder, "nginx.conf");
  writeFileSync(
    file,
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
  const command = ["nginx", "-p", folder, "-c", file, "-e", join(folder, "error.log")];
  const nginx = await startProgram(command, port, "There is no nginx.");
  return (
    nginx && {
      url: `http://127.0.0.1:${port}`,
      async close(): Promise<void> {
        await nginx.close();
        rmSync(folder, { recursive: true });
      },
    }
  );
}
