import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { hasZone, parseDate } from "../../src/dates.js";

const pad = (value: number, length = 2) => String(value).padStart(length, "0");

describe("A date of the service", () => {
  const day = "2026-11-22";
  const writings: [zone: boolean, write: (time: string) => string][] = [
    [true, (time) => `${day}T${time}Z`],
    [true, (time) => `${day}T${time}.000000Z`],
    [true, (time) => `${day} ${time} UTC`],
    [true, (time) => `${day} ${time}+00`],
    [true, (time) => `${day}T${time}+00:00`],
    [true, (time) => `${day}T${time}+00`],
    [true, (time) => `Sun Nov 22 2026 ${time} GMT+0000`],
    [false, (time) => `${day}T${time}`],
    [false, (time) => `${day} ${time}`],
    [false, (time) => `${day} ${time}.000000`],
    [false, (time) => `Nov 22, 2026 ${time}`],
    [false, (time) => `Sun 2026/11/22 ${time}`],
  ];

  it("is UTC if it has no time zone, however it is written", () => {
    fc.assert(
      fc.property(fc.nat(23), fc.nat(59), fc.constantFrom(...writings), (hour, minute, [zone, write]) => {
        const text = write(`${pad(hour)}:${pad(minute)}:00`);
        assert.deepEqual([parseDate(text), hasZone(text)], [Date.UTC(2026, 10, 22, hour, minute), zone], text);
      }),
    );
    assert.equal(parseDate(day), Date.UTC(2026, 10, 22));
    for (const date of [`${day} 10:00:00-08`, `${day} 10:00:00 AM -0800`, `${day} 10:00:00 PST`])
      assert.equal(parseDate(date), Date.UTC(2026, 10, 22, 18), date);
    assert.equal(parseDate(`${day} 1:00:00 PM`), Date.UTC(2026, 10, 22, 13));
  });

  it("does not depend on the time zone of this computer", () => {
    const { href } = new URL("../../src/dates.js", import.meta.url);
    const script = `import { parseDate } from ${JSON.stringify(href)}; console.log(parseDate("2026-11-22 10:00:00"));`;
    for (const TZ of ["America/Los_Angeles", "Asia/Tokyo"]) {
      const env = { ...process.env, TZ };
      const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", script], { env });
      assert.equal(Number(stdout), Date.UTC(2026, 10, 22, 10), TZ);
    }
  });

  const texts = ["3 days ago", "11.01.2026 10:00", "01/11/2026", "05-11-2026 10:00 UTC", ""];
  for (const text of [...texts, null, undefined, 1_790_000_000, {}])
    it(`is none: ${JSON.stringify(text)}`, () => assert.ok(Number.isNaN(parseDate(text))));
});
