import { unescape as decode } from "node:querystring";
import { SeoError, type Stage } from "../../errors.js";
import { Trouble } from "../trouble.js";

/** The server was emptied, or restarted without its last data. */
export const lostData = new Error("has lost data");

/** A package is not installed. `client`: the package that is needed besides bullmq. */
export function missing(name: string, client: string, cause: unknown): unknown {
  const { code } = Object(cause) as NodeJS.ErrnoException;
  if (code !== "ERR_MODULE_NOT_FOUND" && code !== "MODULE_NOT_FOUND") return cause;
  // All machines need the same version of bullmq.
  const command = `npm install --save-exact bullmq@6.7.0 ${client}`;
  const sentence = `The package ${name} is not installed: run "${command}" in the Node-RED user directory, and restart Node-RED.`;
  return new SeoError("SEO_CONFIG", sentence, { stage: "package", values: { command } });
}

const wrongPassword = "the user name or password in the queue's URL is wrong";

const refused: Record<string, string> = {
  "28P01": wrongPassword,
  "28000": "the user is not allowed to log in",
  "3D000": "the database does not exist",
  "42501": "the user must be allowed to create a schema in the database",
};

const timedOut: [string, Stage] = ["timed out", "time"];

const unreachable: Record<string, [reason: string, stage?: Stage]> = {
  "57P01": ["it is shutting down"],
  "57P02": ["it is shutting down"],
  "57P03": ["it is not ready"],
  ECONNREFUSED: ["connection refused"],
  ECONNRESET: ["connection reset"],
  EPIPE: ["connection closed"],
  ENOTFOUND: ["unknown host", "name"],
  EAI_AGAIN: ["unknown host", "name"],
  ETIMEDOUT: timedOut,
  EHOSTUNREACH: ["host unreachable"],
  ENETUNREACH: ["network unreachable"],
};

const words: [pattern: RegExp, reason: [string, Stage?]][] = [
  [/time(d )?out/i, timedOut],
  [/clos|end|terminat|connect/i, ["connection closed"]],
  [/LOADING/, ["it is starting"]],
];

/** What a server that responds cannot do, by the words of Redis and the codes of PostgreSQL. */
const failing: [pattern: RegExp, reason: string][] = [
  [/^OOM |^53200$/, "its memory is full"],
  [/^MISCONF |^53100$/, "it cannot write to its disk"],
  [/^53300$/, "it has too many connections"],
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
  const sentence = `The queue's server has lost data: send the unfinished lists${names} again in a minute, with a Maximum age.`;
  return new Trouble("server", sentence);
}

/** What a driver threw, as an error that names the server, but neither user nor password. */
export function fromServer(thrown: unknown, url: URL, batches: string[] = []): SeoError {
  if (thrown instanceof SeoError) return thrown;
  if (isLoss(thrown)) return lossOf(batches);
  // A transaction of Redis fails with the error of its first command only in here.
  const cause = Object(thrown).previousErrors?.[0] ?? thrown;
  const { message = "", code = "", name = "" } = Object(cause) as NodeJS.ErrnoException;
  const isRedis = url.protocol.startsWith("redis");
  const server = `The queue's server ${url.host}`;
  const config = (reason: string, stage: Stage = "key") =>
    new SeoError("SEO_CONFIG", `${server} rejects the connection: ${reason}.`, { stage });
  if (/WRONGPASS|invalid (username-)?password/.test(message)) return config(wrongPassword);
  if (/NOAUTH|Authentication required|password must be a string/.test(message))
    return config("it requires a password in the queue's URL");
  if (/NOPERM|user executing the script can't/.test(message))
    return config("the user must be allowed to use all commands on the keys with the queue's prefix");
  if (/no pg_hba.conf entry .*no encryption/.test(message)) return config("it requires TLS", "tls");
  const reason = isRedis ? undefined : refused[code];
  if (reason) return config(reason);
  if (name === "SchemaMigrationRequiredError") return config(String(refused["42501"]));
  if (/^(UnsupportedPostgresVersion|SchemaVersionMismatch)Error$/.test(name))
    return config(
      name.startsWith("Unsupported")
        ? "PostgreSQL 13 or later is required"
        : "its schema is of another version of BullMQ",
      "version",
    );
  const [, problem] = failing.find(([pattern]) => pattern.test(message) || pattern.test(code)) ?? [];
  if (problem) return new Trouble("server", `${server} reports an error: ${problem}.`, { stage: "unknown" });
  if (!unreachable[code] && /CERT|certificate|SSL|TLS|ALTNAME/i.test(`${code} ${message}`))
    return config(`TLS failed (${code || message.slice(0, 80)})`, "tls");
  const [why, stage = "connect"] = unreachable[code] ?? words.find(([pattern]) => pattern.test(message))?.[1] ?? [];
  if (why) return new Trouble("server", `${server} cannot be reached: ${why}.`, { stage });
  const said = [url.password, url.username]
    .flatMap((text) => [text, decode(text)])
    .reduce((text, secret) => (secret ? text.replaceAll(secret, "…") : text), message);
  return new Trouble("server", `${server} reports an error: ${said.slice(0, 200)} (${code || name}).`, {
    stage: "unknown",
  });
}

/** Trying again is of no use. */
export const isHopeless = (error: SeoError): boolean => error.code === "SEO_CONFIG";
