import { mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createDelivery } from "./delivery.js";
import { moveFolder, removeFolder, syncFolder } from "./folder.js";
import { createLedger, type Entry, readingsOf } from "./ledger.js";
import { parseLine, readLines } from "./lines.js";
import { type FileList, readList, readRow, type Settings, writeList } from "./list.js";
import { type Log, openLog } from "./log.js";
import { createPages } from "./pages.js";
import { type Row, urlOf } from "./rows.js";
import type { Batch, Plan } from "./store.js";
import { NOBODY } from "./streaks.js";
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
export async function openBatch(
  folder: string,
  left: (finished: boolean) => void,
): Promise<Batch & { close(): Promise<void> }> {
  const pages = createPages();
  const ledger = createLedger(pages);
  const lists: FileList[] = [];
  const plans = new Map<number, Plan>();
  const reports: string[] = [];
  const logPath = join(folder, LOG);
  let planEnd = 0;

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
  ledger.restore();
  const earlier = new Set(ledger.ended.keys());
  /** Its rows had been told before it was opened. An invalid one that is left ends at once. */
  let wasOver = pages.counts.sent === 0 && !ledger.has("new", pages.count());
  // If a note is lost, the row is told again.
  const delivery = createDelivery((row) => void log.append({ row, told: true }, false).catch(() => {}));

  /** Nothing counts before it is on disk. */
  async function write(entry: Entry): Promise<void> {
    await log.append(entry);
    ledger.apply(entry);
  }

  const listOf = (row: number) => lists.findLast(({ first }) => first <= row) as FileList;

  async function input(row: number): Promise<{ input: unknown; error?: string }> {
    const list = listOf(row);
    const end = row + 1 < list.end ? pages.offset(row + 1) : list.size;
    return readRow(list.path, pages.offset(row), end).catch((cause) => {
      throw fromDisk(cause, list.path);
    });
  }

  const name = (lists[0] as FileList).batch;

  return {
    name,
    reports,
    ...readingsOf(ledger),
    streak: () => ledger.streakOf(NOBODY),

    async take(which) {
      const page = which === "begun" ? ledger.takeBegun() : ledger.takeNew(planEnd);
      if (page === undefined) return undefined;
      try {
        return {
          page,
          url: urlOf((await input(page)).input),
          settings: listOf(page),
          request: ledger.requestOf(page, plans.get(page)),
          ended: ledger.ended.get(page),
          repeated: earlier.has(page),
        };
      } catch (cause) {
        ledger.release(page);
        throw cause;
      }
    },
    takeInvalid: async () => ledger.takeRejected(),
    release: ledger.release,

    sent: (page, sent) => write({ row: page, at: new Date().toISOString(), ...sent }),
    ended(page, ended) {
      wasOver = false;
      earlier.delete(page);
      return write({ row: page, ...ended });
    },
    input,
    told(row) {
      ledger.apply({ row, told: true });
      delivery.add(row);
    },
    async again(again) {
      await Promise.all(again.map((row) => write({ row, again: true })));
    },
    letGo: () => write({ letGo: true }),

    async unplanned() {
      for (const list of lists) {
        if (list.end <= planEnd) continue;
        const count = list.existing === "create" ? 0 : ledger.countNew(list);
        if (count > 0) return { list, pages: count };
        planEnd = list.end;
      }
      return undefined;
    },
    plan(page, plan) {
      plans.set(page, plan);
    },
    async planned(list) {
      planEnd = list.end;
    },

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
    pause: (paused) => write({ paused }),
    async retry() {
      const before = ledger.failed();
      if (before === 0) return 0;
      delivery.flush();
      await write({ retry: true });
      return before - ledger.failed();
    },
    reset: () => write({ reset: true }),
    last: async () => ({ repeated: wasOver }),
    async finish() {
      await delivery.settled();
      await log.close();
      await moveFolder(folder, `${folder}${FINISHED}`);
      left(true);
    },
    async remove() {
      await delivery.settled();
      await log.close();
      await removeFolder(folder);
      left(false);
    },
    close() {
      delivery.close();
      return log.close();
    },
  };
}
