import { nodeRedModule } from "../../dev/nodered.js";
import { helper } from "./red.js";

interface Context {
  init(settings: object): void;
  load(): Promise<unknown>;
  close(): Promise<unknown>;
}

const context = nodeRedModule<Context>("@node-red/runtime/lib/nodes/context");

/** Opens these context stores for the running flow, as Node-RED does when it starts. */
export async function openStores(contextStorage: object): Promise<void> {
  Object.assign(helper.settings(), { contextStorage });
  context.init({ contextStorage });
  await context.load();
}

/** Closes the context stores, as Node-RED does when it stops; files remain. */
export async function closeStores(): Promise<void> {
  await context.close();
  Reflect.deleteProperty(helper.settings(), "contextStorage");
  context.init({});
}

type Done = (error: Error | null, value?: unknown) => void;

/** A custom context store that cannot write while `disk` is full. */
export function storeOn(disk: { full: boolean }) {
  const kept = new Map<string, unknown>();
  return {
    open: async () => {},
    close: async () => {},
    clean: async () => {},
    delete: async () => {},
    get: (scope: string, key: string, done: Done) => done(null, kept.get(`${scope} ${key}`)),
    set(scope: string, key: string, value: unknown, done: Done) {
      if (!disk.full) kept.set(`${scope} ${key}`, value);
      done(disk.full ? new Error("The disk is full.") : null);
    },
  };
}
