import { SeoError } from "./errors.js";
import type { Dependent, Kind } from "./kinds.js";

/** One field of an edit dialog. The texts are English; the translations are in nodes/locales. */
export interface Field extends Dependent {
  kind: Kind;
  label: string;
  help: string;
  required?: true;
  /** For a choice or a flag, the default of the service (shown, never sent). For an option or setting, the value in a new node. */
  default?: string;
  /** The fixed value in a new node; a node that lacks the property does not have it. */
  initial?: string;
  /** Blank means no limit, not the default. */
  unlimited?: true;
  /** The edit dialog shows it under "Advanced". */
  fold?: true;
  /** A regular expression that the whole text must match, in any case (checked only by the editor). */
  pattern?: string;
  /** The edit dialog shows this field only if these options have one of these values. */
  shown?: Record<string, string[]>;
  /** The edit dialog warns if the value is less than that of these fields; if such a field is blank, than the number here. */
  least?: Record<string, string>;
  /** The unit of a number, as a symbol that is the same in every language. */
  unit?: string;
  /** The JavaScript types in the help, if they are not those of the kind. */
  types?: string;
  /** The config node that a field of kind "node" refers to. */
  node?: string;
  example?: string;
}

/** A parameter of an operation: a field that a message can set. It is sent in the path, the query of a GET or DELETE, or the form. */
export interface Param extends Field {
  /** If it is not sent, because the node itself uses it: the property of msg that it is read from, or blank. */
  reads?: string;
  /** The service's name for it, if the node's property has another name. */
  wire?: string;
  /** The operation whose records the editor suggests. */
  suggest?: string;
}

/** The facts about a node type that the palette, the edit dialog and the help show. `P`: the names of its parameters. */
export interface NodeType<P extends string = string> {
  title: string;
  help: string;
  /** The content of the payload, and the kind of record that it has. */
  returns: string;
  record?: "report" | "project";
  /** In the palette, if it is not that of reports. */
  color?: string;
  /** The messages of each output, if there are several: a label, and the properties of the payload if it is not a record. */
  outputs?: { label: string; payload?: string[] }[];
  /** The properties of `msg.seo`, if they are not those of a response. */
  metadata?: string[];
  /** The parameter that accepts the whole payload, or an object that contains it. */
  main?: NoInfer<P>;
  params: Record<P, Param>;
  /** The node's properties that are not sent. */
  options: Record<string, Field>;
}

/** The operations that find out what became of a request whose response was lost. */
export interface Lookup {
  /** Shows the report. */
  show: string;
  /** Lists the reports, the new one among them. Absent: the request is about a report whose ID is known. */
  list?: string;
  /** Changes the privacy of a report that was found. */
  change?: string;
}

/** One row: an operation of the service, and a node type. Its icon has the same name in icons/. */
export interface Operation<P extends string = string> extends NodeType<P> {
  /** Sent, unless the row has an option `method`. */
  method: string;
  path: string;
  /** Whether sending this input twice has another effect than sending it once. Absent: never. */
  once?: (input: Partial<Record<P, string>>) => boolean;
  /** How to find out what became of a lost request, if it must take effect once. */
  lookup?: Lookup;
  /** Timeout of one attempt in seconds, if not 30. */
  timeout?: number;
  /** Set if the response is a page of records: the property that identifies a record. */
  list?: string;
  /** The response can be empty, and a record that is already gone is a success: what its response says of the record. */
  deletes?: (input: Partial<Record<P, string>>) => object;
  /** The status after a success, if the response is not a list. */
  done?: string;
  /** The parameters that change something. If all are blank or have their defaults, there is nothing to change. */
  effects?: NoInfer<P>[];
}

/** The properties of `msg.seo` that describe a response, and the place in a list. */
export const responseProperties = ["operation", "statusCode", "headers", "attempts", "duration", "waited"];
export const listProperties = ["page", "pages", "total", "truncated"];

