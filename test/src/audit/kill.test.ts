import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { hash } from "../../../sandbox/pages.js";
import { startAccount } from "../../support/account.js";
import { createFleet } from "../../support/fleet.js";
import { openFolder } from "../../support/opened.js";
import { key, type Report, urls } from "./fake.js";

const VICTIM = fileURLToPath(new URL("victim.js", import.meta.url));
const date = "2026-01-01T00:00:00.000Z";
const KNOWN: Report[] = [{ id: 7, url: "a.example/old", created_at: date, generated_at: date }];
const PAGES = ["a.example/1", "a.example/old", "no page", "a.example/2", "https://a.example/1", "a.example/3"];
const OUTCOMES = ["created", "regenerated", "failed", "created", "created", "created"];
/** One of so many kills. */
const ONE_OF = process.env.BRIEF ? 10 : 1;
const REQUESTS = ["create a.example/1", "create a.example/2", "create a.example/3", "regenerate a.example/old"];

/** Runs the process until it ends; it kills itself at the n-th side effect. Returns whether it did. */
async function run(folder: string, n: number, cut = ""): Promise<boolean> {
  const parameters = [VICTIM, folder, String(n), JSON.stringify(PAGES), cut];
  const child = spawn(process.execPath, parameters, { stdio: ["ignore", "ignore", "inherit"], timeout: 60_000 });
  const [code, signal] = await once(child, "exit");
  assert.ok(code === 0 || signal === "SIGKILL", `${code} ${signal}`);
  return signal === "SIGKILL";
}

function prepare() {
  const made = openFolder();
  mkdirSync(join(made.path, "jobs"));
  writeFileSync(join(made.path, "service"), JSON.stringify({ reports: KNOWN }));
  return made;
}

function check(folder: string): void {
  const { carriedOut } = JSON.parse(readFileSync(join(folder, "service"), "utf8"));
  assert.deepEqual(carriedOut.sort(), REQUESTS);
  const lines = readFileSync(join(folder, "told"), "utf8").trim().split("\n");
  const told = lines.map((line) => JSON.parse(line));
  const rows = new Map<number | "end", { outcome: string; record: object | null }>();
  for (const { index, outcome, repeated, record } of told) {
    assert.ok(repeated || !rows.has(index), `row ${index} was told again, and the message does not say so`);
    rows.set(index, { outcome, record });
  }
  assert.ok(rows.delete("end"), "the end was not told");
  const outcomes = OUTCOMES.map((_, index) => rows.get(index)?.outcome);
  assert.deepEqual(outcomes, OUTCOMES);
  for (const { outcome, record } of rows.values()) assert.equal(record === null, outcome === "failed");
  // One page failed, so that the batch stays for a retry; nothing else is left behind.
  const [batch = "", ...others] = readdirSync(join(folder, "jobs/node"));
  assert.match(batch, /^\d-default.jsonl$/);
  assert.deepEqual(others, []);
  assert.deepEqual(readdirSync(join(folder, "jobs")), ["node"]);
}

describe("an audit whose process is killed", function () {
  // Hundreds of processes, which a slow disk holds up.
  this.timeout(600_000);

  for (const cut of ["", ", and the power is cut"])
    it(`requests no page twice and reports every row, at whichever side effect${cut}`, async () => {
      let next = 1 + Math.floor(Math.random() * ONE_OF);
      let ended = 0;
      async function work(): Promise<void> {
        while (ended === 0) {
          const n = next;
          next += ONE_OF;
          const { path: folder, close: remove } = prepare();
          try {
            if (!(await run(folder, n, cut))) ended ||= n;
            else await run(folder, 0);
            check(folder);
          } catch (error) {
            ended ||= n;
            throw new Error(`Killed at side effect ${n}: ${(error as Error).message}`);
          } finally {
            remove();
          }
        }
      }
      await Promise.all([work(), work()]);
      assert.ok(ended > 50, String(ended));
    });

  const KILLS = 50 / ONE_OF;
  const MANY = 500;

  it(`requests no page twice with a real client if responses are lost and ${KILLS} kills come at random`, async () => {
    const seed = Number(process.env.SEED ?? Date.now() % 1e9);
    const random = (what: string, most: number) => hash(`${seed} ${what}`) % most;
    const { path: folder, close: remove } = openFolder();
    const account = await startAccount({
      fate: ({ form }) => (random(`fate of ${form.get("url")}`, 100) < 6 ? "reset" : "answered"),
      latency: () => Math.random() * 60,
    });
    const { reports } = account;
    const fleet = createFleet({ folder, service: account.url });
    const finished = () => fleet.finals() > 0;
    try {
      let child = fleet.spawn(urls(MANY));
      await fleet.until(() => reports.length > 0);
      for (let kill = 1; kill <= KILLS; kill++) {
        // Half of the processes die after some requests, the others after some time, often before their first request.
        const more = reports.length + random(`requests before ${kill}`, 16);
        const time = Date.now() + (random(`kind of ${kill}`, 2) ? random(`time of ${kill}`, 600) : 60_000);
        await fleet.until(() => reports.length >= more || Date.now() >= time);
        await sleep(random(`moment of ${kill}`, 60));
        assert.ok(!finished(), `it has finished before kill ${kill}`);
        await fleet.kill(child);
        child = fleet.spawn();
      }
      await fleet.until(finished);
      child.stdin?.end();
      await once(child, "close");
      const rows = new Set<number>();
      for (const { index, outcome, repeated } of fleet.results()) {
        assert.equal(outcome, "created", `row ${index}`);
        assert.ok(repeated || !rows.has(index), `row ${index} was reported again, and the message does not say so`);
        rows.add(index);
      }
      assert.equal(rows.size, MANY);
      const requested = reports.map(({ url }) => url).sort();
      assert.deepEqual(requested, urls(MANY).map(key).sort(), "each page is requested once");
      assert.deepEqual(fleet.errors(), []);
      assert.equal(readdirSync(folder, { recursive: true }).length, 1, "only the node's folder is left");
    } catch (error) {
      throw new Error(`SEED=${seed}: ${(error as Error).message}`);
    } finally {
      await fleet.stop();
      await account.close();
      remove();
    }
  });
});
