import { statSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fromDisk } from "./trouble.js";

/** The folder below `folder` that keeps the jobs of one node. */
export const folderOf = (folder: string, node: string): string => join(folder, node.replace(/[^\w-]/g, "_"));

/** Whether there may be jobs of a node below `folder`. If the folder cannot be read, opening it says why. */
export function mayHaveJobs(folder: string, node: string): boolean {
  try {
    statSync(folderOf(folder, node));
    return true;
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code !== "ENOENT";
  }
}

/** A new entry of a folder is on disk only when the folder is. Windows cannot sync folders, and does not need it. */
export async function syncFolder(path: string): Promise<void> {
  if (process.platform === "win32") return;
  const folder = await open(path, "r");
  await folder.sync().finally(() => folder.close());
}

/** Renames a folder, which may have been renamed already. */
export async function moveFolder(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
    await syncFolder(dirname(to));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ENOENT") throw fromDisk(cause, from);
  }
}

/** Removes a folder. Once its new name is on disk, it is no batch any more. */
export async function removeFolder(path: string): Promise<void> {
  const removed = `${path}.removed`;
  await moveFolder(path, removed);
  await rm(removed, { recursive: true, force: true }).catch((cause) => {
    throw fromDisk(cause, path);
  });
}
