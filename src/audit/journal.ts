import { type FileHandle, open } from "node:fs/promises";
import { createGroups } from "../turns.js";
import type { Journal } from "./batch.js";
import type { Entry } from "./entries.js";
import { damaged, fromDisk } from "./trouble.js";

type File = Pick<Journal, "append" | "close">;

/** So much of a file is read at a time. */
const CHUNK = 256 * 1024;
const NEWLINE = 10;

/** Reads a file's lines. Returns where what follows the last newline begins: it was not written completely. */
async function readLines(file: FileHandle, onLine: (line: string, number: number) => void): Promise<number> {
  let rest = Buffer.alloc(0);
  let offset = 0;
  for (let number = 1; ; ) {
    const chunk = await file.read(Buffer.allocUnsafe(CHUNK), 0, CHUNK, offset + rest.length);
    if (chunk.bytesRead === 0) return offset;
    const data = Buffer.concat([rest, chunk.buffer.subarray(0, chunk.bytesRead)]);
    let start = 0;
    for (let end = data.indexOf(NEWLINE); end >= 0; end = data.indexOf(NEWLINE, start)) {
      onLine(data.toString("utf8", start, end), number++);
      start = end + 1;
    }
    offset += start;
    rest = data.subarray(start);
  }
}

const FINISHED = `\n${JSON.stringify({ type: "finished" } satisfies Entry)}\n`;

/**
 * Reads the first and the last entry of a journal: its name, and whether it has finished, which is not read before msg.retry.
 * Undefined if the first one is damaged.
 */
export async function readEnds(path: string): Promise<{ name: string; size: number; finished: boolean } | undefined> {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    const end = await file.read(Buffer.alloc(FINISHED.length), 0, FINISHED.length, Math.max(0, size - FINISHED.length));
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(CHUNK), 0, CHUNK, 0);
    const begin = buffer.subarray(0, bytesRead);
    const first = Object(JSON.parse(begin.toString("utf8", 0, begin.indexOf(NEWLINE))));
    const finished = end.buffer.toString() === FINISHED;
    return first.type === "batch" ? { name: String(first.name), size, finished } : undefined;
  } catch (cause) {
    // Reading the journal says what is wrong.
    if (cause instanceof SyntaxError) return undefined;
    throw fromDisk(cause, path);
  } finally {
    await file.close();
  }
}

/**
 * Appends JSON lines behind the first `size` bytes of a file, once what follows them is removed. Entries that come while others are
 * written share the next sync. If one is rejected, nothing that follows is damaged. `check` rejects if the file is another process's.
 */
function createFile(path: string, file: FileHandle, size: number, check: () => Promise<void>): File {
  let end = size;
  /** Bytes behind the end are to be removed first. */
  let torn = true;

  const groups = createGroups(async (group: { line: string; synced: boolean }[]) => {
    try {
      // A process that was frozen would overwrite what its successor has written.
      await check();
      if (torn) {
        await file.truncate(end);
        await file.datasync();
      }
      torn = true;
      const data = Buffer.from(group.map(({ line }) => line).join(""));
      for (let done = 0; done < data.length; )
        done += (await file.write(data, done, data.length - done, end + done)).bytesWritten;
      if (group.some(({ synced }) => synced)) await file.datasync();
      end += data.length;
      torn = false;
    } catch (cause) {
      throw fromDisk(cause, path);
    }
  });

  return {
    append: (entry, synced = true) => groups.add({ line: `${JSON.stringify(entry)}\n`, synced }),

    async close() {
      await groups.close();
      await file.close();
    },
  };
}

/** Opens a journal. `onEntry` gets its entries, and throws what is wrong with one. Rejects with a Trouble. */
export async function openFile(
  path: string,
  isNew: boolean,
  onEntry: (entry: Entry) => void,
  check = async () => {},
): Promise<File> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, isNew ? "wx+" : "r+", 0o600);
    const size = await readLines(file, (line, number) => {
      try {
        onEntry(JSON.parse(line));
      } catch (cause) {
        const isJson = !(cause instanceof SyntaxError);
        throw damaged(path, number, isJson ? (cause as Error).message : "the line is damaged");
      }
    });
    return createFile(path, file, size, check);
  } catch (cause) {
    await file?.close();
    throw fromDisk(cause, path);
  }
}
