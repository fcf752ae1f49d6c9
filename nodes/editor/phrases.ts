import type { Stage } from "../../src/errors.js";
import type { ConfigType } from "../../src/operations.js";

/** The result of a connection test at each stage that it can reach: what failed, and the remedy. */
export const stages = {
  "seo-service": {
    config:
      "The base URL, the API key or another setting is missing or not valid. Check the settings of the SEO service node.",
    variable:
      "The environment variable __name__ is not set. Set it in the environment of the Node-RED process, then restart Node-RED.",
    stored:
      "No API key for this test. A deployed key is used only with the base URL, TLS configuration and proxy that were deployed with it. Enter the API key again, or deploy first.",
    node: "The TLS configuration or the proxy is missing, disabled or not valid. Check the TLS configuration and the proxy under Advanced.",
    name: "The host name could not be resolved. Check the host name in the base URL.",
    connect:
      "Could not connect to the service. Check the host and port in the base URL, and whether the service is running.",
    tls: "The TLS certificate or protocol was not accepted. Check whether the base URL should start with https or http, or choose a TLS configuration that trusts the certificate.",
    proxy:
      "The proxy URL is not valid, or the connection through the proxy failed. Check the proxy's address, user name and password.",
    time: "The service did not respond within 10 s. Check the host and port in the base URL, or try again later.",
    redirect:
      "The service redirected the request to __target__ (__status__). Use the redirect target as the base URL. If it is a login page, check the API key.",
    key: "The service rejected the API key (__status__). Check the API key, and whether your plan includes the API.",
    path: "There is no API at __url__ (__status__). Check the base URL: the host, the port, and the path, which is the part before /api/v1.",
    answer: "The response is not a list of reports. Check the base URL: the server there is not the SEO service.",
    service:
      "The service returned an error (__status__). Try again later. The base URL and the API key are not the cause.",
    unknown: "The connection could not be tested. Try again. If the problem persists, report a bug.",
    done: "Connected. Reports found: __count__. The API key is valid.",
  },
  "seo-queue": {
    config: "The URL or the prefix is missing or not valid. Check the settings of the SEO queue node.",
    variable:
      "The environment variable __name__ is not set. Set it in the environment of the Node-RED process, then restart Node-RED.",
    stored:
      "No URL for this test. A deployed URL is used only with the TLS configuration that was deployed with it. Enter the URL again, or deploy first.",
    node: "The TLS configuration is missing, disabled or not valid. Check the TLS configuration under Advanced.",
    name: "The host name could not be resolved. Check the host name in the URL.",
    connect: "Could not connect to the server. Check the host and port in the URL, and whether the server is running.",
    tls: "The TLS certificate or protocol was not accepted. Check whether the server uses TLS, or choose a TLS configuration that trusts the certificate.",
    time: "The server did not respond before the timeout. Check the host and port in the URL, and whether the server uses TLS.",
    key: "The server rejected the login. Check the user name, the password and the database in the URL, and the user's rights.",
    package:
      "Packages of the queue are not installed. Run this in Node-RED's user directory, then restart Node-RED: __command__",
    version:
      "The server's version is not supported. Use Redis 6.2 or PostgreSQL 13, or newer, and the same version of bullmq on every machine.",
    clock: "The clocks of this machine and of the server differ by __seconds__ s. Synchronize them.",
    unknown: "The connection could not be tested. Try again. If the problem persists, report a bug.",
    done: "Connected: __version__.",
  },
} satisfies Record<ConfigType, Partial<Record<Stage, string>>>;

