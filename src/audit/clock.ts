import { readFileSync } from "node:fs";

/** A moment that processes of one boot can compare, in milliseconds. */
export interface Moment {
  boot: string;
  at: number;
}

/** Time that only rises, and timers. */
export interface Clock {
  /** Milliseconds. */
  now(): number;
  /** Runs something once, later. Returns how to cancel it. */
  later(ms: number, run: () => void): () => void;
}

export const clock: Clock = {
  now: () => performance.now(),
  later(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

const read = (path: string): string => {
  try {
    return readFileSync(path, "utf8").replace(/\s+/g, " ").trim();
  } catch {
    return "";
  }
};

/** Which boot; blank where that is not known: only Linux says it. A container can have its own time since then. */
export const boot = read("/proc/sys/kernel/random/boot_id");
const offsets = read("/proc/self/timens_offsets");
/** Undefined where no two processes can compare it. */
export const moment = (): Moment | undefined =>
  boot === "" ? undefined : { boot: `${boot} ${offsets}`, at: Number(process.hrtime.bigint() / 1_000_000n) };
