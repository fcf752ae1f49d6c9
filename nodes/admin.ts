import type { NodeAPI } from "node-red";
import type { Client } from "../src/client.js";
import { SeoError } from "../src/errors.js";
import { variableIn } from "../src/kinds.js";
import { rowOf } from "../src/operations.js";
import { impatient, openClient, type ServiceNode } from "./service.js";

/** The editor shows and sends this instead of a stored key. */
const PLACEHOLDER = "__PWRD__";
const SUGGESTIONS = 25;

/** The settings of a service in the editor, deployed or not. */
interface Draft {
  id?: string;
  baseUrl?: string;
  apiKey?: string;
  tls?: string;
  proxy?: string;
}

/** Resolves an environment variable as a deploy would. */
function expand(RED: NodeAPI, node: ServiceNode | null, value: string | undefined): unknown {
  const name = value && variableIn(value);
  if (!name) return value;
  return RED.util.evaluateNodeProperty(name, "env", node as ServiceNode, {}) || value;
}

/**
 * A client for the settings in the edit dialog. The stored key is used only with the base URL, proxy and TLS configuration
 * that were deployed with it.
 */
async function openDraft(RED: NodeAPI, draft: Draft): Promise<Client> {
  const node = RED.nodes.getNode(String(draft.id)) as ServiceNode | null;
  const baseUrl = expand(RED, node, draft.baseUrl);
  if (draft.apiKey !== undefined && draft.apiKey !== PLACEHOLDER) {
    return openClient(
      RED,
      { ...impatient, baseUrl, tls: draft.tls ?? "", proxy: draft.proxy ?? "" },
      expand(RED, node, draft.apiKey),
    );
  }
  const sentence = "The API key has not been deployed yet. Enter it again, or deploy first.";
  if (!node?.probe) throw new SeoError("SEO_CONFIG", sentence, { stage: "stored" });
  return node.probe({ ...draft, baseUrl });
}

/** The records of a list that match a text: the value of each and a label. None if the operation is not a list. */
async function suggest(client: Client, type: string, text: string) {
  const { list: id } = rowOf(type);
  if (!id) return [];
  const { readShape, idOf } = await import("../src/pages.js");
  const { body } = await client.call(type, { search: text, per_page: String(SUGGESTIONS) });
  return (readShape(body)?.records ?? []).slice(0, SUGGESTIONS).map((record) => {
    const { url, generated_at: date } = Object(record) as Record<string, unknown>;
    const value = idOf(record, id);
    return { value, label: typeof url === "string" ? url : value, date: typeof date === "string" ? date : undefined };
  });
}

/** The editor's two routes: the connection test and the suggestions. */
export function registerAdmin(RED: NodeAPI): void {
  const allowed = RED.auth.needsPermission("seo-service.write");

  RED.httpAdmin.post("/seo-service/test", allowed, async (request, response) => {
    const { diagnose, explain } = await import("../src/diagnose.js");
    try {
      const client = await openDraft(RED, Object(request.body));
      response.json(await diagnose(client).finally(() => client.close()));
    } catch (cause) {
      response.json(explain(cause));
    }
  });

  RED.httpAdmin.post("/seo-service/suggest", allowed, async (request, response) => {
    const { operation, text, ...draft } = Object(request.body) as Draft & { operation?: unknown; text?: unknown };
    try {
      const client = await openDraft(RED, draft);
      response.json({
        suggestions: await suggest(client, String(operation), String(text ?? "")).finally(() => client.close()),
      });
    } catch {
      // A failed suggestion must not disturb a user who is typing.
      response.json({ suggestions: [] });
    }
  });
}
