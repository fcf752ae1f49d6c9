import { statSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";

/** The folder below `folder` that keeps the journals of one node. */
export const folderOf = (folder: string, node: string): string => join(folder, node.replace(/[^\w-]/g, "_"));

/** Whether there may be journals of a node below `folder`. If the folder cannot be read, opening it says why. */
export function mayHaveJournals(folder: string, node: string): boolean {
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
