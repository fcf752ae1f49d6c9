import assert from "node:assert/strict";
import { describeExample, only } from "../support/examples.js";

const DAY = 24 * 3600 * 1000;

describeExample("11 - Housekeeping", ({ up, deploy, press, unavailable }) => {
  const start = (url: string, { REPORT_PASSWORD = "s3cret", ...tab }: Record<string, string | number> = {}) =>
    deploy(url, { tab: { PROJECT: "example.com", DAYS: 30, ...tab }, env: { REPORT_PASSWORD } });
  const stamp = (time: number) => `${new Date(time).toISOString().slice(0, -1)}000Z`;
  const nothing = (what: string) => ({ error: [`Nothing is approved. First ${what}.`] });

  it("deletes exactly the old reports that were listed, once", async () => {
    // The flow compares with the real clock.
    const { url, reports } = await up({ reports: 60, now: Date.now });
    await start(url);
    const old = reports
      .list({ project: "example.com", sort_by: "generated_at", sort: "asc" })
      .filter(({ generated_at }) => generated_at < Date.now() - 30 * DAY);
    assert.ok(old.length > 1);
    const rest = reports.list({}).length - old.length;
    assert.deepEqual(await press("1. list old ones"), {
      "approve?": [old.map(({ id, url, generated_at }) => ({ id, url, date: stamp(generated_at) }))],
    });
    reports.remove(old[0]?.id ?? 0);
    const { deleted, error: [error] = [], ...more } = await press("2. delete these");
    // Several are in flight at a time, so they end in any order.
    const ids = (rows: { id: number }[]) => rows.map(({ id }) => id).sort((a, b) => a - b);
    assert.deepEqual(ids(deleted as { id: number }[]), ids(old.slice(1)));
    assert.match(String(error), /404/);
    assert.deepEqual(more, {});
    assert.equal(reports.list({}).length, rest);
    assert.deepEqual(await press("2. delete these"), nothing("list old ones"));
    assert.deepEqual(await press("1. list old ones"), {
      "approve?": ["No report of example.com is older than 30 days."],
    });
    assert.deepEqual(await press("2. delete these"), nothing("list old ones"));
  });

  it("does nothing without a project, an approval or a password", async () => {
    const { url, requests } = await up();
    await start(url, { PROJECT: "", REPORT_PASSWORD: "" });
    for (const button of ["1. list old ones", "1. show it"]) {
      only(await press(button), "error", /: Set PROJECT in the properties of this flow\.$/);
    }
    assert.deepEqual(await press("2. delete it"), nothing("show it"));
    assert.deepEqual(await press("protect"), { error: ["Set the environment variable REPORT_PASSWORD."] });
    assert.deepEqual(requests, []);
    await start(url, { PROJECT: "none" });
    assert.deepEqual(await press("1. show it"), { error: ["There is no project none."] });
    assert.deepEqual(await press("2. delete it"), nothing("show it"));
    await start(url, { APPROVAL_MINUTES: 0 });
    await press("1. show it");
    assert.deepEqual(await press("2. delete it"), nothing("show it"));
    assert.ok(requests.every(({ method }) => method === "GET"));
  });

  it("deletes a project of exactly that name", async () => {
    const { url, reports } = await up({ reports: 40 });
    await start(url);
    const kept = reports.list({}).filter(({ project }) => project !== "example.com");
    const { "approve?": [project] = [] } = await press("1. show it");
    assert.deepEqual((project as { project: string }).project, "example.com");
    const deleted = { project: "example.com", object: "project", deleted: true, status: 200 };
    assert.deepEqual(await press("2. delete it"), { "project deleted": [deleted] });
    assert.deepEqual(reports.list({}), kept);
  });

  it("makes reports private, or sets a password", async () => {
    const { url, reports } = await up({ reports: 5 });
    await start(url);
    const ids = (changed: unknown[] = []) => (changed as { id: number }[]).map(({ id }) => id);
    assert.deepEqual(ids((await press("make private")).changed), [1, 2, 3]);
    const { changed, error: [error] = [] } = await press("protect");
    assert.deepEqual(ids(changed), [5]);
    assert.match(String(error), /404/);
    const access = reports.list({ sort: "asc" }).map(({ privacy, password }) => [privacy, password]);
    assert.deepEqual(access, [
      [1, null],
      [1, null],
      [1, null],
      [0, null],
      [2, "s3cret"],
    ]);
  });

  unavailable(async (url, { says }) => {
    await start(url);
    for (const button of ["1. list old ones", "1. show it", "make private"]) {
      const { error: errors = [], ...rest } = await press(button);
      assert.equal(errors.length, button === "make private" ? 3 : 1);
      for (const error of errors) assert.match(String(error), says);
      assert.deepEqual(rest, {});
    }
  });
});
