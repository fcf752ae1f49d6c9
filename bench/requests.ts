import { contenders, loads } from "./contenders.js";
import { startInstance } from "./instance.js";
import type { Figures } from "./measure.js";
import { medians } from "./statistics.js";

export interface Row extends Figures {
  contender: string;
  inFlight: number;
}

/** Until the compiler has done its work. */
const COMPILE = { warm: 0, ms: 0, requests: 4000 };

/** Measures all contenders at all loads, in turns; the first round is only for warming up. */
export async function measureRequests(origin: string, { rounds, ms }: { rounds: number; ms: number }): Promise<Row[]> {
  const instances = new Map(Object.keys(contenders).map((name) => [name, startInstance()]));
  const taken = new Map<string, (Figures & { inFlight: number })[]>();
  try {
    for (const [name, { userDir, do: run }] of instances) {
      await run("boot", { userDir, flow: contenders[name]?.flow(origin) ?? [] });
    }
    for (let round = 0; round <= rounds; round++) {
      for (const inFlight of loads) {
        for (const [name, instance] of instances) {
          const span = round === 0 ? COMPILE : { warm: inFlight * 2, ms, requests: inFlight * 4 };
          const figures = await instance.do("measure", { name, origin, inFlight, span });
          const key = `${inFlight} ${name}`;
          if (round > 0) taken.set(key, [...(taken.get(key) ?? []), { inFlight, ...figures }]);
        }
      }
    }
  } finally {
    await Promise.all([...instances.values()].map((instance) => instance.stop()));
  }
  return [...taken].map(([key, all]) => ({ contender: key.slice(key.indexOf(" ") + 1), ...medians(all) }));
}
