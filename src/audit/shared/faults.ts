import { unescape as decode } from "node:querystring";
import { SeoError, type Stage } from "../../errors.js";
import { Refusal, Trouble } from "../trouble.js";

/** The server was emptied, or restarted without its last data. */
export const lostData = new Error("has lost data");

/** The failure of the server, and the stage of a connection test that usually ends with it. */
const rejects: [does: string, stage: Stage] = ["rejects the connection", "key"];
const fails: typeof rejects = ["reports an error", "unknown"];
const away: typeof rejects = ["cannot be reached", "connect"];

type Fault = [kind: typeof rejects, pattern: RegExp, reason: string, stage?: Stage];

/** By the code, the name or the message of an error. The first that matches counts. */
const faults: Fault[] = [
  [rejects, /^28P01$|WRONGPASS|invalid (username-)?password/, "the user name or password in the queue's URL is wrong"],
  [rejects, /NOAUTH|Authentication required|password must be a string/, "it requires a password in the queue's URL"],
  [
    rejects,
    /NOPERM|user executing the script can't/,
    "the user must be allowed to use all commands on the keys with the queue's prefix",
  ],
  [rejects, /no pg_hba.conf entry .*no encryption/, "it requires TLS", "tls"],
  [rejects, /^28000$/, "the user is not allowed to log in"],
  [rejects, /^3D000$/, "the database does not exist"],
  [rejects, /^(42501|SchemaMigrationRequiredError)$/, "the user must be allowed to create a schema in the database"],
  [rejects, /^UnsupportedPostgresVersionError$/, "PostgreSQL 13 or later is required", "version"],
  [rejects, /^SchemaVersionMismatchError$/, "its schema is of another version of BullMQ", "version"],
  [fails, /^OOM |^53200$/, "its memory is full"],
  [fails, /^MISCONF |^53100$/, "it cannot write to its disk"],
  [fails, /^READONLY |^25006$/, "it is read-only, as a replica is"],
  [fails, /^53300$/, "it has too many connections"],
  [away, /^57P0[12]$/, "it is shutting down"],
  [away, /^57P03$/, "it is not ready"],
  [away, /^ECONNREFUSED$/, "connection refused"],
  [away, /^ECONNRESET$/, "connection reset"],
  [away, /^EPIPE$/, "connection closed"],
  [away, /^(ENOTFOUND|EAI_AGAIN)$/, "unknown host", "name"],
  [away, /^ETIMEDOUT$/, "timed out", "time"],
  [away, /^EHOSTUNREACH$/, "host unreachable"],
  [away, /^ENETUNREACH$/, "network unreachable"],
  [rejects, /CERT|certificate|SSL|TLS|ALTNAME/i, "TLS failed (%s)", "tls"],
  [away, /time(d )?out/i, "timed out", "time"],
  [away, /clos|end|terminat|connect/i, "connection closed"],
  [away, /LOADING/, "it is starting"],
];

/** The server is empty, or older than what it said before. PostgreSQL then lacks a schema, a table or a function. */
export const isLoss = (cause: unknown): boolean =>
  cause === lostData ||
  ["3F000", "42P01", "42883"].includes(Object(cause).code) ||
  /^could not open relation/.test(Object(cause).message);

/** So many lost batches are named. */
const MOST_NAMED = 5;

/** `batches`: the names of those that have not finished. */
function lossOf(batches: string[]): Trouble {
  const named = batches.slice(0, MOST_NAMED).map((name) => JSON.stringify(name));
  const more = batches.length > MOST_NAMED ? [`${batches.length - MOST_NAMED} more`] : [];
  const names = batches.length > 0 ? ` (${[...named, ...more].join(", ")})` : "";
  const sentence = `The queue's server has lost data: send the unfinished lists${names} again in a minute, with “Regenerate it” and a Maximum age.`;
  return new Trouble("emptied", sentence);
}

/** A driver's exception, as an error that names the server, but neither user nor password. */
export function fromServer(thrown: unknown, url: URL, batches: string[] = []): SeoError {
  if (thrown instanceof SeoError) return thrown;
  if (isLoss(thrown)) return lossOf(batches);
  // A transaction of Redis fails with the error of its first command only in here.
  const cause = Object(thrown).previousErrors?.[0] ?? thrown;
  const { message = "", code = "", name = "" } = Object(cause) as NodeJS.ErrnoException;
  const said = [url.password, url.username]
    .flatMap((text) => [text, decode(text)])
    .reduce((text, secret) => (secret ? text.replaceAll(secret, "…") : text), message);
  const other: Fault = [fails, /$/, `${said.slice(0, 200)} (${code || name})`];
  const isCause = ([, pattern]: Fault) => [code, name, message].some((text) => pattern.test(text));
  const [kind, , reason, stage = kind[1]] = faults.find(isCause) ?? other;
  const why = reason.replace("%s", () => code || said.slice(0, 80));
  const sentence = `The queue's server ${url.host} ${kind[0]}: ${why}.`;
  return kind === rejects
    ? new Refusal("SEO_CONFIG", sentence, { stage, place: "seo-queue" })
    : new Trouble("server", sentence, { stage });
}

/** Trying again is of no use. */
export const isHopeless = (error: SeoError): boolean => error.code === "SEO_CONFIG";