/** Seconds that creating or regenerating a report can take. */
const REPORT_TIMEOUT = 120;

const PROJECT = "#AAAA66";

const search: Param = { kind: "text", label: "Search", example: "pricing", help: "Text to search for." };
/** A choice of a record's property; the first is the default. */
const by =
  (label: string, help: string) =>
  <V extends Record<string, string>>(values: V) =>
    ({ kind: "choice", label, fold: true, values, default: String(Object.keys(values)[0]), help }) satisfies Param;
const searchBy = by("Search by", "Field to search in.");
const sortBy = by("Sort by", "Field to sort by.");
const sort = {
  kind: "choice",
  label: "Order",
  fold: true,
  values: { desc: "Descending", asc: "Ascending" },
  default: "desc",
  help: "Sort direction.",
} satisfies Param;
const perPage = {
  kind: "choice",
  label: "Records per page",
  fold: true,
  values: { 10: "10", 25: "25", 50: "50", 100: "100" },
  default: "10",
  help: "Page size. Blank: the service default, or 100 if Output reads all pages.",
} satisfies Param;
const paging = { sort, per_page: perPage };
const project: Param = {
  kind: "text",
  label: "Project",
  example: "example.com",
  suggest: "seo-project-list",
  help: "Name of the project.",
};
const result = {
  kind: "choice",
  label: "Result",
  values: { good: "Good", decent: "Decent", bad: "Bad" },
  help: "Result to filter by.",
} satisfies Param;
const reportId: Param = {
  kind: "segment",
  wire: "id",
  label: "Report ID",
  required: true,
  example: "27",
  suggest: "seo-report-list",
  help: "ID of the report, as returned by the service.",
};
const privacy = {
  kind: "choice",
  label: "Privacy",
  values: { 0: "Public", 1: "Private", 2: "Password" },
  help: "Visibility of the report page.",
} satisfies Param;
const password: Param = {
  kind: "secret",
  label: "Password",
  when: { privacy: "2" },
  help: "Password for the report page. If Privacy is Password, a new report needs one. Rejected if Privacy is Public or Private.",
};
const update: Param = {
  kind: "flag",
  label: "Regenerate",
  values: { 0: "No", 1: "Yes" },
  default: "0",
  help: "Whether the service fetches the page again and regenerates the report.",
};
const url: Param = {
  kind: "url",
  label: "URL",
  required: true,
  example: "https://example.com/pricing",
  help: "URL of the web page to analyze.",
};

// Flows of version 1 lack this parameter and the next, which are then blank.
const existing = {
  kind: "choice",
  reads: "",
  label: "Existing report",
  values: { create: "Create a new one", regenerate: "Regenerate it", return: "Return it" },
  default: "create",
  initial: "create",
  help: "Action if the page already has a report. If it has none, a report is created. A report that is returned keeps its privacy and password.",
} satisfies Param;
const maxAge: Param = {
  kind: "count",
  reads: "",
  label: "Maximum age",
  unit: "d",
  min: 0,
  initial: "",
  example: "6",
  shown: { existing: ["regenerate", "return"] },
  help: "Age up to which the existing report is returned, in days: 6 for weekly runs. An older one is regenerated (“Regenerate it”), or a new one is created (“Return it”). Blank: the age is ignored.",
};

