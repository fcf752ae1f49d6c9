import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

type Opened = { close(): unknown } | { stop(): unknown };

/** Closes what each test of a suite has opened when the test ends, what was opened last first. */
export function closeAfterEach() {
  const opened: Opened[] = [];
  afterEach(async () => {
    for (const one of opened.splice(0).reverse()) await ("close" in one ? one.close() : one.stop());
  });
  return async <One extends Opened>(opening: One | Promise<One>): Promise<One> => {
    const one = await opening;
    opened.push(one);
    return one;
  };
}

/** A new folder, which is removed when it is closed. */
export function openFolder() {
  const path = mkdtempSync(join(tmpdir(), "seo-test-"));
  return { path, close: () => rmSync(path, { recursive: true, force: true }) };
}
