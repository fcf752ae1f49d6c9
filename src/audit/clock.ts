import { readFileSync, readlinkSync } from "node:fs";

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

/** Which boot, and whose clock since then. Blank where that is not known: only Linux says it. */
function readBoot(): string {
  try {
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()} ${readlinkSync("/proc/self/ns/time")}`;
  } catch {
    return "";
  }
}

const boot = readBoot();
/** Undefined where no two processes can compare it. */
export const moment = (): Moment | undefined =>
  boot === "" ? undefined : { boot, at: Number(process.hrtime.bigint() / 1_000_000n) };
