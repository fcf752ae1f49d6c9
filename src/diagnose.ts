import type { Client } from "./client.js";
import { SeoError, type Stage, stages } from "./errors.js";
import { readShape } from "./pages.js";

/** How far a connection comes: the stage that failed, and a sentence that says why and what to do. */
export interface Diagnosis {
  ok: boolean;
  stage: Stage;
  /** What happened. */
  reason: string;
  /** What happened and what to do. */
  message: string;
}

/** Asks for one page of reports, which changes nothing, and says how that went. */
export async function diagnose(client: Client): Promise<Diagnosis> {
  try {
    const { body } = await client.call("seo-report-list", {});
    const shape = readShape(body);
    if (!shape)
      throw new SeoError("SEO_RESPONSE", "What answers there speaks JSON, but lists no reports.", { stage: "answer" });
    const reason = `Reports: ${shape.total ?? shape.records.length}.`;
    return { ok: true, stage: "done", reason, message: `${reason} ${stages.done}` };
  } catch (cause) {
    return explain(cause);
  }
}

/** The diagnosis of a failure. */
export function explain(cause: unknown): Diagnosis {
  const { message, details } =
    cause instanceof SeoError ? cause : new SeoError("SEO_CONFIG", "The service cannot be asked.");
  const stage = details.stage ?? "config";
  return { ok: false, stage, reason: message, message: `${message} ${stages[stage]}` };
}
