import { type FileHandle, open } from "node:fs/promises";
import { cancelled } from "../errors.js";
import { fromDisk } from "./trouble.js";

interface Waiting {
  line: string;
  synced: boolean;
  resolve(): void;
  reject(cause: unknown): void;
}

/** An append-only file of JSON lines. */
export interface Log {
  /**
   * Resolves when the record is on disk; with `synced` false, when it is written. Records that come while others are being
   * written share the next sync. If it rejects, nothing that follows is damaged.
   */
  append(record: object, synced?: boolean): Promise<void>;
  /** Waits for what was appended. */
  close(): Promise<void>;
}

/** Opens a log behind its first `size` bytes, and removes what follows them: a line that was not written completely. */
export async function openLog(path: string, size: number): Promise<Log> {
  const file: FileHandle = await open(path, "r+");
  let pending: Waiting[] = [];
  let writing: Promise<void> | undefined;
  let end = size;
  /** What is behind the end is to be removed first. */
  let torn = true;
  let closed = false;

  async function write(entries: Waiting[]): Promise<void> {
    if (torn) {
      await file.truncate(end);
      await file.datasync();
    }
    torn = true;
    const data = Buffer.from(entries.map(({ line }) => line).join(""));
    for (let done = 0; done < data.length; )
      done += (await file.write(data, done, data.length - done, end + done)).bytesWritten;
    if (entries.some(({ synced }) => synced)) await file.datasync();
    end += data.length;
    torn = false;
  }

  async function writeAll(): Promise<void> {
    await Promise.resolve();
    while (pending.length > 0) {
      const entries = pending;
      pending = [];
      try {
        await write(entries);
        for (const { resolve } of entries) resolve();
      } catch (cause) {
        for (const { reject } of entries) reject(fromDisk(cause, path));
      }
    }
    writing = undefined;
  }

  return {
    append(record, synced = true) {
      return new Promise((resolve, reject) => {
        if (closed) return reject(cancelled);
        pending.push({ line: `${JSON.stringify(record)}\n`, synced, resolve, reject });
        writing ??= writeAll();
      });
    },

    async close() {
      closed = true;
      await writing;
      await file.close();
    },
  };
}
