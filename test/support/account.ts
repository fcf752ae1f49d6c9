import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { pageKey } from "../../src/address.js";
import { pageOf, type Row, type Shape } from "./lists.js";
import { openLocally } from "./local.js";

export interface Report extends Row {
  id: number | string;
  url: string;
  privacy: number;
  created_at: string;
  generated_at: string;
}

export interface Asked {
  method: string;
  path: string;
  query: URLSearchParams;
  form: URLSearchParams;
  /** Counts the requests with this method and path, or for this page, from 1. */
  nth: number;
}

/**
 * The fate of a store, or of an update with `update=1`. `cut`: a server in front responds with a 504; `given up`: after its
 * timeout, with a 503 and a wait; `hidden`: with a 200 and a page of its own.
 */
export type Fate =
  | "answered"
  | "cut, then carried out"
  | "carried out, then cut"
  | "cut, not carried out"
  | "rejected"
  | "carried out, then rejected"
  | "carried out, then given up"
  | "carried out, then hidden"
  | "hidden, not carried out"
  | "reset"
  | "too many requests"
  | "unauthorized"
  | "never";

export interface AccountOptions {
  fate?: (asked: Asked) => Fate;
  /** Milliseconds before a store takes effect, and after that before the response. */
  latency?: () => number;
  /** Milliseconds until a report is created that is cut before. */
  late?: number;
  shape?: Shape;
  /** The ID of the report that is created as the n-th, from 1. */
  id?: (n: number) => number | string;
  /** Milliseconds that the service's `Date` header is ahead. */
  dateAhead?: number;
  withoutDate?: boolean;
  /** For how many seconds a cache has had its responses, or each of several caches. */
  age?: number | string[];
  /** The page of the server in front. */
  page?: unknown;
  /** Whether the response to a delete is lost. */
  deleted?: () => boolean;
  /** Each request is rejected, with a wait that is too long. */
  limited?: boolean;
  /** Where a page redirects. */
  redirect?: (url: string, nth: number) => string;
  /** Delays or replaces a response to a GET: an error status, or another body. */
  get?: (asked: Asked) => Promise<number | undefined> | number | object | undefined;
}

/** A service with an account of reports, which others can use as well. */
export async function startAccount(options: AccountOptions = {}) {
  const reports: Report[] = [];
  let created = 0;
  const asked: Asked[] = [];
  const counts = new Map<string, number>();

  const date = () => new Date().toISOString();
  function create(url: string, privacy = 0): Report {
    const { id = (n: number) => n } = account.options;
    const report = {
      // No ID is used again, even if its report was deleted.
      id: id(++created),
      url: pageKey(url),
      privacy,
      created_at: date(),
      generated_at: date(),
    };
    reports.push(report);
    return report;
  }
  const send = (response: ServerResponse, status: number, body: unknown) => {
    const json = typeof body !== "string";
    const { withoutDate, dateAhead, age = 0 } = account.options;
    response.setHeader("age", age);
    if (withoutDate) response.sendDate = false;
    if (dateAhead !== undefined) response.setHeader("date", new Date(Date.now() + dateAhead).toUTCString());
    response.setHeader("content-type", json ? "application/json" : "text/html");
    response.writeHead(status).end(json ? JSON.stringify(body) : body);
  };

  async function write(one: Asked, response: ServerResponse, effect: () => Report): Promise<void> {
    const { fate = () => "answered", late = 0, latency } = account.options;
    let report: Report | undefined;
    const carryOut = () => {
      report = effect();
    };
    const cut = () => send(response, 504, "<h1>504 Gateway Time-out</h1>");
    const hide = () => send(response, 200, account.options.page ?? null);
    const reject = () => send(response, 500, { message: "The page could not be fetched." });
    const giveUp = () => send(response.setHeader("retry-after", "1"), 503, "<h1>503 Backend fetch failed</h1>");
    const steps: Record<Fate, (() => unknown)[]> = {
      answered: [carryOut, () => send(response, 200, { data: report })],
      "cut, then carried out": [cut, () => setTimeout(late), carryOut],
      "carried out, then cut": [carryOut, cut],
      "cut, not carried out": [cut],
      rejected: [reject],
      "carried out, then rejected": [carryOut, reject],
      "carried out, then given up": [carryOut, () => setTimeout(10_100), giveUp],
      "carried out, then hidden": [carryOut, hide],
      "hidden, not carried out": [hide],
      reset: [carryOut, () => response.socket?.resetAndDestroy()],
      never: [],
      unauthorized: [() => send(response, 401, { message: "Unauthenticated." })],
      "too many requests": [() => send(response, 429, { message: "Too Many Attempts." })],
    };
    for (const step of steps[fate(one)]) {
      if (latency) await setTimeout(latency());
      await step();
    }
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname: path, searchParams: query } = new URL(String(request.url), "http://host");
    const { method = "" } = request;
    const form = new URLSearchParams(await text(request));
    const name = form.get("url") ?? `${method} ${path}`;
    const nth = (counts.get(name) ?? 0) + 1;
    counts.set(name, nth);
    const one = { method, path, query, form, nth };
    asked.push(one);
    const id = path.split("/").at(-1);
    const report = reports.findLast((each) => String(each.id) === id);
    if (account.options.limited)
      return send(response.setHeader("retry-after", "3600"), 429, { message: "Too Many Attempts." });
    if (method === "POST") {
      const { redirect = (url: string) => url } = account.options;
      const url = String(form.get("url"));
      return write(one, response, () => create(redirect(url, nth), Number(form.get("privacy") ?? 0)));
    }
    if (method === "GET") {
      const other = await account.options.get?.(one);
      if (typeof other === "number") return send(response, other, "<h1>Sorry</h1>");
      if (other) return send(response, 200, other);
      if (report) return send(response, 200, { data: report });
      if (!path.endsWith("s")) return send(response, 404, { message: "Not found." });
      const { shape } = account.options;
      return send(response, 200, pageOf({ all: reports.toReversed(), ...(shape && { shape }) }, query, "http://host"));
    }
    // A project has the reports of a host.
    const ofProject = reports.filter(({ url }) => url.startsWith(`${id}/`));
    if (method === "DELETE" && (report || ofProject.length > 0)) {
      for (const one of report ? [report] : ofProject) reports.splice(reports.indexOf(one), 1);
      if (account.options.deleted?.()) return void response.socket?.destroy();
      return send(response, 200, {});
    }
    if (!report) return send(response, 404, { message: "Not found." });
    const change = () => {
      if (form.get("update") === "1") report.generated_at = date();
      if (form.has("privacy")) report.privacy = Number(form.get("privacy"));
      return report;
    };
    if (form.get("update") === "1") return write(one, response, change);
    send(response, 200, { data: change() });
  }

  const server = createServer((request, response) => {
    serve(request, response).catch(() => response.destroy());
  });
  const { url, close } = await openLocally(server);
  const account = {
    url,
    options,
    reports,
    asked,
    /** Creates a report for somebody else. */
    create,
    /** How many requests were received with a method, and on a list or on one report. */
    count: (method: string, list = method === "POST") =>
      asked.filter((one) => one.method === method && one.path.endsWith("/reports") === list).length,
    close,
  };
  return account;
}

export type Account = Awaited<ReturnType<typeof startAccount>>;
