import assert from "node:assert/strict";
import fc from "fast-check";
import { parseAddress } from "../../sandbox/request.js";
import { isPage, pageKey } from "../../src/address.js";

/** Texts that mean the same page, by the text that the service writes. */
const same: Record<string, string[]> = {
  "example.com": [
    "https://example.com",
    "HTTP://EXAMPLE.com/",
    "  http://www.example.com/#top  ",
    "example.com#top\nand more",
    "www.example.com:443/",
    "https://www.www.example.com/?",
    "https:example.com",
    "http://example.com:80",
    "svn+ssh.x-1://example.com",
  ],
  "example.com/A?b=C": ["https://WWW.Example.com/A?b=C#d", "http://example.com:443/A?b=C"],
  "example.com/?q=/": ["https://example.com?q=/"],
  "example.com/p": [
    "https://example.com/p?",
    "https://example.com/p?#",
    "example.com/a/../p",
    "example.com/a/%2E%2e/p",
    "example.com\\p",
  ],
  "example.com/%3Cb%3E%22%60%7Bid%7D?%3Cb%3E%22%60%7Bid%7D": ['https://example.com/<b>"`{id}?<b>"`{id}'],
  "example.com/%C3%A9~'%2F%FF?%26'": ["example.com/%c3%a9%7e%27%2f%ff?%26%27", "example.com/é~'%2F%FF?%26'"],
  "example.com/a%20b?a%20b": ["example.com/a b?a b"],
  "example.com/?q": ["https://example.com/?q"],
  "example.com/a/": ["https://example.com/a/"],
  "example.com/http://b.example": ["http://example.com/http://b.example"],
  "example.com:8080/a": ["http://example.com:8080/a", "EXAMPLE.com:8080/a"],
  "example.com:4430": ["https://example.com:4430/"],
  "shop.www.example.com": ["https://shop.www.example.com"],
  "xn--mnchen-3ya.example/%C3%BC%C3%A4b": ["https://münchen.example/üäb", "MÜNCHEN.example/%C3%BC%C3%A4b"],
  "example.com/%F0%9F%98%80": ["https://example.com/😀"],
  "example.com/%EF%BF%BD": ["https://example.com/\ud800"],
  "127.0.0.1/a": ["http://127.1/a", "http://0x7f.0.0.1/a"],
  "[::1]/a": ["http://[0:0::1]/a"],
  "": ["", " ", "https://", "https://#top"],
};

describe("The address of a page", () => {
  for (const [key, texts] of Object.entries(same))
    for (const text of [key, ...texts])
      it(`of ${JSON.stringify(text)} is ${JSON.stringify(key)}`, () => assert.equal(pageKey(text), key));

  const url = fc.oneof(
    fc.webUrl({ withQueryParameters: true, withFragments: true }),
    fc
      .tuple(fc.constantFrom("http://", "https://www.", ""), fc.string({ unit: "grapheme" }))
      .map(([start, rest]) => `${start}example.com/${rest}`),
  );

  it("is the same for what a browser, the sandbox and the address itself make of it", () => {
    const property = fc.property(url, (text) => {
      const key = pageKey(text);
      assert.equal(pageKey(key), key);
      assert.equal(pageKey(new URL(text.includes("://") ? text.trim() : `http://${text.trim()}`).href), key);
      const stored = parseAddress(text);
      if (stored) assert.equal(pageKey(stored.url), key);
    });
    fc.assert(property);
  });

  it("is the same after 30,000 URLs", () => {
    // Node.js 20 and 22 compile `URL.canParse` after some 10,000 calls, and it then rejects this URL.
    for (let i = 0; i < 30_000; i++) assert.ok(isPage("https://bücher.example/ü"), `after ${i}`);
    assert.equal(pageKey("https://bücher.example/ü"), "xn--bcher-kva.example/%C3%BC");
  });

  it("is any text for what is no URL", () => {
    fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => assert.equal(typeof pageKey(text), "string")));
  });
});

describe("The URL of a page", () => {
  const texts = {
    true: [
      "example.com",
      "localhost:8080/a",
      "http://lan/",
      "HTTPS://x",
      "[::1]/",
      "münchen.example",
      "a.example/a:b",
      "a.example./",
      "http://a.example?q=a http: b,http://",
      "my_host.example",
    ],
    false: [
      "com",
      "localhost",
      "com/a.b",
      "mailto:a@example.com",
      "ftp://example.com",
      "https://",
      "https:///path",
      "https:example.com",
      "http://a b",
      "http://[",
      "..",
      '=HYPERLINK("http://a.example")',
      "a.example, http://b.example",
      "",
    ],
  };
  for (const [expected, all] of Object.entries(texts))
    for (const text of all)
      it(`is ${expected === "true" ? "" : "not "}${JSON.stringify(text)}`, () =>
        assert.equal(String(isPage(text)), expected));
});
