import { mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createBatch, type Keeper } from "./batch.js";
import { moveFolder, removeFolder, syncFolder } from "./folder.js";
import { createLedger, type Entry } from "./ledger.js";
import { parseLine, readLines } from "./lines.js";
import { type FileList, readList, readRow, type Settings, writeList } from "./list.js";
import { type Log, openLog } from "./log.js";
import { createPages } from "./pages.js";
import type { Row } from "./rows.js";
import type { Batch } from "./store.js";
import { damaged, fromDisk } from "./trouble.js";

const LOG = "log.jsonl";
/** Ends the name of the folder of a batch that has finished. */
export const FINISHED = ".finished";
const LIST = /^pages-(\d+)\.jsonl$/;
export const listName = (number: number) => `pages-${number}.jsonl`;

/** Writes a batch's folder under another name, and then gives it its own. */
export async function writeBatch(folder: string, name: string, settings: Settings, rows: Iterable<Row>): Promise<void> {
  const draft = `${folder}.new`;
  try {
    await mkdir(draft, { mode: 0o700 });
    await writeList(join(draft, listName(1)), { batch: name, ...settings, first: 0 }, rows);
    const log = await open(join(draft, LOG), "wx", 0o600);
    await log.sync().finally(() => log.close());
    await syncFolder(draft);
    await rename(draft, folder);
    await syncFolder(dirname(folder));
  } catch (cause) {
    await rm(draft, { recursive: true }).catch(() => {});
    throw fromDisk(cause, folder);
  }
}

/**
 * Opens a batch in a folder: lists of pages, which are never changed, and a log of what was done. Rejects if they are damaged.
 * `left` is called when the batch was removed, or has finished.
 */
export async function openBatch(folder: string, left: (finished: boolean) => void): Promise<Batch> {
  const pages = createPages();
  const ledger = createLedger(pages);
  const lists: FileList[] = [];
  const reports: string[] = [];
  const logPath = join(folder, LOG);

  async function addList(path: string): Promise<void> {
    const list = await readList(path, (key, offset, valid) => {
      if (!valid && pages.find(key) === undefined) ledger.reject();
      pages.add(key, offset);
    });
    const [{ batch, first }, end] = [list, lists.at(-1)?.end ?? 0];
    if (first !== end || batch !== (lists[0] ?? list).batch) throw damaged(path, 1, "the list does not belong here");
    lists.push(list);
  }

  async function load(): Promise<Log> {
    const names = await readdir(folder);
    const numbers = names.flatMap((name) => LIST.exec(name)?.[1] ?? []).map(Number);
    for (const number of numbers.sort((a, b) => a - b)) await addList(join(folder, listName(number)));
    if (lists.length === 0) throw damaged(join(folder, listName(1)), 1, "the list is missing");
    if (!names.includes(LOG)) throw damaged(logPath, 1, "the file is missing");
    const size = await readLines(logPath, (line) => {
      const entry = parseLine(line);
      if ("ended" in entry && typeof entry.report === "string") reports.push(entry.report);
      try {
        ledger.apply(entry as unknown as Entry);
      } catch (error) {
        throw damaged(logPath, line.number, (error as Error).message);
      }
    });
    for (const name of names) if (name.endsWith(".new")) await rm(join(folder, name));
    return openLog(logPath, size);
  }

  const log = await load();
  const { batch: name } = lists[0] as FileList;

  async function input(row: number): Promise<{ input: unknown; error?: string }> {
    const list = lists.findLast(({ first }) => first <= row) as FileList;
    const end = row + 1 < list.end ? pages.offset(row + 1) : list.size;
    return readRow(list.path, pages.offset(row), end).catch((cause) => {
      throw fromDisk(cause, list.path);
    });
  }

  const keeper: Keeper = {
    name,
    lists,
    append: log.append,
    input,

    async join(settings, rows) {
      const path = join(folder, listName(lists.length + 1));
      const draft = `${path}.new`;
      const first = pages.count();
      function* added() {
        for (const row of rows) if (pages.find(row.key) === undefined) yield row;
      }
      try {
        const count = await writeList(draft, { batch: name, ...settings, first }, added());
        if (count > 0) {
          await rename(draft, path);
          await syncFolder(folder);
          await addList(path);
        } else await rm(draft);
        return count;
      } catch (cause) {
        await rm(draft).catch(() => {});
        throw fromDisk(cause, path);
      }
    },
    async finish() {
      await log.close();
      await moveFolder(folder, `${folder}${FINISHED}`);
      left(true);
    },
    async remove() {
      await log.close();
      await removeFolder(folder);
      left(false);
    },
    close: log.close,
  };
  return createBatch(keeper, pages, ledger, reports);
}
