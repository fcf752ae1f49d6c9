import assert from "node:assert/strict";
import fc from "fast-check";
import { readAddress } from "../../src/address.js";

/** Texts that mean the same page, by the text that the service writes. */
const same: Record<string, string[]> = {
  "example.com": [
    "https://example.com",
    "HTTP://EXAMPLE.com/",
    "  http://www.example.com/#top  ",
    "example.com#top\nand more",
    "www.example.com:443/",
    "http://example.com:80",
    "svn+ssh.x-1://example.com",
  ],
  "example.com/A?b=C": ["https://WWW.Example.com/A?b=C#d", "http://example.com:443/A?b=C"],
  "example.com?q=/": ["https://example.com?q=/"],
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
  "": ["", " ", "https://"],
};

describe("The address of a page", () => {
  for (const [key, texts] of Object.entries(same))
    for (const text of [key, ...texts])
      it(`of ${JSON.stringify(text)} is ${JSON.stringify(key)}`, () => {
        const address = readAddress(text);
        assert.deepEqual(address, { key, host: key.split(/[/?]/)[0] });
      });

  it("is what it was if it is read again, for any text without a second scheme", () => {
    const text = fc.oneof(
      fc.string({ unit: "grapheme" }),
      fc.webUrl({ withQueryParameters: true, withFragments: true }),
    );
    fc.assert(
      fc.property(text, (url) => {
        const { key, host } = readAddress(url);
        if (/^[a-z][a-z0-9+.-]*:\/\/|^\s|\s$|^www\.|:443$/i.test(host) || /\s$/.test(key)) return;
        assert.deepEqual(readAddress(key), { key, host });
      }),
    );
  });
});
