import type { Client } from "./client.js";
import { SeoError, type Stage, stages } from "./errors.js";
import { readShape } from "./pages.js";

/** How far a connection gets: the stage that failed, and a sentence that says why and what to do. */
export interface Diagnosis {
  ok: boolean;
  stage: Stage;
  /** What happened. */
  reason: string;
  /** What happened and what to do. */
  message: string;
  /** How many reports there are. */
  count?: number;
  /** What the editor's sentences about the stage mention. */
  values: Record<string, string | number>;
}

const sentences = (stage: Stage, reason: string) => ({ stage, reason, message: `${reason} ${stages[stage]}` });

/** Gets one page of reports, which changes nothing, and reports how that went. */
export async function diagnose(client: Client): Promise<Diagnosis> {
  try {
    const { body } = await client.call("seo-report-list", {});
    const shape = readShape(body);
    if (!shape)
      throw new SeoError("SEO_RESPONSE", "The server returned JSON, but not a list of reports.", { stage: "answer" });
    const count = shape.total ?? shape.records.length;
    return { ok: true, ...sentences("done", `Connected. Reports found: ${count}.`), count, values: { count } };
  } catch (cause) {
    return explain(cause);
  }
}

/** The diagnosis of an error. */
export function explain(cause: unknown): Diagnosis {
  const { message, details } =
    cause instanceof SeoError ? cause : new SeoError("SEO_CONFIG", "The connection could not be tested.");
  const values = { status: details.statusCode ?? "", ...details.values };
  return { ok: false, ...sentences(details.stage ?? "config", message), values };
}