const output = {
  kind: "choice",
  label: "Output",
  values: { body: "Full response", data: "Response data" },
  default: "body",
  help: "Content of the output messages.",
} satisfies Field;
const limit: Field = {
  kind: "count",
  label: "Limit",
  min: 0,
  unlimited: true,
  default: "1000",
  help: "Maximum number of records, across all pages. Blank or 0: no limit.",
};
const collected = {
  all: "All pages: one array",
  pages: "All pages: one message per page",
  records: "All pages: one message per record",
};
const target: Field = {
  kind: "property",
  label: "Target",
  fold: true,
  default: "payload",
  help: "Property of msg for the result. If it is not payload, msg.payload is unchanged.",
};
const single = { output, target };
/** Only reports have checks. */
const issues = { issues: "Issues: one message each" };
/** The values of the option `output`. */
export type OutputName = keyof typeof output.values | keyof typeof collected | keyof typeof issues;
const report = { output: { ...output, values: { ...output.values, ...issues } }, target };
const listing = (streams: Record<string, string>): Record<string, Field> => ({
  output: { ...output, values: { ...output.values, ...streams } },
  limit: { ...limit, shown: { output: Object.keys(streams) } },
  target,
});
const method: Field = {
  kind: "choice",
  label: "Method",
  fold: true,
  values: { PUT: "PUT", PATCH: "PATCH" },
  default: "PUT",
  help: "HTTP method of the request. The service treats both the same.",
};

/** A row must say when a POST takes effect once: otherwise, it would be repeated after a lost response. */
type Repeatable<P extends string> = { method: "GET" | "PUT" | "DELETE" } | Required<Pick<Operation<P>, "once">>;

/** Makes the compiler check the parameter names that a row mentions, and know the values, which one is required, and what is a list. */
const define = <P extends Record<string, Param>, M extends keyof P & string = never, L extends string = never>(
  row: Omit<Operation<keyof P & string>, "params"> & { params: P; main?: M; list?: L } & Repeatable<keyof P & string>,
) => row;

/**
 * Every operation of the service, by node type. Everything else is generated from this table,
 * which is why this file is long.
 */
export const operations = {
  "seo-report-list": define({
    title: "list reports",
    help: "Lists the reports in the account, with search, filters and sorting.",
    returns: "The reports: one page, or all pages as set in Output.",
    record: "report",
    method: "GET",
    path: "/api/v1/reports",
    list: "id",
    options: listing({ ...collected, ...issues }),
    params: {
      search,
      search_by: searchBy({ url: "URL" }),
      project,
      result,
      sort_by: sortBy({ id: "Date created", generated_at: "Date generated", url: "URL", score: "Score" }),
      ...paging,
    },
  }),
  "seo-report-show": define({
    title: "show report",
    help: "Gets a report by its ID.",
    returns: "The report.",
    record: "report",
    method: "GET",
    path: "/api/v1/reports/{id}",
    main: "reportId",
    done: "received",
    options: report,
    params: { reportId },
  }),
  "seo-report-store": define({
    title: "store report",
    help: "Creates an SEO report for a web page, or regenerates or returns the existing one.",
    returns: "The page's report: new, regenerated or existing.",
    record: "report",
    method: "POST",
    path: "/api/v1/reports",
    once: () => true,
    lookup: { list: "seo-report-list", show: "seo-report-show", change: "seo-report-update" },
    timeout: REPORT_TIMEOUT,
    main: "url",
    done: "stored",
    options: report,
    params: {
      url,
      privacy: { ...privacy, default: "0" },
      // A report that exists can have one.
      password: { ...password, requiredIf: { privacy: "2", existing: "create" } },
      existing,
      maxAge,
    },
  }),
  "seo-report-update": define({
    title: "update report",
    help: "Changes a report's privacy, or regenerates the report.",
    returns: "The updated report.",
    record: "report",
    method: "PUT",
    path: "/api/v1/reports/{id}",
    once: ({ update }) => update === "1",
    lookup: { show: "seo-report-show" },
    effects: ["privacy", "password", "update"],
    timeout: REPORT_TIMEOUT,
    main: "reportId",
    done: "updated",
    options: { method, ...report },
    params: { reportId, privacy, password, update },
  }),
  "seo-report-delete": define({
    title: "delete report",
    help: "Permanently deletes a report.",
    returns: "The service's response, or null if it is empty.",
    method: "DELETE",
    path: "/api/v1/reports/{id}",
    deletes: ({ reportId: id = "" }) => ({ id: /^[1-9]\d{0,14}$/.test(id) ? Number(id) : id, object: "report" }),
    main: "reportId",
    done: "deleted",
    options: single,
    params: { reportId },
  }),
  "seo-project-list": define({
    title: "list projects",
    help: "Lists the projects in the account, with search and sorting.",
    returns: "The projects: one page, or all pages as set in Output.",
    record: "project",
    color: PROJECT,
    method: "GET",
    path: "/api/v1/projects",
    list: "project",
    options: listing(collected),
    params: {
      search,
      search_by: searchBy({ project: "Name" }),
      sort_by: sortBy({ created_at: "Date created", project: "Name" }),
      ...paging,
    },
  }),
  "seo-project-delete": define({
    title: "delete project",
    help: "Permanently deletes a project and all its reports.",
    returns: "The service's response, or null if it is empty.",
    color: PROJECT,
    method: "DELETE",
    path: "/api/v1/projects/{project}",
    deletes: ({ project }) => ({ project, object: "project" }),
    main: "project",
    done: "deleted",
    options: single,
    params: { project: { ...project, kind: "segment", required: true } },
  }),
};

