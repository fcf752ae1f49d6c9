import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize, sep } from "node:path";
import { root } from "./nodered.js";

/** The imports of each file of some folders from them, by path from the root, without the ending. */
export function importsOf(folders: string[]): Map<string, Set<string>> {
  const files = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts") && !file.endsWith(".d.ts"))
      .map((file) => join(folder, file)),
  );
  const name = (path: string) =>
    normalize(path)
      .replaceAll(sep, "/")
      .replace(/\.[jt]s$/, "");
  const known = new Set(files.map(name));
  const targets = (file: string) =>
    [...readFileSync(join(root, file), "utf8").matchAll(/(?:\bfrom|\bimport\(?) ?"(\.[^"]+)"/g)].map(([, path = ""]) =>
      name(join(dirname(file), path)),
    );
  return new Map(files.map((file) => [name(file), new Set(targets(file).filter((target) => known.has(target)))]));
}

/** The graph in which every file of a subfolder stands for that folder: `src/http/proxy` is `src/http/`. */
export function byFolder(graph: Map<string, Set<string>>): Map<string, Set<string>> {
  const room = (file: string) => {
    const [top, folder, inside] = file.split("/");
    return inside === undefined ? file : `${top}/${folder}/`;
  };
  const rooms = new Map<string, Set<string>>();
  for (const [file, targets] of graph) {
    const all = rooms.get(room(file)) ?? new Set();
    rooms.set(room(file), all);
    for (const target of targets) if (room(target) !== room(file)) all.add(room(target));
  }
  return rooms;
}

/** Everything that can be reached from a file by its imports. */
export function reachable(graph: Map<string, Set<string>>, from: string, seen = new Set<string>()): Set<string> {
  for (const target of graph.get(from) ?? []) {
    if (seen.has(target)) continue;
    seen.add(target);
    reachable(graph, target, seen);
  }
  return seen;
}

/** A Mermaid chart of the imports. An import that others imply is left out: of a → b → c and a → c only the first two are drawn. */
export function chart(graph: Map<string, Set<string>>): string {
  const direct = (from: string) => {
    const targets = [...(graph.get(from) ?? [])];
    return targets.filter((one) => !targets.some((other) => other !== one && reachable(graph, other).has(one))).sort();
  };
  const id = (file: string) => file.replace(/\W+/g, "_");
  const names = [...graph.keys()].sort();
  const tops = [...new Set(names.map((file) => file.split("/")[0]))];
  const boxes = tops.flatMap((top) => [
    `  subgraph ${top}["${top}/"]`,
    ...names
      .filter((file) => file.startsWith(`${top}/`))
      .map((file) => `    ${id(file)}["${file.slice(`${top}/`.length)}"]`),
    "  end",
  ]);
  const arrows = names
    .filter((from) => direct(from).length > 0)
    .map((from) => `  ${id(from)} --> ${direct(from).map(id).join(" & ")}`);
  return ["```mermaid", "flowchart TD", ...boxes, ...arrows, "```"].join("\n");
}
