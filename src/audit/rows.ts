import { allowedPage, isPage, pageKey } from "../address.js";
import { invalidParams, type SeoError } from "../errors.js";
import { isObject, type Json } from "../json.js";
import { type Operation, operations } from "../operations.js";
import { validateInput } from "../schema.js";

/** One row of a list of pages: plain data. */
export interface Row {
  /** As it was given, but without a password; of an invalid row, its long values are cut. */
  input: unknown;
  /** Why it cannot be audited, if it cannot. */
  error?: string;
}

/** Characters of an invalid row that are kept, and of each of its values if it is longer. */
const LONGEST_INVALID = 2000;
const LONGEST_VALUE = 200;
const storeRow = operations["seo-report-store"] as Operation;

const isNamed = (column: string, name: string) => column.trim().toLowerCase() === name;

/** Without a password, and without the byte order mark that some programs put before the first name. ` URL` means `url`. */
const toInput = (row: Json): Json =>
  Object.fromEntries(
    Object.entries(row)
      .filter(([name]) => !isNamed(name, "password"))
      .map(([name, value]) => [
        row.url === undefined && isNamed(name, "url") ? "url" : name.replace(/^\uFEFF/, ""),
        value,
      ]),
  );

/** The URL in the input of a valid row. */
export const urlOf = (input: unknown): string => String(isObject(input) ? input.url : input).trim();

/** Equal for rows that mean the same page. No page's key begins with a space. */
export const rowKey = ({ input, error }: Row): string =>
  error === undefined ? pageKey(urlOf(input)) : ` ${JSON.stringify(input)}`;

function show(value: unknown): string {
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? "an array" : "an object";
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

function withoutUrl(row: object): string {
  const names = Object.keys(row).join(", ");
  return `an object without url${names && `; it has ${show(names)}`}`;
}

/** Why a row cannot be audited, or undefined. */
function problemOf(row: unknown): string | undefined {
  const url = isObject(row) ? row.url : row;
  if (isObject(row) && url === undefined) return `The row is ${withoutUrl(row)}.`;
  if (typeof url !== "string" && url !== null) return `The URL must be text; it is ${show(url)}.`;
  try {
    validateInput(storeRow, { url }, { url: "the row's url" });
  } catch (error) {
    return (error as SeoError).message;
  }
  return isPage(urlOf(row)) ? undefined : `The URL ${allowedPage}; it is ${show(url)}.`;
}

/** A row that cannot be saved. The input is not null, which is another row. */
const unsaved: Row = { input: "…", error: "The row cannot be saved: it is not plain data." };

const cut = (_name: string, value: unknown) =>
  typeof value === "string" && value.length > LONGEST_VALUE ? `${value.slice(0, LONGEST_VALUE)}…` : value;

/** Plain data of its own, which nobody changes later. */
function copy(input: unknown, isValid: boolean): unknown {
  const text = JSON.stringify(input) ?? "null";
  if (isValid || text.length <= LONGEST_INVALID) return JSON.parse(text);
  const short = JSON.stringify(input, cut);
  if (short.length <= LONGEST_INVALID) return JSON.parse(short);
  return isObject(input) && typeof input.url === "string" ? { url: cut("url", input.url) } : "…";
}

function readRow(given: unknown): Row {
  // A Buffer has as many names as bytes.
  if (ArrayBuffer.isView(given)) return unsaved;
  try {
    const input = isObject(given) ? toInput(given) : given;
    const error = problemOf(input);
    return { input: copy(input, error === undefined), ...(error !== undefined && { error }) };
  } catch {
    return unsaved;
  }
}

function shapeOf(value: unknown): string {
  // A Buffer has as many names as bytes.
  if (ArrayBuffer.isView(value)) return "a Buffer";
  return isObject(value) ? withoutUrl(value) : show(value);
}

/** The lines of a text that are not blank, one after the other, because there can be 50,000. */
function* linesOf(text: string): Generator<string> {
  for (const line of text.split("\n")) if (line.trim() !== "") yield line.trim();
}

/** The pages in a value: text with one URL per line, an array, an object with `url`, or a response that wraps a list. */
function given(value: unknown, from: string): Iterable<unknown> {
  if (typeof value === "string") {
    const [first = "", second = ""] = linesOf(value);
    const columnsOf = (line: string) => line.replaceAll('"', "").split(/[,;\t]/);
    const names = columnsOf(first);
    const isHeader = names.some((name) => isNamed(name, "url")) || names.length === columnsOf(second).length;
    if (names.length > 1 && isHeader && !isPage(first))
      throw invalidParams({
        pages: `${from} is CSV. Put a CSV node before this node. Select "first row contains column names", and the Output "a single message [array]".`,
      });
    return linesOf(value);
  }
  if (Array.isArray(value)) return value;
  if (isObject(value) && Array.isArray(value.data)) return value.data;
  if (isObject(value) && !ArrayBuffer.isView(value) && toInput(value).url !== undefined) return [value];
  const allowed = "a URL, text with one URL per line, an array of URLs or of objects with url, or an object with url";
  throw invalidParams({ pages: `pages must be ${allowed}; ${from} is ${shapeOf(value)}.` });
}

/** Reads a list of pages, a row at a time. Throws SEO_INPUT if it is none, or empty; `from` says where it came from. */
export function* readRows(value: unknown, from = "pages"): Generator<Row> {
  let empty = true;
  for (const row of given(value, from)) {
    empty = false;
    yield readRow(row);
  }
  if (empty) throw invalidParams({ pages: `The list of pages is empty: ${from} has no URL.` });
}
