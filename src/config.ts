import { createSecureContext, type SecureContextOptions } from "node:tls";
import { SeoError, type Stage } from "./errors.js";
import { service } from "./operations.js";
import { readSettings } from "./schema.js";
import { parseUrl } from "./url.js";

/** The part of a TLS configuration that undici uses, as Node's `tls.connect` names it. The types need no `@types/node`. */
export interface TlsOptions {
  ca?: string | Uint8Array;
  cert?: string | Uint8Array;
  key?: string | Uint8Array;
  passphrase?: string;
  servername?: string;
  rejectUnauthorized?: boolean;
}

/** A proxy's URL, with its user name and password if it needs them, and the hosts that are reached without it. */
export interface ProxyOptions {
  url: string;
  except?: string[] | undefined;
}

/** A client's options: where the service is, the API key, and the settings of the table, as text or numbers, blank for their defaults. */
export interface ClientOptions extends Partial<Record<keyof typeof service, unknown>> {
  baseUrl: unknown;
  apiKey: unknown;
  tls?: TlsOptions | undefined;
  proxy?: ProxyOptions | undefined;
}

/** The place of the service: `https://host:port`, and the path that all of its own paths follow. */
export interface Base {
  origin: string;
  prefix: string;
}

const invalid = (sentence: string, stage: Stage = "config") => new SeoError("SEO_CONFIG", sentence, { stage });

/** Reads a base URL as people paste it: with a sub-path, a trailing slash, or `/api/v1` at its end. Throws SEO_CONFIG. */
export function parseBase(text: string): Base {
  const refuse = (why: string) => invalid(`The service's base URL ${why}.`);
  if (!/^https?:\/\//i.test(text)) throw refuse("must begin with http:// or https://");
  if (/[?#]/.test(text)) throw refuse("must not contain a query string or fragment");
  const url = parseUrl(text);
  if (!url) throw refuse("is not a valid URL");
  const { origin, pathname, username, password } = url;
  if (username || password) throw refuse("must not contain a user name or password");
  return { origin, prefix: pathname.replace(/(?:\/+api\/v1)?\/*$/, "") };
}

/** Reads an API key, without the spaces that were copied with it. Throws SEO_CONFIG, which does not quote it. */
export function parseKey(value: unknown): string {
  const key = String(value ?? "").trim();
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  const why = key === "" ? "is missing" : "must contain only printable ASCII characters, without spaces or line breaks";
  throw invalid(`The service's API key ${why}.`);
}

/** Throws SEO_CONFIG if Node.js cannot use the TLS options, which are not quoted. */
function checkTls(tls: TlsOptions | undefined): void {
  try {
    if (tls) createSecureContext(tls as SecureContextOptions);
  } catch (cause) {
    throw invalid(`The TLS configuration is not valid (${Object(cause).code}).`, "tls");
  }
}

/** Reads a client's options. Throws SEO_CONFIG. */
export function readConfig({ apiKey, tls, proxy, ...settings }: ClientOptions) {
  const key = parseKey(apiKey);
  checkTls(tls);
  const texts = readSettings(service, settings, "SEO_CONFIG", (name) => name);
  const { timeout, concurrency, rate = Number.POSITIVE_INFINITY, queue, retries, reconcile = 0 } = texts;
  return {
    baseUrl: parseBase(String(texts.baseUrl)),
    apiKey: key,
    tls,
    proxy,
    /** Seconds; undefined is the row's own, or the usual. */
    timeout: timeout === undefined ? undefined : Number(timeout),
    concurrency: Number(concurrency),
    rate: Number(rate),
    queue: Number(queue),
    retries: Number(retries),
    /** Milliseconds; 0 is never. */
    reconcile: Number(reconcile) * 1000,
  } satisfies Record<keyof ClientOptions, unknown>;
}
