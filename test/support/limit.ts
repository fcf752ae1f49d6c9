import fc from "fast-check";

// Whether a property holds is enough.
fc.configureGlobal({ endOnFailure: true });

/**
 * Ends a test that a mutant leaves waiting. Required by the mutation tests, whose runner sets no limit of its own for a test,
 * only one for a mutant.
 */
export const mochaHooks = {
  beforeEach(this: Mocha.Context) {
    const test = this.currentTest;
    if (test?.timeout() === 0) test.timeout(Number(process.env.TEST_LIMIT ?? 180_000));
  },
};
