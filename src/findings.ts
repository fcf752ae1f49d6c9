import { isObject, type Json } from "./json.js";

/** A check of a report, as a payload. */
export interface Issue {
  /** The report's ID, URL and project, as the service returned them; null if it did not. */
  report: unknown;
  url: unknown;
  project: unknown;
  /** The check's name. */
  check: string;
  importance: unknown;
  value: unknown;
  /** The errors that the check found, at most `MOST_ERRORS`. */
  errors: unknown[];
  /** The number of further errors, if there are any. */
  omitted?: number;
}

/** A check as it was recognized in a report. */
interface Finding {
  check: string;
  passed: boolean;
  /** Made on demand, because few findings are sent. */
  issue(): Issue;
}

const MOST_ERRORS = 10;

/** The types of a field differ between responses. */
const verdicts = new Map<unknown, boolean>([true, 1, "1"].map((value) => [value, true]));
for (const value of [false, 0, "0"]) verdicts.set(value, false);

const isNested = (value: unknown) => typeof value === "object" && value !== null;

/**
 * A check's `errors` as a list, whatever their shape. In an object, a property is a kind of error: without details it becomes its
 * name, and a list of details one error each: `{ missing: null, duplicate: ["a", "b"] }` is `missing`, `{ duplicate: "a" }`, `{ duplicate: "b" }`.
 */
function listErrors(errors: unknown): unknown[] {
  if (Array.isArray(errors)) return errors;
  if (!isObject(errors)) return errors === null || errors === undefined || errors === "" ? [] : [errors];
  return Object.entries(errors).flatMap(([kind, details]): unknown[] => {
    const all = isObject(details) && !Object.values(details).some(isNested) ? [details] : listErrors(details);
    return all.length > 0 ? all.map((detail) => ({ [kind]: detail })) : [kind];
  });
}

/** The checks of a report in the order of the response: the properties of `results` that say whether they passed. All others are ignored. */
export function findingsOf(record: unknown): Finding[] {
  const { id = null, url = null, project = null, results } = Object(record) as Json;
  if (!isObject(results)) return [];
  return Object.entries(results).flatMap(([check, result]) => {
    const { passed, importance = null, value = null, errors: found } = Object(result) as Json;
    const verdict = verdicts.get(passed);
    if (verdict === undefined) return [];
    const issue = () => {
      const all = listErrors(found);
      const omitted = all.length - MOST_ERRORS;
      const errors = all.slice(0, MOST_ERRORS);
      return { report: id, url, project, check, importance, value, errors, ...(omitted > 0 && { omitted }) };
    };
    return [{ check, passed: verdict, issue }];
  });
}
