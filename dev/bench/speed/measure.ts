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

/** The value below which `share` of the values lie. */
const quantile = (values: number[], share: number): number =>
  Float64Array.from(values).sort()[Math.floor(values.length * share)] ?? Number.NaN;

export const median = (values: number[]) => quantile(values, 0.5);

/** Keeps `inFlight` requests in flight, and measures `count` of them, after a warm-up of as many. */
export function measure(send: Send, inFlight: number, count: number): Promise<Figures> {
  return new Promise((resolve, reject) => {
    const latencies: number[] = [];
    let sent = 0;
    let began = 0;
    let usage: NodeJS.CpuUsage;

    function end(now: number): void {
      const { user, system } = process.cpuUsage(usage);
      const p99 = quantile(latencies.slice(count), 0.99);
      resolve({ rate: count / ((now - began) / 1000), cpu: (user + system) / count, p99 });
    }

    function next(): void {
      if (sent === 2 * count) return;
      sent++;
      const start = performance.now();
      send((body) => {
        if (!Array.isArray(Object(body).data)) return reject(new Error(`Not a page: ${JSON.stringify(body)}`));
        const now = performance.now();
        const received = latencies.push(now - start);
        if (received === count) {
          began = now;
          usage = process.cpuUsage();
        } else if (received === 2 * count) end(now);
        next();
      });
    }

    for (let i = 0; i < inFlight; i++) next();
  });
}
