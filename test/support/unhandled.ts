const unhandled: unknown[] = [];

/** Fails a test that leaves a rejection unhandled, which would end Node-RED. Mocha by itself ignores it. */
export const mochaHooks = {
  beforeAll() {
    process.on("unhandledRejection", (reason) => unhandled.push(reason));
  },
  afterEach() {
    for (const reason of unhandled.splice(0)) throw reason;
  },
};
