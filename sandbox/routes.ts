import type { IncomingHttpHeaders } from "node:http";
import { PROJECT_SORT_KEYS, REPORT_SORT_KEYS, type Reports } from "./reports.js";
import {
  type Fields,
  oneOf,
  pageNumber,
  parseAddress,
  RequestError,
  type Rules,
  readFields,
  text,
  webAddress,
} from "./request.js";
import {
  deleted,
  item,
  list,
  movedTo,
  NOT_FOUND,
  notAllowed,
  projectRecord,
  type Reply,
  rejection,
  reportRecord,
} from "./response.js";

/** A request as it was sent: path and query still encoded, the query without its question mark. */
type Incoming = { method: string; path: string; query: string; headers: IncomingHttpHeaders; body: string };

export type Service = {
  url: string;
  apiKey: string;
  reports: Reports;
  /** The response if the page at this URL cannot be fetched. */
  pageError: (url: string) => Reply | undefined;
};

/** `key` is the parenthesized part of the route's path, decoded; `url` is the request's own, without its query. */
type Call = Omit<Service, "apiKey"> & { fields: Fields; key: string };

type Route = {
  methods: string[];
  path: RegExp;
  query?: Rules;
  form?: Rules;
  required?: string[];
  respond: (call: Call) => Reply;
};

const REPORTS = /^\/api\/v1\/reports$/;
const REPORT = /^\/api\/v1\/reports\/([1-9]\d{0,14})$/;
const PROJECTS = /^\/api\/v1\/projects$/;
const PROJECT = /^\/api\/v1\/projects\/([^/]+)$/;

const PAGING: Rules = { sort: oneOf("asc", "desc"), per_page: oneOf("10", "25", "50", "100"), page: pageNumber };
const PRIVACY: Rules = { privacy: oneOf("0", "1", "2"), password: text };

/**
 * Every endpoint of the service. Written from the service's document and never from ../src, so that client and sandbox
 * check each other.
 */
const ROUTES: Route[] = [
  {
    methods: ["GET"],
    path: REPORTS,
    query: {
      search: text,
      search_by: oneOf("url"),
      project: text,
      result: oneOf("good", "decent", "bad"),
      sort_by: oneOf(...Object.keys(REPORT_SORT_KEYS)),
      ...PAGING,
    },
    respond: ({ reports, fields, url }) => list(reports.list(fields), reportRecord, fields, url),
  },
  {
    methods: ["POST"],
    path: REPORTS,
    form: { url: webAddress, ...PRIVACY },
    required: ["url"],
    respond: ({ reports, fields, pageError }) =>
      pageError(parseAddress(fields.url ?? "")?.url ?? "") ?? item(reports.store(fields), reportRecord, 201),
  },
  { methods: ["GET"], path: REPORT, respond: ({ reports, key }) => item(reports.get(Number(key)), reportRecord) },
  {
    methods: ["PUT", "PATCH"],
    path: REPORT,
    form: { ...PRIVACY, update: oneOf("0", "1") },
    respond({ reports, key, fields, pageError }) {
      const report = reports.get(Number(key));
      const error = report && fields.update === "1" ? pageError(report.url) : undefined;
      return error ?? item(reports.update(Number(key), fields), reportRecord);
    },
  },
  {
    methods: ["DELETE"],
    path: REPORT,
    respond: ({ reports, key }) => (reports.remove(Number(key)) ? deleted("report", Number(key)) : NOT_FOUND),
  },
  {
    methods: ["GET"],
    path: PROJECTS,
    query: { search: text, search_by: oneOf("project"), sort_by: oneOf(...Object.keys(PROJECT_SORT_KEYS)), ...PAGING },
    respond: ({ reports, fields, url }) => list(reports.projects(fields), projectRecord, fields, url),
  },
  {
    methods: ["DELETE"],
    path: PROJECT,
    respond: ({ reports, key }) => (reports.removeProject(key) > 0 ? deleted("project", key) : NOT_FOUND),
  },
];

/** Checks in the order of the real service: web server, router, key, values, and only then the report. */
export function respond(incoming: Incoming, { url, apiKey, reports, pageError }: Service): Reply {
  const { method, path, query, headers } = incoming;
  if (/.\/$/.test(path)) return movedTo(url + path.replace(/\/+$/, "") + (query && `?${query}`));
  const routes = ROUTES.filter((route) => route.path.test(path));
  const route = routes.find(({ methods }) => methods.includes(method));
  if (routes.length === 0) return NOT_FOUND;
  if (!route) return notAllowed(method, routes.flatMap(({ methods }) => methods).join(", "));
  try {
    if (headers.accept !== "application/json") {
      throw new RequestError(400, `The header Accept must be application/json; it is ${headers.accept ?? "missing"}.`);
    }
    if (headers.authorization !== `Bearer ${apiKey}`) throw new RequestError(401, "Unauthenticated.");
    const fields = fieldsOf(incoming, route);
    return route.respond({ reports, pageError, fields, key: keyOf(route, path), url: url + path });
  } catch (error) {
    if (error instanceof RequestError) return rejection(error);
    throw error;
  }
}

const FORM_TYPE = /^application\/x-www-form-urlencoded(\s*;\s*charset=utf-8)?$/i;

function fieldsOf({ method, query, headers, body }: Incoming, route: Route): Fields {
  const fields = readFields(query, "query parameter", route.query);
  if (!route.form) {
    if (body) throw new RequestError(400, `A ${method} request must not have a body here.`);
    return fields;
  }
  if (body && !FORM_TYPE.test(headers["content-type"] ?? "")) {
    const sent = headers["content-type"] ?? "missing";
    throw new RequestError(400, `The header Content-Type must be application/x-www-form-urlencoded; it is ${sent}.`);
  }
  return readFields(body, "form field", route.form, route.required);
}

function keyOf(route: Route, path: string): string {
  try {
    return decodeURIComponent(route.path.exec(path)?.[1] ?? "");
  } catch {
    throw new RequestError(400, `Malformed path ${path}: not percent-encoded UTF-8.`);
  }
}
