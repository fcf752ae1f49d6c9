import { open } from "node:fs/promises";
import { isObject, type Json } from "../json.js";
import { damaged } from "./trouble.js";

/** A line of a file. */
export interface Line {
  path: string;
  text: string;
  /** From 1. */
  number: number;
  /** Where it begins, in bytes. */
  offset: number;
}

/** So much of a file is read or written at a time. */
export const CHUNK = 256 * 1024;
const NEWLINE = 10;

/**
 * Reads a file's lines, a chunk at a time, until `take` returns false. What follows the last newline was not written
 * completely, and is no line. Returns where it begins.
 */
export async function readLines(path: string, take: (line: Line) => unknown): Promise<number> {
  const file = await open(path, "r");
  try {
    let rest = Buffer.alloc(0);
    let offset = 0;
    let number = 0;
    for (;;) {
      const chunk = await file.read(Buffer.allocUnsafe(CHUNK), 0, CHUNK, offset + rest.length);
      if (chunk.bytesRead === 0) return offset;
      const data = Buffer.concat([rest, chunk.buffer.subarray(0, chunk.bytesRead)]);
      let start = 0;
      for (let end = data.indexOf(NEWLINE); end >= 0; end = data.indexOf(NEWLINE, start)) {
        number++;
        const more = take({ path, text: data.toString("utf8", start, end), number, offset: offset + start });
        if (more === false) return offset + start;
        start = end + 1;
      }
      offset += start;
      rest = data.subarray(start);
    }
  } finally {
    await file.close();
  }
}

/** The JSON object in a line. Throws if the line is damaged. */
export function parseLine({ path, text, number }: Line): Json {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // What is no JSON is no object either.
  }
  if (isObject(value)) return value;
  throw damaged(path, number, "the line is damaged");
}
