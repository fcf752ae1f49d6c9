/** How a value is checked (schema.ts) and how the editor asks for it (nodes/editor/page.ts). */
export type Kind = "text" | "secret" | "segment" | "choice" | "flag" | "count" | "node";

/** One field of a dialog. The texts are English; the other languages are in nodes/locales. */
export interface Field {
  kind: Kind;
  label: string;
  help: string;
  required?: true;
  /** The allowed values, each with its label. */
  values?: Record<string, string>;
  /** A parameter: which of its values the service takes when nothing is sent (shown, never sent). An option or setting: what a new node has. */
  default?: string;
  /** A whole number's least value. */
  min?: number;
  /** Blank is no limit at all, and not the default. */
  unlimited?: true;
  /** What the editor asks of a text beyond its kind: a regular expression for all of it, without regard to case. */
  pattern?: string;
  /** The values of options with which the dialog shows this one. */
  shown?: Record<string, string[]>;
  /** The config node that a field of kind "node" refers to. */
  node?: string;
  example?: string;
}

/** A parameter of an operation: a field that is sent. */
export interface Param extends Field {
  place: "path" | "query" | "form";
  /** The service's name for it, where the node's property has another. */
  wire?: string;
  /** The value that another parameter must have for this one to take effect. */
  when?: Record<string, string>;
  /** The operation whose records the editor suggests. */
  suggest?: string;
}

