import type { Client } from "./client.js";
import { SeoError, type Stage } from "./errors.js";
import { readShape } from "./lists.js";
import { operations } from "./operations.js";

const LIST = "seo-report-list";

/** The stage that a connection test reached, and the values that the editor's sentences about it mention. */
export interface Diagnosis {
  ok: boolean;
  stage: Stage;
  values: Record<string, string | number>;
}

/** Requests one page of reports, which changes nothing. */
export async function diagnose(client: Client): Promise<Diagnosis> {
  try {
    const { body } = await client.call(LIST, {});
    const shape = readShape(body);
    if (!shape) return { ok: false, stage: "answer", values: {} };
    return { ok: true, stage: "done", values: { count: shape.total ?? shape.records.length } };
  } catch (cause) {
    const { values, ...found } = explain(cause);
    return { ...found, values: { url: `${client.base}${operations[LIST].path}`, ...values } };
  }
}

/** The diagnosis of an error. */
export function explain(cause: unknown): Diagnosis {
  if (!(cause instanceof SeoError)) return { ok: false, stage: "unknown", values: {} };
  const { stage = "config", statusCode = "", values } = cause.details;
  return { ok: false, stage, values: { status: statusCode, ...values } };
}