/**
 * The property of msg from which a node reads a parameter that its flow does not mention: the main one from the payload, the
 * others from its property of that name.
 */
export function presetOf({ main, params }: NodeType, param: string): string {
  const { wire = param, reads } = params[param] ?? {};
  return reads ?? (param === main ? "payload" : `payload.${wire}`);
}

/** The row of an operation. Throws SEO_INPUT if there is none. */
export function rowOf(type: string): Operation {
  if (Object.hasOwn(operations, type)) return (operations as Record<string, Operation>)[type] as Operation;
  throw new SeoError("SEO_INPUT", `Unknown operation: ${type}.`);
}

/** A filter that a new node does not read from the message: a report in it would filter by its own values. */
const fixed = (param: Param): Param => ({ ...param, initial: "" });

const ofReports = ["all", "created", "changed", "deleted"];

/** The node that lists reports and compares them with the last run. */
export const changes: NodeType = {
  title: "report changes",
  help: "Sends a message for each report or check that changed since the last run.",
  returns: "The new or changed report. For a deleted report, its last known values. For a check, the issue.",
  metadata: [...responseProperties, ...listProperties, "change", "previous", "fields", "check"],
  record: "report",
  params: {
    search: fixed(search),
    search_by: fixed(searchBy({ url: "URL" })),
    project: fixed(project),
    result: fixed(result),
  },
  options: {
    changes: {
      kind: "choice",
      label: "Changes",
      values: {
        all: "All",
        created: "Created",
        changed: "Changed",
        deleted: "Deleted",
        checks: "Checks: failed or fixed",
      },
      default: "all",
      help: "Changes to send: of reports, or one message for each check that newly fails or is fixed.",
    },
    only: {
      kind: "choice",
      label: "Condition",
      values: { all: "None", worse: "Only worse", below: "Score fell below" },
      default: "all",
      help: "Restriction to changes for the worse. Only worse: a lower score or result, or a failed check. Score fell below: a score that is newly below the limit, or a failed check of a report below it.",
    },
    below: {
      kind: "count",
      label: "Score limit",
      min: 0,
      default: "50",
      shown: { only: ["below"] },
      help: "Scores below this number meet the condition.",
    },
    threshold: {
      kind: "count",
      label: "Threshold",
      min: 0,
      example: "5",
      shown: { changes: ofReports },
      help: "Minimum score difference, in points. A different result or privacy always counts; different dates alone do not. Blank: any difference counts.",
    },
    first: {
      kind: "choice",
      label: "First run",
      values: { none: "Send nothing", created: "Send all reports as created" },
      default: "none",
      shown: { changes: ofReports },
      help: "Messages to send if there is no saved state to compare with.",
    },
    interval: {
      kind: "count",
      label: "Interval",
      unit: "min",
      min: 1,
      example: "60",
      help: "Time from the end of a run to the start of the next, in minutes. A message still starts a run. Blank: only messages start runs.",
    },
    store: {
      kind: "store",
      label: "Context store",
      help: "Location of the saved state. Blank: the default store. Without contextStorage in Node-RED's settings, a restart clears it.",
    },
    limit: { ...limit, default: "" },
  },
};

