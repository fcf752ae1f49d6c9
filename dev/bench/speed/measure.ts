import { spawnSync } from "node:child_process";
import { cpus } from "node:os";

/** Requests in flight. */
export const IN_FLIGHT = 32;
/** Requests of one measurement, and of the warm-up before it. */
const COUNT = 16_000;
const WARM_UP = 2 * COUNT;

export interface Figures {
  /** Requests per second. */
  rate: number;
  /** Processor time of the whole process per request, in microseconds. */
  cpu: number;
  /** The 99th percentile of the latency in milliseconds. */
  p99: number;
}

/** The value below which `share` of the values lie. */
const quantile = (values: number[], share: number): number =>
  Float64Array.from(values).sort()[Math.floor(values.length * share)] ?? Number.NaN;

export const median = (values: number[]) => quantile(values, 0.5);

/** Keeps this process, and all that it starts, on one processor, if there are two and the system can. */
export function pin(processor: 0 | 1): void {
  if (cpus().length > 1) spawnSync("taskset", ["-a", "-p", "-c", String(processor), String(process.pid)]);
}

/** Sends `count` requests, so many at a time. Returns the milliseconds that each one took. */
export async function sendAll(request: () => Promise<unknown>, inFlight: number, count: number): Promise<number[]> {
  const latencies: number[] = [];
  let sent = 0;
  const sendInTurn = async () => {
    while (sent < count) {
      sent++;
      const began = performance.now();
      const body = await request();
      latencies.push(performance.now() - began);
      if (!Array.isArray(Object(body).data)) throw new Error(`Not a page: ${JSON.stringify(body)}`);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, sendInTurn));
  return latencies;
}

/** Measures requests after a warm-up, in which their code is compiled. */
export async function measure(request: () => Promise<unknown>): Promise<Figures> {
  await sendAll(request, IN_FLIGHT, WARM_UP);
  const began = performance.now();
  const usage = process.cpuUsage();
  const latencies = await sendAll(request, IN_FLIGHT, COUNT);
  const { user, system } = process.cpuUsage(usage);
  const rate = COUNT / ((performance.now() - began) / 1000);
  return { rate, cpu: (user + system) / COUNT, p99: quantile(latencies, 0.99) };
}
