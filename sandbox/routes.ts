import { NOT_FOUND, ok, pageOf, projectRecord, reportRecord } from "./answers.js";
import { PROJECT_ORDERS, REPORT_ORDERS } from "./orders.js";
import type { Report, Reports } from "./reports.js";
import { type Answer, type Fields, oneOf, pageNumber, type Rules, text, webAddress } from "./rules.js";

/** `key` is what the route's path has in brackets, decoded; `place` is the URL without its query. */
type Call = { reports: Reports; fields: Fields; key: string; place: string };

export type Route = {
  methods: string[];
  path: RegExp;
  query?: Rules;
  form?: Rules;
  required?: string[];
  answer: (call: Call) => Answer;
};

const REPORTS = /^\/api\/v1\/reports$/;
const REPORT = /^\/api\/v1\/reports\/([1-9]\d{0,14})$/;
const PROJECTS = /^\/api\/v1\/projects$/;
const PROJECT = /^\/api\/v1\/projects\/([^/]+)$/;

const PAGING: Rules = { sort: oneOf("asc", "desc"), per_page: oneOf("10", "25", "50", "100"), page: pageNumber };
const PRIVACY: Rules = { privacy: oneOf("0", "1", "2"), password: text };

/**
 * All that the service does. Written from the service's document and never from ../src, so that client and sandbox check each other.
 * `page` is the one parameter that the document does not show.
 */
export const ROUTES: Route[] = [
  {
    methods: ["GET"],
    path: REPORTS,
    query: {
      search: text,
      search_by: oneOf("url"),
      project: text,
      result: oneOf("good", "decent", "bad"),
      sort_by: oneOf(...Object.keys(REPORT_ORDERS)),
      ...PAGING,
    },
    answer: ({ reports, fields, place }) => pageOf(reports.list(fields), reportRecord, fields, place),
  },
  {
    methods: ["POST"],
    path: REPORTS,
    form: { url: webAddress, ...PRIVACY },
    required: ["url"],
    answer: ({ reports, fields }) => item(reports.store(fields), 201),
  },
  {
    methods: ["GET"],
    path: REPORT,
    answer: ({ reports, key }) => item(reports.get(Number(key))),
  },
  {
    methods: ["PUT", "PATCH"],
    path: REPORT,
    form: { ...PRIVACY, update: oneOf("0", "1") },
    answer: ({ reports, key, fields }) => item(reports.update(Number(key), fields)),
  },
  {
    methods: ["DELETE"],
    path: REPORT,
    answer: ({ reports, key }) =>
      reports.remove(Number(key)) ? ok({ id: Number(key), object: "report", deleted: true }) : NOT_FOUND,
  },
  {
    methods: ["GET"],
    path: PROJECTS,
    query: { search: text, search_by: oneOf("project"), sort_by: oneOf(...Object.keys(PROJECT_ORDERS)), ...PAGING },
    answer: ({ reports, fields, place }) => pageOf(reports.projects(fields), projectRecord, fields, place),
  },
  {
    methods: ["DELETE"],
    path: PROJECT,
    answer: ({ reports, key }) =>
      reports.removeProject(key) > 0 ? ok({ project: key, object: "project", deleted: true }) : NOT_FOUND,
  },
];

function item(report: Report | undefined, status = 200): Answer {
  return report ? ok({ data: reportRecord(report) }, status) : NOT_FOUND;
}