/** The node that works through a list of pages. */
export const audit: NodeType = {
  title: "audit pages",
  help: "Creates or regenerates a report for each page in a list, and continues by itself after a restart.",
  returns:
    "The page's report, or null if none was received. Failed and uncertain pages are also sent here, with `msg.seo.error`, and not to Catch nodes.",
  record: "report",
  outputs: [
    { label: "results" },
    {
      label: "progress",
      payload: [
        ...["batch", "total", "done", "created", "regenerated", "fresh", "failed", "uncertain", "invalid"],
        ...["waiting", "reconciling", "dropped", "perMinute", "secondsLeft", "secondsToWait"],
        ...["paused", "reason", "finished", "reset", "repeated"],
      ],
    },
  ],
  metadata: ["operation", "batch", "index", "input", "outcome", "attempts", "reconciled", "error", "repeated"],
  main: "pages",
  params: {
    pages: {
      kind: "text",
      label: "Pages",
      required: true,
      reads: "payload",
      types: "string | array | object",
      example: "https://example.com",
      help: "A URL, text with one URL per line, an array of URLs, or an array of objects with a url property.",
    },
    batch: {
      kind: "text",
      label: "Batch",
      reads: "topic",
      example: "spring",
      help: "Name of the batch. Until it is finished, sending the same list again does not restart it, and new pages join it. Blank: “default”.",
    },
    existing: { ...existing, default: "regenerate", initial: "regenerate" },
    maxAge,
    // A password would be saved with the batch.
    privacy: { ...privacy, values: { 0: "Public", 1: "Private" }, initial: "", reads: "" },
  },
  options: {
    share: {
      kind: "count",
      label: "Requests in flight",
      min: 1,
      example: "3",
      help: "Maximum for all batches of this node together, up to Concurrency in the SEO service node. Blank: one less, but at least 1.",
    },
    folder: {
      kind: "text",
      label: "Folder",
      fold: true,
      shown: { queue: [""] },
      help: "Location of the saved batches, relative to Node-RED's user directory. Only one Node-RED instance can use this folder at a time. Blank: seo-reports.",
    },
    queue: {
      kind: "node",
      node: "seo-queue",
      label: "Queue",
      fold: true,
      help: "SEO queue in which several machines share the batches. Blank: files on this machine.",
    },
  },
};

/** Every node type of the palette. */
export const nodeTypes: Record<string, NodeType> = {
  ...operations,
  "seo-report-changes": changes,
  "seo-report-audit": audit,
};

const tls: Field = {
  fold: true,
  kind: "node",
  node: "tls-config",
  label: "TLS",
  help: "Private certificate authorities or a client certificate. Blank: the certificate authorities included with Node.js.",
};

