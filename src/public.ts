/** The package as a library: what `@seo-reports/node-red/client` exports. Everything else is internal. */
import { createClient as connect } from "./client.js";
import type { ProxyOptions, TlsOptions } from "./config.js";
import { invalidParams, SeoError } from "./errors.js";
import { type ListPage, readPages } from "./lists.js";
import { type operations, rowOf, service } from "./operations.js";
import type { CallResponse as Response } from "./responses.js";
import { submit } from "./submit.js";

export type { ProxyOptions, TlsOptions } from "./config.js";
export type { Code, Details } from "./errors.js";
export type { Response };
export { SeoError };

/** An operation of the service, by its node type. */
export type Operation = keyof typeof operations;

type Row<O extends Operation> = (typeof operations)[O];

/** An operation that returns a list. */
export type List = { [O in Operation]: [NonNullable<Row<O>["list"]>] extends [never] ? never : O }[Operation];

type Value = string | number | boolean;

/** A choice has the values in the reference, or is blank. */
type ValueOf<P> = P extends { kind: "choice"; values: infer V }
  ? keyof V | `${keyof V & (string | number)}` | ""
  : Value;

/** The parameters of an operation, by the names in the reference. Blank values are not sent. */
export type Input<O extends Operation> = {
  [Name in keyof Row<O>["params"]]?: ValueOf<Row<O>["params"][Name]> | undefined;
} & { [Name in NonNullable<Row<O>["main"]>]: Value };

/** It can be omitted if nothing is required. */
type Arguments<O extends Operation> = Record<never, never> extends Input<O> ? [input?: Input<O>] : [input: Input<O>];

type Settings = {
  [Name in keyof typeof service]?: ((typeof service)[Name]["kind"] extends "count" ? number : string) | undefined;
};

/** The settings of an SEO service node. A setting that is missing or undefined has the value of a new node. */
export interface ClientOptions extends Omit<Settings, "queue" | "tls" | "proxy"> {
  /** URL of the service, without /api/v1. */
  baseUrl: string;
  apiKey: string;
  tls?: TlsOptions | undefined;
  proxy?: ProxyOptions | undefined;
}

/** A page of a list that is read completely. */
export type Page = Omit<ListPage<Response>, "isLast">;

/** One account of the service. All calls share its limits. */
export interface Client {
  /** Validates the input and sends the request, with the retries that are safe. Rejects with an SeoError. */
  call<O extends Operation>(operation: O, ...input: Arguments<O>): Promise<Response>;
  /** Reads a list to its end. A page is requested when it is needed. Rejects with an SeoError. */
  pages<L extends List>(operation: L, ...input: Arguments<L>): AsyncIterable<Page>;
  /** Cancels what is in flight or waiting, with SEO_CANCELLED, and closes the connections. */
  close(): Promise<void>;
}

/** A lookup waits on a timer that lets the process end. Node-RED keeps running because of its server; a script needs this. */
async function keepAlive<Value>(work: () => Promise<Value>): Promise<Value> {
  const alive = setInterval(() => {}, 60_000);
  return work().finally(() => clearInterval(alive));
}

/** The input of an operation. Throws SEO_INPUT if a name is none of its parameters: a misspelled privacy would publish a report. */
function inputOf(operation: string, input?: object): Record<string, unknown> {
  const { params } = rowOf(operation);
  const given: Record<string, unknown> = { ...input };
  const unknown = Object.keys(given).filter((name) => !Object.hasOwn(params, name));
  const allowed = Object.keys(params).join(", ");
  const sentence = (name: string) => `${operation} has no parameter ${JSON.stringify(name)}, only: ${allowed}.`;
  if (unknown.length > 0) throw invalidParams(Object.fromEntries(unknown.map((name) => [name, sentence(name)])));
  return given;
}

/** Opens an account of the service. Nothing is sent. Throws SEO_CONFIG if an option is invalid. */
export function createClient(options: ClientOptions): Client {
  const client = connect({ ...options, reconcile: options?.reconcile ?? service.reconcile.initial });
  return {
    call: (operation, input?: object) =>
      keepAlive(async () => {
        const values = client.validate(rowOf(operation), inputOf(operation, input));
        return submit(client, operation, values);
      }),

    async *pages(operation, input?: object) {
      const row = rowOf(operation);
      if (!row.list) throw new SeoError("SEO_INPUT", `${operation} does not return a list.`);
      const given = inputOf(operation, input);
      const values = client.validate(row, { ...given, per_page: given.per_page ?? "100" }, {});
      const get = (extra: Record<string, string>) => keepAlive(() => client.request(operation, values, { extra }));
      for await (const { isLast: _, ...page } of readPages(get, values, { id: row.list })) yield page;
    },

    close: () => client.close(),
  };
}
