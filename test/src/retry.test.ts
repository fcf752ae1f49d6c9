import assert from "node:assert/strict";
import fc from "fast-check";
import type { Code, Details } from "../../src/errors.js";
import { type Decision, decide } from "../../src/retry.js";

const half = () => 0.5;

describe("After a failed attempt", () => {
  const lost: Details = { transient: true, uncertain: true };
  const unsent: Details = { transient: true, uncertain: false };
  const rows: [what: string, code: Code, details: Details, repeatable: Decision, once: Decision][] = [
    ["a refused connection", "SEO_NETWORK", unsent, { retryIn: 250 }, { retryIn: 250 }],
    ["a lost connection", "SEO_NETWORK", lost, { retryIn: 250 }, {}],
    ["a timeout", "SEO_TIMEOUT", lost, { retryIn: 250 }, {}],
    ["a 500", "SEO_SERVER", lost, { retryIn: 250 }, {}],
    ["a 501", "SEO_SERVER", { transient: false, uncertain: true }, {}, {}],
    ["a 429", "SEO_RATE_LIMITED", unsent, { pause: 250, retryIn: 0 }, { pause: 250, retryIn: 0 }],
    [
      "a 429 for 7 s",
      "SEO_RATE_LIMITED",
      { ...unsent, retryAfter: 7 },
      { pause: 7000, retryIn: 0 },
      { pause: 7000, retryIn: 0 },
    ],
    [
      "a 503 for 300 s",
      "SEO_SERVER",
      { ...unsent, retryAfter: 300 },
      { pause: 300_000, retryIn: 0 },
      { pause: 300_000, retryIn: 0 },
    ],
    [
      "a 429 for 301 s",
      "SEO_RATE_LIMITED",
      { ...unsent, retryAfter: 301 },
      { pause: Number.POSITIVE_INFINITY },
      { pause: Number.POSITIVE_INFINITY },
    ],
    [
      "a 503 for no time",
      "SEO_SERVER",
      { ...unsent, retryAfter: 0 },
      { pause: 250, retryIn: 0 },
      { pause: 250, retryIn: 0 },
    ],
    ["a 422", "SEO_REJECTED", { transient: false, uncertain: false }, {}, {}],
    ["a certificate that is not trusted", "SEO_NETWORK", {}, {}, {}],
  ];
  for (const [what, code, details, repeatable, once] of rows)
    it(`decides what follows ${what}`, () => {
      const attempt = { attempts: 1, retries: 3 };
      assert.deepEqual(decide({ code, details }, { ...attempt, once: false }, half), repeatable);
      assert.deepEqual(decide({ code, details }, { ...attempt, once: true }, half), once);
    });

  it("waits up to half a second, twice as long after each attempt, and at most ten seconds", () => {
    const waits = Array.from({ length: 8 }, (_, i) =>
      decide({ code: "SEO_SERVER", details: lost }, { attempts: i + 1, retries: 9, once: false }, () => 1),
    );
    const most = [500, 1000, 2000, 4000, 8000, 10_000, 10_000, 10_000];
    assert.deepEqual(
      waits,
      most.map((retryIn) => ({ retryIn })),
    );
  });

  it("retries as often as the limit allows, and pauses all requests after the last attempt, too", () => {
    fc.assert(
      fc.property(fc.nat({ max: 9 }), fc.integer({ min: 1, max: 20 }), (retries, attempts) => {
        const attempt = { attempts, retries, once: false };
        assert.equal(decide({ code: "SEO_SERVER", details: lost }, attempt).retryIn !== undefined, attempts <= retries);
        const { pause } = decide({ code: "SEO_RATE_LIMITED", details: { ...unsent, retryAfter: 1 } }, attempt);
        assert.equal(pause, 1000);
      }),
    );
  });
});
