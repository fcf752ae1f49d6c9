import type { IncomingHttpHeaders } from "node:http";
import { NOT_FOUND } from "./answers.js";
import type { Reports } from "./reports.js";
import { ROUTES, type Route } from "./routes.js";
import { type Answer, checkValues, type Fields, Refusal, readFields } from "./rules.js";

/** A request as it came: path and query still encoded, the query without its question mark. */
export type Asked = { method: string; path: string; query: string; headers: IncomingHttpHeaders; body: string };
export type Service = { url: string; apiKey: string; reports: Reports };

const FORM = /^application\/x-www-form-urlencoded(\s*;\s*charset=utf-8)?$/i;

/** The order of the checks is the real service's: web server, router, key, values, and only then the report. */
export function answerTo(asked: Asked, { url, apiKey, reports }: Service): Answer {
  const { method, path, query, headers } = asked;
  if (/.\/$/.test(path)) return movedTo(url + path.replace(/\/+$/, "") + (query && `?${query}`));
  const routes = ROUTES.filter((route) => route.path.test(path));
  const route = routes.find(({ methods }) => methods.includes(method));
  if (routes.length === 0) return NOT_FOUND;
  if (!route) return notAllowed(method, routes.flatMap(({ methods }) => methods).join(", "));
  try {
    if (headers.accept !== "application/json") {
      throw new Refusal(400, `The header Accept must be application/json; it is ${headers.accept ?? "missing"}.`);
    }
    if (headers.authorization !== `Bearer ${apiKey}`) throw new Refusal(401, "Unauthenticated.");
    const fields = fieldsOf(asked, route);
    return route.answer({ reports, fields, key: keyOf(route, path), place: url + path });
  } catch (error) {
    if (error instanceof Refusal) return error.answer;
    throw error;
  }
}

function fieldsOf({ method, query, headers, body }: Asked, route: Route): Fields {
  const fields = readFields(query, route.query ?? {}, "query parameter");
  checkValues(fields, route.query ?? {});
  if (!route.form) {
    if (body) throw new Refusal(400, `A ${method} here takes no body.`);
    return fields;
  }
  if (body && !FORM.test(headers["content-type"] ?? "")) {
    const sent = headers["content-type"] ?? "missing";
    throw new Refusal(400, `The header Content-Type must be application/x-www-form-urlencoded; it is ${sent}.`);
  }
  const form = readFields(body, route.form, "form field");
  checkValues(form, route.form, route.required);
  return form;
}

function keyOf(route: Route, path: string): string {
  try {
    return decodeURIComponent(route.path.exec(path)?.[1] ?? "");
  } catch {
    throw new Refusal(400, `Malformed path ${path}: not percent-encoded UTF-8.`);
  }
}

const movedTo = (location: string): Answer => ({
  status: 301,
  body: { message: `Moved to ${location}` },
  headers: { Location: location },
});

const notAllowed = (method: string, allowed: string): Answer => ({
  status: 405,
  body: { message: `The ${method} method is not supported here. Supported methods: ${allowed}.` },
  headers: { Allow: allowed },
});
