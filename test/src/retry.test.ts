import assert from "node:assert/strict";
import fc from "fast-check";
import type { Code, Details } from "../../src/errors.js";
import { pauseAfter, retryIn } from "../../src/retry.js";

const half = () => 0.5;
const never = Number.POSITIVE_INFINITY;

/** Milliseconds for which the client pauses, and until the next attempt. */
type Decision = [pause?: number | undefined, retryIn?: number | undefined];

describe("After a failed attempt", () => {
  const lost: Details = { transient: true, uncertain: true };
  const unsent: Details = { transient: true, uncertain: false };
  const rows: [what: string, code: Code, details: Details, repeatable: Decision, once: Decision][] = [
    ["a refused connection", "SEO_NETWORK", unsent, [undefined, 250], [undefined, 250]],
    ["a lost connection", "SEO_NETWORK", lost, [undefined, 250], []],
    ["a timeout", "SEO_TIMEOUT", lost, [undefined, 250], []],
    ["a 500", "SEO_SERVER", lost, [undefined, 250], []],
    ["a 501", "SEO_SERVER", { transient: false, uncertain: true }, [], []],
    ["a 429", "SEO_RATE_LIMITED", unsent, [250, 0], [250, 0]],
    ["a 429 for 7 s", "SEO_RATE_LIMITED", { ...unsent, retryAfter: 7 }, [7000, 0], [7000, 0]],
    ["a 503 for 300 s", "SEO_SERVER", { ...unsent, retryAfter: 300 }, [300_000, 0], [300_000, 0]],
    ["a 429 for 301 s", "SEO_RATE_LIMITED", { ...unsent, retryAfter: 301 }, [never], [never]],
    ["a 503 for no time", "SEO_SERVER", { ...unsent, retryAfter: 0 }, [250, 0], [250, 0]],
    ["a 422", "SEO_REJECTED", { transient: false, uncertain: false }, [], []],
    ["a certificate that is not trusted", "SEO_NETWORK", {}, [], []],
  ];
  for (const [what, code, details, repeatable, unrepeatable] of rows)
    it(`decides what follows ${what}`, () => {
      const error = { code, details };
      for (const [once, [pause, retry]] of [
        [false, repeatable],
        [true, unrepeatable],
      ] as const) {
        assert.equal(pauseAfter(error, 1, half), pause);
        assert.equal(retryIn(error, { attempts: 1, retries: 3, once }, half), retry);
      }
    });

  it("waits up to half a second, twice as long after each attempt, and at most ten seconds", () => {
    const waits = Array.from({ length: 8 }, (_, i) =>
      retryIn({ code: "SEO_SERVER", details: lost }, { attempts: i + 1, retries: 9, once: false }, () => 1),
    );
    assert.deepEqual(waits, [500, 1000, 2000, 4000, 8000, 10_000, 10_000, 10_000]);
  });

  it("retries as often as the limit allows, and pauses all requests after the last attempt, too", () => {
    const property = fc.property(fc.nat({ max: 9 }), fc.integer({ min: 1, max: 20 }), (retries, attempts) => {
      const attempt = { attempts, retries, once: false };
      assert.equal(retryIn({ code: "SEO_SERVER", details: lost }, attempt) !== undefined, attempts <= retries);
      assert.equal(pauseAfter({ code: "SEO_RATE_LIMITED", details: { ...unsent, retryAfter: 1 } }, attempts), 1000);
    });
    fc.assert(property);
  });
});
