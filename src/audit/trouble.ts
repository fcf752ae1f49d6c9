import { type Details, SeoError } from "../errors.js";

/**
 * Why the journals cannot be read or written: the disk, damage, another process that has the folder, the queue's server, or that
 * it has lost them.
 */
type TroubleKind = "disk" | "damaged" | "locked" | "server" | "emptied";

/** Why the audit itself does not send a request: that has not failed. */
export class Refusal extends SeoError {
  override with(): this {
    return this;
  }
}

/** The journals cannot be read or written at the moment. */
export class Trouble extends Refusal {
  constructor(
    readonly kind: TroubleKind,
    message: string,
    details?: Details,
  ) {
    super(kind === "server" || kind === "emptied" ? "SEO_NETWORK" : "SEO_INPUT", message, details);
  }
}

/** Why a batch waits, as a code: that of the error, or the kind of trouble. */
export const reasonOf = (error: SeoError): string => (error instanceof Trouble ? error.kind : error.code);

/** Why a batch cannot be shown, in the words of its progress. */
export const blockedBy = (batch: string, error: SeoError) => ({
  batch,
  reason: reasonOf(error),
  paused: error.message,
});
export type Blocked = ReturnType<typeof blockedBy>;

/** The work of this process was given to another machine, or finished there. */
export const deposed = new Refusal("SEO_CANCELLED", "Another machine has taken it over.");
/** Meanwhile, a message has changed the batch. */
export const outdated = new Refusal("SEO_CANCELLED", "The batch was changed.");

const reasons: Record<string, string> = {
  ENOSPC: "the disk is full",
  // EDQUOT of Linux, for which Node.js has no name.
  "Unknown system error -122": "the disk quota is used up",
  EFBIG: "the file is too large",
  EROFS: "the folder is read-only",
  EACCES: "permission denied",
  EPERM: "permission denied",
  ENOENT: "it does not exist",
  ENOTDIR: "it is not a folder",
  EEXIST: "something else has this name",
};

/** The exception of a file operation, as a Trouble that names the file or folder. Anything else stays as it is. */
export function fromDisk(cause: unknown, path: string): unknown {
  const { code, syscall } = Object(cause) as NodeJS.ErrnoException;
  if (syscall === undefined) return cause;
  return new Trouble("disk", `${path} could not be read or written: ${reasons[String(code)] ?? "error"} (${code}).`);
}

/** Why an entry is not read: its journal has another format. */
export const otherVersion = "another version of this package wrote it";

export function damaged(path: string, line: number, what: string): Trouble {
  const remedy = what === otherVersion ? "Use that version" : "Repair the file";
  return new Trouble("damaged", `${path}, line ${line}: ${what}. Nothing was changed. ${remedy}, or use msg.reset.`);
}
