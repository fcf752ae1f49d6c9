import { quantile } from "./statistics.js";

/** Asks once, and passes on the answer's body, or whatever came in its place. */
export type Ask = (answered: (body: unknown) => void) => void;

export interface Figures {
  /** Requests a second. */
  rate: number;
  /** Processor time of the whole process for one request, in microseconds. */
  cpu: number;
  /** Latency in milliseconds. */
  median: number;
  p99: number;
}

/** When the measuring begins and ends: after so many milliseconds, and as many requests as a slow machine needs for an average. */
export interface Span {
  warm: number;
  ms: number;
  requests: number;
}

/** Keeps `inFlight` requests on their way, and measures them after a while that does not count. */
export function measure(ask: Ask, inFlight: number, { warm, ms, requests }: Span): Promise<Figures> {
  return new Promise((resolve, reject) => {
    let latencies: number[] = [];
    let running = 0;
    let figures: Figures | undefined;
    let began = performance.now();
    let usage: NodeJS.CpuUsage | undefined;

    /** Called with each answer: begins to count, or ends it, when it is time. */
    function look(now: number): void {
      if (!usage) {
        if (latencies.length < warm) return;
        latencies = [];
        began = now;
        usage = process.cpuUsage();
      } else if (now - began >= ms && latencies.length >= requests) {
        const { user, system } = process.cpuUsage(usage);
        const sorted = Float64Array.from(latencies).sort();
        figures = {
          rate: sorted.length / ((now - began) / 1000),
          cpu: (user + system) / sorted.length,
          median: quantile(sorted, 0.5),
          p99: quantile(sorted, 0.99),
        };
      }
    }

    function next(): void {
      running++;
      const asked = performance.now();
      ask((body) => {
        running--;
        if (!Array.isArray(Object(body).data)) {
          reject(new Error(`No page came, but ${JSON.stringify(body)}`));
          return;
        }
        const now = performance.now();
        latencies.push(now - asked);
        if (!figures) look(now);
        if (!figures) next();
        else if (running === 0) resolve(figures);
      });
    }

    for (let i = 0; i < inFlight; i++) next();
  });
}
