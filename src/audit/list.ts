import { open } from "node:fs/promises";
import type { Existing } from "../existing.js";
import type { Json } from "../json.js";
import { CHUNK, type Line, parseLine, readLines } from "./lines.js";
import { keyOf, type Row } from "./rows.js";
import { damaged } from "./trouble.js";

/** What is done with the pages of a list. */
export interface Settings {
  existing: Existing;
  /** In days. */
  maxAge?: number | undefined;
  privacy?: string | undefined;
}

/** The first line of a list's file. The rows follow, and a last line that counts them. */
export interface Header extends Settings {
  batch: string;
  /** The index of its first row. */
  first: number;
}

/** A list of a batch. Its rows are those from `first` to before `end`. */
export interface List extends Settings {
  first: number;
  end: number;
}

/** A list in a file. */
export interface FileList extends List, Header {
  path: string;
  /** Where its last line begins. */
  size: number;
}

/** Writes a list to a new file, and syncs it. Returns the number of rows. */
export async function writeList(path: string, header: Header, rows: Iterable<Row>): Promise<number> {
  const file = await open(path, "wx", 0o600);
  try {
    let text = `${JSON.stringify(header)}\n`;
    let count = 0;
    for (const row of rows) {
      text += `${row.text}\n`;
      count++;
      if (text.length < CHUNK) continue;
      await file.appendFile(text);
      text = "";
    }
    await file.appendFile(`${text}${JSON.stringify({ rows: count })}\n`);
    await file.sync();
    return count;
  } finally {
    await file.close();
  }
}

function headerIn(line: Line): Header {
  const json = parseLine(line);
  if (typeof json.batch !== "string" || typeof json.first !== "number")
    throw damaged(line.path, line.number, "the line does not say which batch this is");
  return json as unknown as Header;
}

/** The name of the batch of a list's file. Throws if its first line is damaged. */
export async function readName(path: string): Promise<string | undefined> {
  let name: string | undefined;
  await readLines(path, (line) => {
    name = headerIn(line).batch;
    return false;
  });
  return name;
}

/** Reads a list's file. `take` gets each row. Throws if the file is damaged. */
export async function readList(
  path: string,
  take: (key: string, offset: number, valid: boolean) => void,
): Promise<FileList> {
  let header: Header | undefined;
  let count = 0;
  let end: Json | undefined;
  let size = 0;
  await readLines(path, (line) => {
    if (end) throw damaged(path, line.number, "the list goes on after its end");
    if (!header) {
      header = headerIn(line);
      return;
    }
    const json = parseLine(line);
    if ("rows" in json) {
      end = json;
      size = line.offset;
    } else {
      if (!("input" in json)) throw damaged(path, line.number, "the line is no row");
      take(keyOf(json), line.offset, json.error === undefined);
      count++;
    }
  });
  if (!header || end?.rows !== count) throw damaged(path, count + 2, "the list is not complete");
  return { ...header, path, end: header.first + count, size };
}

/** Reads one row of a list again: its bytes from `start` to before `end`. */
export async function readRow(path: string, start: number, end: number): Promise<{ input: unknown; error?: string }> {
  const file = await open(path, "r");
  try {
    const { buffer } = await file.read(Buffer.alloc(end - start), 0, end - start, start);
    return JSON.parse(buffer.toString());
  } finally {
    await file.close();
  }
}