/** What the palette, the dialog and the help show of a node type. */
export interface NodeType {
  title: string;
  help: string;
  /** What comes out, in a sentence. */
  returns: string;
  color: string;
  /** The parameter that takes the whole payload, or an object that has it. */
  main?: string;
  params: Record<string, Param>;
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

/** One row: one operation of the service, one node type. Its icon is the file of its name in icons/. */
export interface Operation extends NodeType {
  /** Sent, unless the row has an option `method`. */
  method: string;
  path: string;
  /** Says of which input a second sending does more than the first alone. Absent: of none. */
  once?: (input: Record<string, string>) => boolean;
  /** Present if a lost response can be looked for, where `once` holds. */
  lookup?: Lookup;
  /** Seconds that one attempt may take, where it is more than the usual 30. */
  timeout?: number;
  /** Answers pages of records; the property that identifies a record. */
  list?: string;
  /** The answer may be empty, and a record that is already gone is a success. */
  deletes?: true;
  /** What the status shows of a success, where the answer is no list. */
  done?: string;
}

const REPORT = "#87A980";
const PROJECT = "#3FADB5";

const search: Param = {
  kind: "text",
  place: "query",
  label: "Search",
  example: "pricing",
  help: "Free text to search for.",
};
const searchBy = (values: Record<string, string>): Param => ({
  kind: "choice",
  place: "query",
  label: "Search by",
  values,
  default: String(Object.keys(values)[0]),
  help: "The field to search in.",
});
const sortBy = (values: Record<string, string>): Param => ({
  kind: "choice",
  place: "query",
  label: "Sort by",
  values,
  default: String(Object.keys(values)[0]),
  help: "The field to sort by.",
});
const sort: Param = {
  kind: "choice",
  place: "query",
  label: "Order",
  values: { desc: "Descending", asc: "Ascending" },
  default: "desc",
  help: "The sort direction.",
};
const perPage: Param = {
  kind: "choice",
  place: "query",
  label: "Records per page",
  values: { 10: "10", 25: "25", 50: "50", 100: "100" },
  default: "10",
  help: "Outputs that read all pages use 100 unless you set this.",
};
const paging = { sort, per_page: perPage };
const project: Param = {
  kind: "text",
  place: "query",
  label: "Project",
  example: "example.com",
  suggest: "seo-project-list",
  help: "The name of a project.",
};
const result: Param = {
  kind: "choice",
  place: "query",
  label: "Result",
  values: { good: "Good", decent: "Decent", bad: "Bad" },
  help: "Only list reports with this result.",
};
const reportId: Param = {
  kind: "segment",
  place: "path",
  wire: "id",
  label: "Report ID",
  required: true,
  example: "27",
  suggest: "seo-report-list",
  help: "The ID of the report.",
};
const privacy: Param = {
  kind: "choice",
  place: "form",
  label: "Privacy",
  values: { 0: "Public", 1: "Private", 2: "Password" },
  help: "Who can view the report page.",
};
const password: Param = {
  kind: "secret",
  place: "form",
  label: "Password",
  when: { privacy: "2" },
  help: "Password for the report page. Used only when Privacy is set to Password.",
};
const update: Param = {
  kind: "flag",
  place: "form",
  label: "Regenerate",
  values: { 0: "No", 1: "Yes" },
  default: "0",
  help: "Fetch the page again and regenerate the report.",
};
const url: Param = {
  kind: "text",
  place: "form",
  label: "URL",
  required: true,
  example: "https://example.com/pricing",
  help: "The URL of the web page to analyze.",
};

const output: Field = {
  kind: "choice",
  label: "Output",
  values: { body: "Full response", data: "Response data" },
  default: "body",
  help: "What the message payload contains.",
};
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
const single = { output };
const listing: Record<string, Field> = {
  output: { ...output, values: { ...output.values, ...collected } },
  limit: { ...limit, shown: { output: Object.keys(collected) } },
};
const method: Field = {
  kind: "choice",
  label: "Method",
  values: { PUT: "PUT", PATCH: "PATCH" },
  default: "PUT",
  help: "The HTTP method. The service treats both the same.",
};

/**
 * Every operation of the service, by node type, as its own document has them. The one list that all else is made from;
 * hence the length of this file.
 */
export const operations: Record<string, Operation> = {
  "seo-report-list": {
    title: "list reports",
    help: "Lists the reports in the account. You can search, filter and sort them.",
    returns: "The reports: one page, or all pages as set in Output.",
    color: REPORT,
    method: "GET",
    path: "/api/v1/reports",
    list: "id",
    options: listing,
    params: {
      search,
      search_by: searchBy({ url: "URL" }),
      project,
      result,
      sort_by: sortBy({ id: "Date created", generated_at: "Date generated", url: "URL", score: "Score" }),
      ...paging,
    },
  },
  "seo-report-show": {
    title: "show report",
    help: "Gets a report by its ID.",
    returns: "The report.",
    color: REPORT,
    method: "GET",
    path: "/api/v1/reports/{id}",
    main: "reportId",
    done: "shown",
    options: single,
    params: { reportId },
  },
  "seo-report-store": {
    title: "store report",
    help: "Submits a URL. The service analyzes the page and creates a report.",
    returns: "The new report.",
    color: REPORT,
    method: "POST",
    path: "/api/v1/reports",
    once: () => true,
    lookup: { list: "seo-report-list", show: "seo-report-show", change: "seo-report-update" },
    timeout: 120,
    main: "url",
    done: "stored",
    options: single,
    params: {
      url,
      privacy: { ...privacy, default: "0" },
      password,
    },
  },
  "seo-report-update": {
    title: "update report",
    help: "Changes a report's privacy, or regenerates the report.",
    returns: "The updated report.",
    color: REPORT,
    method: "PUT",
    path: "/api/v1/reports/{id}",
    once: (input) => input.update === "1",
    lookup: { show: "seo-report-show" },
    timeout: 120,
    main: "reportId",
    done: "updated",
    options: { method, ...single },
    params: {
      reportId,
      privacy,
      password,
      update,
    },
  },
  "seo-report-delete": {
    title: "delete report",
    help: "Deletes a report. This cannot be undone.",
    returns: "The service's response, or null if it is empty.",
    color: REPORT,
    method: "DELETE",
    path: "/api/v1/reports/{id}",
    deletes: true,
    main: "reportId",
    done: "deleted",
    options: single,
    params: { reportId },
  },
  "seo-project-list": {
    title: "list projects",
    help: "Lists the projects in the account. You can search and sort them.",
    returns: "The projects: one page, or all pages as set in Output.",
    color: PROJECT,
    method: "GET",
    path: "/api/v1/projects",
    list: "project",
    options: listing,
    params: {
      search,
      search_by: searchBy({ project: "Name" }),
      sort_by: sortBy({ created_at: "Date created", project: "Name" }),
      ...paging,
    },
  },
  "seo-project-delete": {
    title: "delete project",
    help: "Deletes a project and all its reports. This cannot be undone.",
    returns: "The service's response, or null if it is empty.",
    color: PROJECT,
    method: "DELETE",
    path: "/api/v1/projects/{project}",
    deletes: true,
    main: "project",
    done: "deleted",
    options: single,
    params: { project: { ...project, kind: "segment", place: "path", required: true } },
  },
};

/** The node that lists reports and says what changed since the last time. */
export const changes: NodeType = {
  title: "report changes",
  help: "Sends a message for each report that was created, changed or deleted since the last run.",
  returns: "The new or changed report. For a deleted report, its last known values.",
  color: REPORT,
  params: { search, search_by: searchBy({ url: "URL" }), project, result },
  options: {
    changes: {
      kind: "choice",
      label: "Changes",
      values: { all: "All", created: "Created", changed: "Changed", deleted: "Deleted" },
      default: "all",
      help: "Which changes to send.",
    },
    threshold: {
      kind: "count",
      label: "Threshold",
      min: 0,
      example: "5",
      help: "Minimum score difference, in points, that counts as a change. Blank: any difference in a report counts, including its dates.",
    },
    first: {
      kind: "choice",
      label: "First run",
      values: { none: "Send nothing", created: "Send all reports as created" },
      default: "none",
      help: "What to send when there is nothing to compare with yet.",
    },
    store: {
      kind: "text",
      label: "Context store",
      example: "file",
      help: "The context store that holds the last known reports. Blank: the default store. Unless contextStorage is configured in Node-RED's settings, a restart or a redeploy of this node clears it.",
    },
    limit: { ...limit, default: "" },
  },
};

/** The properties of the config node. Its API key is a credential, and so in no list of properties. */
export const service: Record<string, Field> = {
  baseUrl: {
    kind: "text",
    label: "Base URL",
    required: true,
    pattern: "https?://[^\\s/?#@]+(/[^\\s?#]*)?",
    example: "https://seo.example.com",
    help: "The URL of the service, without /api/v1. Use ${NAME} for an environment variable.",
  },
  timeout: {
    kind: "count",
    label: "Timeout",
    min: 1,
    example: "30",
    help: "Maximum time for one attempt, in seconds. Blank: 30, or 120 to create or update a report.",
  },
  concurrency: {
    kind: "count",
    label: "Concurrency",
    min: 1,
    default: "4",
    help: "Maximum number of concurrent requests.",
  },
  rate: {
    kind: "count",
    label: "Rate limit",
    min: 1,
    unlimited: true,
    help: "Maximum number of requests per minute. Blank: no limit.",
  },
  queue: { kind: "count", label: "Queue size", min: 0, default: "10000", help: "Maximum number of waiting messages." },
  retries: {
    kind: "count",
    label: "Retries",
    min: 0,
    default: "3",
    help: "How many times to retry a failed request, if that is safe.",
  },
  tls: {
    kind: "node",
    node: "tls-config",
    label: "TLS",
    help: "Only needed for a private certificate authority or a client certificate.",
  },
  proxy: {
    kind: "node",
    node: "http proxy",
    label: "Proxy",
    help: "Blank: use the environment variables HTTP_PROXY, HTTPS_PROXY and NO_PROXY.",
  },
};