/** The properties of the SEO service node, without the API key, which is a credential. Comments of settings document the library. */
export const service = {
  baseUrl: {
    kind: "text",
    label: "Base URL",
    required: true,
    pattern: "https?://[^\\s/?#@]+(/[^\\s?#]*)?",
    example: "https://seo.example.com",
    help: "URL of the service, without /api/v1. Use ${NAME} for an environment variable.",
  },
  /** Seconds for one attempt. */
  timeout: {
    fold: true,
    kind: "count",
    label: "Timeout",
    unit: "s",
    min: 1,
    help: "Maximum time for one attempt, in seconds. Blank: 30, or 120 for creating or updating a report.",
  },
  /** Requests in flight. */
  concurrency: {
    fold: true,
    kind: "count",
    label: "Concurrency",
    min: 1,
    default: "4",
    help: "Maximum number of requests in flight.",
  },
  /** Requests a minute. */
  rate: {
    fold: true,
    kind: "count",
    label: "Rate limit",
    unit: "/min",
    min: 1,
    unlimited: true,
    help: "Maximum number of requests per minute. Blank: no limit.",
  },
  queue: {
    fold: true,
    kind: "count",
    label: "Queue size",
    min: 0,
    default: "10000",
    help: "Maximum number of waiting messages.",
  },
  /** Further attempts after a failed one, if resending is safe. */
  retries: {
    fold: true,
    kind: "count",
    label: "Retries",
    min: 0,
    default: "3",
    help: "Maximum number of further attempts after a failed one, if resending is safe.",
  },
  /** Seconds that the service can work on a request. If a response is lost, the outcome is looked up during this time; 0: never. */
  reconcile: {
    fold: true,
    kind: "count",
    label: "Reconcile",
    unit: "s",
    min: 0,
    initial: "300",
    least: { timeout: String(REPORT_TIMEOUT) },
    help: "Longest time that the service can work on a request, in seconds. If a response is lost, the nodes look up the outcome during this time. If it is too short, a report can be created twice. Blank or 0: a lost response is an error, except in “audit pages” nodes, which use 300.",
  },
  tls,
  proxy: {
    fold: true,
    kind: "node",
    node: "http proxy",
    label: "Proxy",
    help: "Proxy server for all requests. Blank: the environment variables HTTP_PROXY, HTTPS_PROXY and NO_PROXY.",
  },
} satisfies Record<string, Field>;

/** A config node: how something is reached. */
export interface ConfigNode extends Pick<NodeType, "title" | "help"> {
  /** The help of the config node beside its fields. */
  details: string;
  /** The field whose host is its label if it has no name. */
  main?: string;
  settings: Record<string, Field>;
  /** The one property that Node-RED keeps as a credential. */
  credential: Record<string, Field>;
  /** The settings that say where the credential is sent. */
  place: string[];
}

/** Every config node. */
export const configNodes = {
  "seo-service": {
    title: "SEO service",
    help: "Connects to the SEO reporting service.",
    details: "All nodes that use this service share these limits.",
    main: "baseUrl",
    settings: service,
    credential: {
      apiKey: {
        kind: "secret",
        label: "API key",
        required: true,
        pattern: "[\\x21-\\x7e]+",
        help: "API key of your account. Use ${NAME} for an environment variable. Stored as a Node-RED credential: encrypted, and left out of exports.",
      },
    },
    place: ["baseUrl", "tls", "proxy"],
  },
  "seo-queue": {
    title: "SEO queue",
    help: "Keeps the batches of “audit pages” nodes in Redis or PostgreSQL, so that several machines share them.",
    details:
      "One machine works on the batches. If it fails, another one with the same flow and the same prefix takes over. In Node-RED's user directory, run `npm install --save-exact bullmq@6.7.0 ioredis` for Redis, or `npm install --save-exact bullmq@6.7.0 pg` for PostgreSQL.",
    settings: {
      prefix: {
        kind: "text",
        label: "Prefix",
        default: "seo-reports",
        pattern: "[\\w-]+",
        example: "seo-reports",
        help: "Beginning of all names on the server. Only machines with the same prefix share batches.",
      },
      tls,
    },
    credential: {
      url: {
        kind: "server",
        label: "URL",
        required: true,
        example: "redis://127.0.0.1:6379",
        help: "URL of the server, with the user name and the password: `redis://`, `rediss://` or `postgres://`. Use ${NAME} for an environment variable. Stored as a Node-RED credential: encrypted, and left out of exports.",
      },
    },
    place: ["tls"],
  },
} as const satisfies Record<string, ConfigNode>;

export type ConfigType = keyof typeof configNodes;
