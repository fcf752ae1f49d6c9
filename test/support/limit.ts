/** Ends a test that a mutant leaves waiting. Required by the mutation tests, whose runner sets no limit of its own. */
export const mochaHooks = {
  beforeEach(this: Mocha.Context) {
    const test = this.currentTest;
    if (test?.timeout() === 0) test.timeout(20_000);
  },
};
