import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { exists } from "../src/audit/lock.js";

/**
 * Takes a folder for this process until it ends. `share` adds a child that uses the folder, too, and may outlive this process.
 * The lock is a file with their IDs, so it no longer counts once they have all ended, however they ended.
 */
export function lockFolder(folder: string): { share: (pid: number | undefined) => void } {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, "start.pid");
  const take = () => writeFileSync(file, `${process.pid}\n`, { flag: "wx" });
  try {
    take();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    const user = readFileSync(file, "utf8")
      .split("\n")
      .map(Number)
      .find((pid) => pid > 0 && exists(pid));
    if (user !== undefined)
      throw new Error(
        `The folder ${folder} is in use by process ${user}, probably another "npm start". Stop that process first. If it is something else, delete ${file}.`,
      );
    rmSync(file);
    take();
  }
  process.once("exit", () => rmSync(file, { force: true }));
  return { share: (pid) => writeFileSync(file, `${pid}\n`, { flag: "a" }) };
}
