import { execFileSync, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { closeAfterEach, openFolder } from "../../support/opened.js";

const script = (name: string) => fileURLToPath(new URL(`${name}.js`, import.meta.url));
/** Mounts a file system of 1 MB that only one process and its children see. */
const mount = (folder: string) => ["-rm", "sh", "-c", `mount -t tmpfs -o size=1m audit '${folder}' && exec "$0" "$@"`];
const canMount = spawnSync("unshare", ["-rm", "true"]).status === 0;

describe("an audit whose disk cannot be used", () => {
  let folder: string;
  const open = closeAfterEach();

  beforeEach(async () => {
    folder = (await open(openFolder())).path;
  });

  const run = (command: string, ...parameters: string[]) =>
    execFileSync(command, parameters, { stdio: ["ignore", "inherit", "inherit"] });

  it("sends nothing while files cannot grow, reports one error, and continues by itself", () => {
    run(process.execPath, script("full"), folder, "limit");
  });

  if (canMount) {
    it("sends nothing while the disk is full, reports one error, and continues by itself", () => {
      run("unshare", ...mount(folder), process.execPath, script("full"), folder, "tmpfs");
    });

    it("begins once a read-only folder can be written, also after a redeploy", () => {
      run("unshare", ...mount(folder), process.execPath, script("readonly"), folder);
    });
  }
});
