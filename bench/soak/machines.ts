import { setTimeout as sleep } from "node:timers/promises";
import { startFleet } from "../../test/support/fleet.js";
import { queueServers } from "../../test/support/queues.js";

/** Three machines share an audit, and are killed, frozen, or lose their server at random; then what happened is counted. */
const [, , , runs = "20", only] = process.argv;
const PAGES = 200;
const random = (most: number) => Math.floor(Math.random() * most);

for (const [name, start] of Object.entries(queueServers)) {
  if (only && only !== name) continue;
  const sum = {
    runs: 0,
    pages: 0,
    kills: 0,
    freezes: 0,
    restarts: 0,
    twice: 0,
    lost: 0,
    repeated: 0,
    uncertain: 0,
    failed: 0,
  };
  const server = await start();
  for (let run = 0; run < Number(runs); run++) {
    const fleet = await startFleet(server.url, { batch: `run ${run}`, latency: 80 });
    const pages = Array.from({ length: PAGES }, (_, index) => `https://example.org/run-${run}/${index}`);
    const machines = [0, 1, 2].map(() => fleet.spawn(pages));
    let done = 0;
    const faults = async () => {
      while (fleet.finals() === 0) {
        await sleep(300 + random(900));
        const at = random(3);
        const machine = machines[at] as (typeof machines)[number];
        const kind = random(8);
        if (fleet.finals() > 0) return;
        if (kind === 0) {
          sum.restarts++;
          await server.kill();
          await sleep(random(2000));
          await server.start();
        } else if (kind <= 2) {
          sum.freezes++;
          machine.kill("SIGSTOP");
          setTimeout(() => machine.kill("SIGCONT"), 1000 + random(4000));
        } else if (done < PAGES) {
          sum.kills++;
          await fleet.kill(machine);
          // The same list after the end would be a new round.
          machines[at] = fleet.spawn(done < PAGES / 2 && random(2) ? pages : undefined);
        }
        done = new Set(fleet.results().map(({ index }) => index)).size;
      }
    };
    await Promise.all([faults(), fleet.until(() => fleet.finals() > 0, "the batch is finished", 180_000)]);
    await sleep(5000);
    const results = fleet.results();
    const told = new Set(results.map(({ index }) => index));
    sum.runs++;
    sum.pages += PAGES;
    sum.twice += fleet.twice().length;
    sum.lost += PAGES - told.size;
    sum.repeated += results.filter(({ repeated }) => repeated).length;
    sum.uncertain += results.filter(({ outcome }) => outcome === "uncertain").length;
    sum.failed += results.filter(({ outcome }) => outcome === "failed").length;
    const doubled = [...told].filter(
      (index) => results.filter((one) => one.index === index && !one.repeated).length > 1,
    );
    if (doubled.length > 0) console.log(`${doubled.length} rows were reported twice without "repeated"`);
    if (fleet.twice().length > 0) console.log("twice:", fleet.twice().slice(0, 5).join(", "));
    for (const error of new Set(fleet.errors())) if (!/cannot be reached/.test(error)) console.log(error);
    await fleet.stop();
    console.log(name, JSON.stringify(sum));
  }
  await server.stop();
}
