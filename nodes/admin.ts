import type { RequestHandler } from "express";
import type { NodeAPI } from "node-red";
import type { Client } from "../src/client.js";
import type { Diagnosis } from "../src/diagnose.js";
import type { Json } from "../src/json.js";
import { type ConfigType, rowOf } from "../src/operations.js";
import { readDraft } from "./config.js";
import { readPlace } from "./queue.js";
import { openClient } from "./service.js";

const SUGGESTIONS = 25;
/** How long somebody waits at a dialog: seconds, and no retry. */
const impatient = { timeout: "10", retries: "0" };

/** Does something with a client for the settings in an edit dialog. */
async function withClient<Value>(settings: Json, work: (client: Client) => Promise<Value>): Promise<Value> {
  const client = await openClient({ ...settings, ...impatient });
  return work(client).finally(() => client.close());
}

/** How the connection of each config node is tested. */
const tests: Record<ConfigType, (settings: Json) => Promise<Diagnosis>> = {
  async "seo-service"(settings) {
    const { diagnose } = await import("../src/diagnose.js");
    return withClient(settings, diagnose);
  },
  async "seo-queue"(settings) {
    const { testQueue } = await import("../src/audit/shared/shared.js");
    return { ok: true, stage: "done", values: { version: await testQueue(await readPlace(settings)) } };
  },
};

/** The records of a list that match a text: the value of each and a label. None if the operation is not a list. */
async function suggest(client: Client, type: string, text: string) {
  const { list: id } = rowOf(type);
  if (!id) return [];
  const { idIn, readShape } = await import("../src/lists.js");
  const { body } = await client.call(type, { search: text, per_page: String(SUGGESTIONS) });
  return (readShape(body)?.records ?? []).slice(0, SUGGESTIONS).flatMap((record) => {
    const { url, generated_at: date } = Object(record) as Record<string, unknown>;
    const value = idIn(record, id);
    if (value === undefined) return [];
    return { value, label: typeof url === "string" ? url : value, date: typeof date === "string" ? date : undefined };
  });
}

/** A form of another website could send the browser's user here, but needs a preflight for this type, which Node-RED refuses. */
export const onlyJson: RequestHandler = (request, response, next) => {
  if (request.is("application/json")) next();
  else response.sendStatus(415);
};

/** The editor's routes: the connection tests and the suggestions. */
export function registerAdmin(RED: NodeAPI): void {
  for (const [type, test] of Object.entries(tests) as [ConfigType, (typeof tests)[ConfigType]][]) {
    RED.httpAdmin.post(
      `/${type}/test`,
      RED.auth.needsPermission(`${type}.write`),
      onlyJson,
      async (request, response) => {
        try {
          response.json(await test(readDraft(RED, type, Object(request.body))));
        } catch (cause) {
          const { explain } = await import("../src/diagnose.js");
          response.json(explain(cause));
        }
      },
    );
  }

  const allowed = RED.auth.needsPermission("seo-service.write");
  RED.httpAdmin.post("/seo-service/suggest", allowed, onlyJson, async (request, response) => {
    const { operation, text, ...draft } = Object(request.body) as Json;
    try {
      const settings = readDraft(RED, "seo-service", draft);
      const suggestions = await withClient(settings, (client) =>
        suggest(client, String(operation), String(text ?? "")),
      );
      response.json({ suggestions });
    } catch {
      // A failed suggestion must not disturb a user who is typing.
      response.json({ suggestions: [] });
    }
  });
}
