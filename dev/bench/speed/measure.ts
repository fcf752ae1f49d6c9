/** Sends one request and passes on the body of its response, or the error. */
export type Send = (received: (body: unknown) => void) => void;

export interface Figures {
  /** Requests per second. */
  rate: number;
  /** Processor time of the whole process per request, in microseconds. */
  cpu: number;
  /** The 99th percentile of the latency in milliseconds. */
  p99: number;
}

/** Measures after `warm` milliseconds, for at least `ms` and as many `requests` as an average needs on a slow machine. */
export interface Span {
  warm: number;
  ms: number;
  requests: number;
}

/** The value below which `share` of the sorted values lie. */
const quantile = (sorted: ArrayLike<number>, share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;

export const median = (values: number[]) => quantile(Float64Array.from(values).sort(), 0.5);

/** Keeps `inFlight` requests in flight and measures them. */
export function measure(send: Send, inFlight: number, { warm, ms, requests }: Span): Promise<Figures> {
  return new Promise((resolve, reject) => {
    let latencies: number[] = [];
    let running = 0;
    let figures: Figures | undefined;
    let began = performance.now();
    let usage: NodeJS.CpuUsage | undefined;

    /** Starts or ends the measured span when it is time. */
    function count(now: number): void {
      if (!usage) {
        if (now - began < warm) return;
        latencies = [];
        began = now;
        usage = process.cpuUsage();
      } else if (now - began >= ms && latencies.length >= requests) {
        const { user, system } = process.cpuUsage(usage);
        const sorted = Float64Array.from(latencies).sort();
        figures = {
          rate: sorted.length / ((now - began) / 1000),
          cpu: (user + system) / sorted.length,
          p99: quantile(sorted, 0.99),
        };
      }
    }

    function next(): void {
      running++;
      const sent = performance.now();
      send((body) => {
        running--;
        if (!Array.isArray(Object(body).data)) return reject(new Error(`Not a page: ${JSON.stringify(body)}`));
        const now = performance.now();
        latencies.push(now - sent);
        if (!figures) count(now);
        if (!figures) next();
        else if (running === 0) resolve(figures);
      });
    }

    for (let i = 0; i < inFlight; i++) next();
  });
}
