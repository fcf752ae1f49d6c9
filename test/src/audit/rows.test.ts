import assert from "node:assert/strict";
import fc from "fast-check";
import { pageKey } from "../../../src/address.js";
import { readRows, rowKey, urlOf } from "../../../src/audit/rows.js";
import { isObject } from "../../../src/json.js";

describe("the rows of an audit", () => {
  it("are plain data, without passwords and without long values of invalid rows", () => {
    const url = fc.oneof(
      fc.webUrl({ withFragments: true, withQueryParameters: true }),
      fc.string({ unit: "binary" }),
      fc.constantFrom(`example.org/${"ü".repeat(5000)}`, "ü ".repeat(5000)),
    );
    const object = {
      url: fc.oneof({ weight: 4, arbitrary: url }, fc.jsonValue()),
      more: fc.oneof(fc.jsonValue(), fc.constant("ü".repeat(5000)), fc.constant(Array(1000).fill("ü"))),
    };
    const name = fc.constantFrom("PassWord", " password", "password\t", "\uFEFFpassword", "\uFEFF PASSWORD");
    const secret = fc.dictionary(name, fc.constant("hunter2"));
    const row = fc.oneof(url, fc.record(object, { requiredKeys: ["url"] }), fc.jsonValue());
    fc.assert(
      fc.property(row, secret, (kept, secret) => {
        const [read] = [...readRows([isObject(kept) ? { ...kept, ...secret } : kept])];
        assert.ok(read);
        const { input, error } = read;
        const text = JSON.stringify(read);
        assert.deepEqual(JSON.parse(text), read);
        assert.equal(rowKey(JSON.parse(text)), rowKey(read));
        assert.ok(!text.includes("hunter2"), text);
        if (error === undefined) {
          assert.deepEqual(input, JSON.parse(JSON.stringify(kept)));
          assert.equal(rowKey(read), pageKey(urlOf(kept)));
          return;
        }
        assert.match(`${rowKey(read)}|${error}`, /^ .*\|.*\.$/s);
        assert.ok(text.length < 3000, text);
        if (JSON.stringify(kept).length <= 2000) assert.deepEqual(input, JSON.parse(JSON.stringify(kept)));
        else if (isObject(kept) && typeof kept.url === "string" && isObject(input))
          assert.ok(String(input.url).startsWith(String(kept.url).slice(0, 200)));
      }),
      { numRuns: 1000 },
    );
  });

  it("name the URL as programs write it, and no byte order mark, also of a single row", () => {
    for (const name of ["url", "\uFEFFurl", "URL", " Url "])
      for (const given of [
        { [name]: "a.example", "\uFEFFowner": "Kim" },
        { url: "a.example", owner: "Kim" },
      ])
        for (const value of [[given], given])
          assert.deepEqual([...readRows(value)], [{ input: { url: "a.example", owner: "Kim" } }]);
    const inside = { url: "a.example", "b\uFEFF": 1 };
    assert.deepEqual([...readRows(inside)], [{ input: inside }]);
    assert.deepEqual([...readRows([{ URL: "b", url: "a.example" }])], [{ input: { URL: "b", url: "a.example" } }]);
  });

  it("are cut if they are invalid and long, and so are their values", () => {
    const text = (length: number) => "ü".repeat(length);
    const cut = `${text(200)}…`;
    const many = Array.from({ length: 8 }, () => text(200));
    const rest = 2000 - JSON.stringify([...many, cut, ""]).length;
    for (const [given, kept] of [
      [{ a: text(1992) }, { a: text(1992) }],
      [{ a: text(1993) }, { a: cut }],
      [
        { a: text(200), b: text(201), c: text(1600), d: 1 },
        { a: text(200), b: cut, c: cut, d: 1 },
      ],
      [
        [...many, text(2000), text(rest)],
        [...many, cut, text(rest)],
      ],
      [[...many, text(2000), text(rest + 1)], "…"],
      [{ url: `${text(300)} `, more: [many, many] }, { url: cut }],
      [{ url: 1, more: [many, many] }, "…"],
    ])
      assert.deepEqual([...readRows([given])][0]?.input, kept);
  });

  it("are the same, however a list is given", () => {
    const name = fc.stringMatching(/^([Hh]ttps?:\/\/)?[a-z]{1,9}\.example(:80)?\/[a-z]{0,9}(\?u=mailto:x)?$/);
    const blank = fc.constantFrom("", " ", "\t", "\r");
    fc.assert(
      fc.property(fc.array(name, { minLength: 1 }), fc.array(blank), (urls, blanks) => {
        const rows = urls.map((input) => ({ input }));
        assert.deepEqual([...readRows(urls)], rows);
        for (const url of urls) assert.equal(urlOf({ url: ` ${url}\t` }), url);
        const lines = urls.flatMap((url, index) => [` ${url}${blanks[index] ?? ""}`, ...blanks]);
        assert.deepEqual([...readRows([...blanks, ...lines].join("\n"))], rows);
        assert.deepEqual([...readRows({ data: urls, url: "z.example" })], rows);
        const objects = urls.map((url) => ({ url }));
        for (const object of [...objects, { url: null, owner: "Kim" }])
          assert.deepEqual([...readRows(object)], [...readRows([object])]);
        assert.deepEqual([...readRows(objects)].map(rowKey), rows.map(rowKey));
      }),
    );
  });

  it("name the reason why a list or a row cannot be audited", () => {
    assert.throws(() => [...readRows([])], { message: "The list of pages is empty: pages has no URL." });
    for (const csv of [
      "url,owner\na.example,Kim",
      '\n"Owner";"URL"\r\nKim;a.example',
      "sep=;\nPage;Clicks\n",
      'url,x\na/b,"c,d"',
      '"Owner";"URL"\na.example',
    ])
      assert.throws(() => [...readRows(csv)], { message: /^pages is CSV\. Put a CSV node before this node/ });
    for (const list of ["url\na.example,b", "no page, but\na.example", "a.example/,x\na.example/,y"])
      assert.equal([...readRows(list)].length, 2);
    for (const [value, shown] of [
      [{ name: 1, link: 2 }, "an object without url; it has .*name, link.*"],
      [{}, "an object without url"],
      [Buffer.from("a.example"), "a Buffer"],
      [7, "7"],
      [null, "null"],
    ] as const)
      assert.throws(() => [...readRows(value, "msg.pages")], {
        message: new RegExp(`^pages must be a URL, .*; msg\\.pages is ${shown}\\.$`),
      });
    const loop: unknown[] = [];
    loop.push(loop);
    for (const [row, shown] of [
      ["xhttp://a.example", '"xhttp://a.example"'],
      ["httpsx://a.example", '"httpsx://a.example"'],
      ["https:///path", '"https:///path"'],
      ["com", '"com"'],
      ["https://a b/", '"https://a b/"'],
      [loop, "it is not plain data"],
      [Buffer.from("a.example"), "it is not plain data"],
      [[1], "an array"],
      [undefined, "undefined"],
      [{ url: { a: 1 } }, "an object"],
      [{ url: null, owner: "Kim" }, "url is required; the row's url is blank"],
      [{ name: 1, link: 2 }, "The row is an object without url; it has .*name, link.*"],
      [{}, "The row is an object without url"],
      ["ftp://a.example", '"ftp://a.example"'],
      [`mailto:${"x".repeat(99)}`, `"mailto:x{52}…`],
    ] as const)
      assert.match([...readRows([row])][0]?.error ?? "", new RegExp(`${shown}\\.$`));
  });
});