/** The English texts that belong to no row of the table. `__x__` is a placeholder. */
export const phrases = {
  dialog: {
    advanced: "Advanced",
    fixed: "fixed value",
    example: "e.g. __example__",
    unsent: "not sent",
    default: "default: __value__",
    usual: "Default store",
    idle: "Nothing to change. Set at least one of these: __labels__.",
    least: "__label__ should be at least __other__ (__min__ s). Otherwise, a report could be created twice.",
    test: "Test connection",
    testing: "Testing the connection…",
    untested: "Could not run the test: __reason__",
    unanswered: "No response from Node-RED.",
  },
  invalid: {
    required: "__label__ is required.",
    requiredIf: "__label__ is required if __other__ is __value__.",
    long: "__label__ must be at most __max__ characters long.",
    control: "__label__ must not contain control characters.",
    segment: "__label__ must not be “.” or “..”, and must not contain a slash or backslash.",
    choice: "__label__ must be one of: __values__.",
    server: "__label__ must begin with redis://, rediss:// or postgres://, followed by a host.",
    property: "__label__ must name a property of msg, such as report, but not _msgid, parts, req, res or seo.",
    count: "__label__ must be a whole number, __min__ or greater.",
    pattern: "__label__ must look like this: __example__.",
    when: "__label__ must be blank unless __other__ is __value__.",
    characters: "__label__ contains a character that is not allowed, such as a space or an accented letter.",
  },
  status: {
    requesting: "requesting",
    running: "__running__ in flight, __queued__ queued",
    reconciling: "__count__ reconciling",
    waiting: "waiting __seconds__ s, __queued__ queued",
    paused: "waiting __wait__, __queued__ queued, ~__left__ left",
    summary: "__done__ succeeded, __failed__ failed",
    failed: "__count__ failed",
    page: "page __page__ of __pages__ · __records__ records",
    pageUnknown: "page __page__ · __records__ records",
    record: "1 record",
    records: "__count__ records",
    of: "__count__ of __total__ records",
    issue: "1 issue",
    issues: "__count__ issues",
    noIssues: "no issues",
    noChecks: "no checks in the response",
    changes: "__created__ created, __changed__ changed, __deleted__ deleted",
    checks: "__failed__ failed, __fixed__ fixed",
    overwritten: "The saved state could not be read. This run is treated as the first one.",
    runsDropped:
      "More than __most__ reports were saved. The saved state of the filters used least recently was dropped. The next run with these filters is treated as the first one.",
    dropped: "Waiting messages dropped: __count__",
    uncertain: "Canceled requests that may have taken effect: __count__ (__names__)",
    auditing: "__done__ of __total__",
    left: "__left__ left",
    wait: "waiting __seconds__ s",
    message: "paused",
    standsBy: "stands by",
    pagesReset: "__count__ dropped",
    pagesDropped: "Pages dropped with the node: about __count__",
    pagesLeft:
      "Pages still waiting in __where__: __count__. To continue them, restore Folder, Queue, and the queue's URL and Prefix, and deploy.",
    disk: "not saved, check disk and folder",
    damaged: "batch damaged, repair or reset",
    locked: "folder in use by another instance",
    server: "queue's server unavailable, waiting",
    regenerated: "regenerated",
    fresh: "existing report returned",
    unchanged: "nothing to change",
    baseline: "first run, nothing to compare with",
  },
  sidebar: {
    name: "SEO audits",
    show: "Show in sidebar",
    empty:
      "No audits yet. To start one, deploy an “audit pages” node and send it a list of URLs, for example from an Inject node.",
    forbidden: "You do not have the permission to see audits.",
    pace: "__count__ a minute",
    ended: "finished",
    created: "__count__ created",
    regenerated: "__count__ regenerated",
    fresh: "__count__ up to date",
    uncertain: "__count__ uncertain",
    pause: "Pause",
    resume: "Resume",
    retry: "Retry failed",
    reset: "Reset",
    question: "Waiting pages that are dropped: __count__. Failed pages can no longer be retried.",
    rows: "Failed rows (__count__)",
    more: "Show more",
    copy: "Copy as CSV",
    copied: "Copied rows: __count__",
    uncopied: "The browser did not allow copying.",
    candidates: "Reports that may have been created or updated: __reports__",
  },
  record: {
    url: "without the scheme",
    reports: "number of reports",
    result: "`good`, `decent` or `bad`",
    results: "result of each check",
    password: "true if one is set",
    generated_at: "date of the last analysis",
  },
  help: {
    inputs: "Inputs",
    outputs: "Outputs",
    errors: "Errors",
    settings: "Settings",
    details: "Details",
    references: "References",
    choices: "One of: __values__.",
    unsent: "Service default: __value__.",
    default: "Default: __value__.",
    initial: "In a new node: __value__.",
    main: "The value can be `msg.payload` itself, or be in an object: a report, a project, or a response with one in `data`.",
    secret: "A fixed value is saved in the flow as plain text. Use an environment variable to keep it out of the flow.",
    seo: "Details of the request: __properties__.",
    result: "Details of the page and its outcome: __properties__.",
    progress:
      "Progress of the batch, sent at most every 5 seconds, when a pause begins or ends, and at the end: __properties__.",
    batch: "Name of the batch.",
    control:
      "A message with `msg.pause`, `msg.resume`, `msg.retry` or `msg.reset` set to `true` controls a batch. `pause` starts no further request, and `resume` continues, also after errors. `retry` requests failed and uncertain pages again; `reset` drops waiting pages. The name of the batch is `msg.batch` or `msg.topic`. If both are blank, the message applies to all batches.",
    record: "Properties, if the service returns them: __properties__.",
    issue:
      "An issue describes a check: `report` (its ID), `url`, `project`, `check`, `importance`, `value`, `errors` (at most 10) and `omitted` (the number of further errors).",
    failure:
      "Errors go to Catch nodes, with the details in `msg.seo.error`. `msg.payload` is unchanged. See the README for the error codes.",
    sources:
      "In a new node, inputs are read from the properties of `msg` listed here, or have fixed values. In the edit dialog, each input can be a fixed value, a property of `msg`, a flow or global variable, an environment variable (just the name, without `${}`) or a JSONata expression. Blank values are not sent.",
    request: "Sends __request__.",
    readme: "Documentation",
    codes: "Error codes",
  },
};
