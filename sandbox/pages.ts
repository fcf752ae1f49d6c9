/** The web pages that the sandbox makes up: their URLs, their scores, and what is served of them. */

const SHOP = "shop.example.com";
const PAGES: Record<string, string[]> = {
  "example.com": ["", "/about", "/pricing", "/contact", "/careers", "/press/spring-collection"],
  [SHOP]: [
    "",
    "/cart",
    "/garden/raised-beds",
    "/garden/watering-cans",
    "/kitchen/cast-iron-pan",
    "/kitchen/knives",
    "/sale",
    "/delivery-and-returns",
    "/gift-cards",
  ],
  "blog.example.org": [
    "",
    "/2026/how-we-cut-page-weight-in-half",
    "/2026/writing-titles-that-people-read",
    "/2025/moving-ten-thousand-urls",
    "/2025/what-a-sitemap-is-for",
    "/archive?page=2",
    "/authors/mira",
  ],
  "docs.example.net": ["/install", "/quick-start", "/reference/webhooks", "/reference/errors", "/changelog"],
  "travel.example.org": ["", "/alps/huts", "/alps/winter", "/coast/ferries", "/night-trains"],
  "bakery.example.net": ["", "/opening-hours", "/sourdough", "/wedding-cakes"],
};
/** Pages of the shop that have no report at the start. */
const NEW_PAGES = ["/garden/greenhouses", "/kitchen/stock-pots", "/stores"];

type Check = { importance: "high" | "medium" | "low"; value: unknown; errors: unknown };
const images = (count: number) => Array.from({ length: count }, (_, i) => ({ url: `/images/${i + 1}.jpg` }));
const DEFAULT_IMAGES = 12;
const MOST_IMAGES = 100_000;
/** `images=5000` in a page's URL gives the page as many images, and a failed check as many errors. */
const imagesOf = (url: string) =>
  images(Math.min(Number(/[?&]images=(\d+)/.exec(url)?.[1] ?? DEFAULT_IMAGES), MOST_IMAGES));

/** The report of each check on a page with these images; `errors` only if it fails. */
const checksOf = (pictures: object[]): Record<string, Check> => ({
  title: { importance: "high", value: "Example", errors: { too_short: { min: 10 } } },
  meta_description: { importance: "high", value: null, errors: { missing: null } },
  headings: { importance: "high", value: { h1: 1, h2: 4 }, errors: { duplicate: { h2: "Contact" } } },
  broken_links: { importance: "high", value: 24, errors: ["/old-prices returned 404", "/team returned 410"] },
  mixed_content: {
    importance: "high",
    value: null,
    errors: [
      { type: "script", url: "http://cdn.example/menu.js" },
      { type: "image", url: "http://cdn.example/logo.png" },
    ],
  },
  image_alt_texts: { importance: "medium", value: pictures.length, errors: { missing: pictures } },
  load_time: { importance: "medium", value: 1.4, errors: { too_slow: { max: 1 } } },
  page_size: { importance: "medium", value: 412_000, errors: { too_large: { max: 330_000 } } },
  requests: { importance: "medium", value: { scripts: 31, styles: 6, images: 44 }, errors: { too_many: { max: 50 } } },
  language: { importance: "low", value: "en", errors: ["The language is not set."] },
  favicon: { importance: "low", value: "/favicon.ico", errors: { missing: null } },
  structured_data: { importance: "low", value: null, errors: { missing: null } },
});
const NOTE = "made up by the sandbox";
const LOWEST_SCORE = 35;

/** FNV-1a: the same text gives the same number on every machine and in every run. */
export function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  // The last bits of FNV alone are too regular for a remainder.
  return (value ^ (value >>> 15)) >>> 0;
}

/** By which a score rises when its report is regenerated. Beyond 100 it begins again, so most of the larger steps are drops. */
const STEPS = [5, 41, 61];

/** Depends on the URL; the steps share no factor with the range, so a regenerated report always has a different score. */
export function scoreOf(url: string, generation: number): number {
  const step = STEPS[hash(`step ${url}`) % STEPS.length] ?? 1;
  return LOWEST_SCORE + ((hash(url) + generation * step) % (101 - LOWEST_SCORE));
}

export const resultOf = (score: number): string => (score >= 80 ? "good" : score >= 50 ? "decent" : "bad");

/** Each check of a page passes from a score of its own: the higher the score, the more checks pass. */
export function resultsOf(url: string, score: number): object {
  const results: Record<string, unknown> = { note: NOTE };
  for (const [name, { errors, ...check }] of Object.entries(checksOf(imagesOf(url)))) {
    const passed = hash(`${name} of ${url}`) % 100 < score;
    results[name] = { passed, ...check, ...(passed ? {} : { errors }) };
  }
  return results;
}

const SITE = Object.entries(PAGES)
  .flatMap(([host, paths]) => paths.map((path) => host + path))
  .sort((a, b) => hash(a) - hash(b));

/** The URL of the n-th page; after the handwritten ones, numbered pages below them. */
export function pageAt(n: number): string {
  const page = SITE[n % SITE.length] ?? "example.com";
  const round = Math.floor(n / SITE.length);
  if (round === 0) return page;
  return page.includes("?") ? `${page}&item=${round}` : `${page}/${round}`;
}

const SHOP_PAGES = [...(PAGES[SHOP] ?? []), ...NEW_PAGES];

const SITEMAP = `<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
${SHOP_PAGES.map((path) => `  <url><loc>https://${SHOP}${path || "/"}</loc></url>`).join("\n")}
</urlset>
`;

function html(path: string): string {
  const titleOf = (name: string) => name.split("/").at(-1)?.replaceAll("-", " ") || "home";
  const links = SHOP_PAGES.map((to) => `<li><a href="/${SHOP}${to}">${titleOf(to)}</a></li>`).join("\n");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${titleOf(path)} - example shop</title>
<meta name="description" content="A page ${NOTE}: ${titleOf(path)}.">
</head>
<body>
<h1>${titleOf(path)}</h1>
<ul>
${links}
</ul>
</body>
</html>
`;
}

/** Pages that the sandbox serves without an API key: a sitemap of the shop, and the shop's pages as HTML. */
export const siteFiles: ReadonlyMap<string, { type: string; content: string }> = new Map([
  ["/sitemap.xml", { type: "application/xml", content: SITEMAP }],
  ...SHOP_PAGES.map((path) => [`/${SHOP}${path}`, { type: "text/html; charset=utf-8", content: html(path) }] as const),
]);
