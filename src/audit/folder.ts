import { join } from "node:path";

/** The folder below `folder` that keeps the jobs of one node. */
export const folderOf = (folder: string, node: string): string => join(folder, node.replace(/[^\w-]/g, "_"));
