/** The world that the sandbox invents: which pages there are, and how they score. */

const PAGES: Record<string, string[]> = {
  "example.com": ["", "/about", "/pricing", "/contact", "/careers", "/press/spring-collection"],
  "shop.example.com": [
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

const CHECKS = [
  "title",
  "meta_description",
  "headings",
  "image_alt_texts",
  "load_time",
  "page_size",
  "structured_data",
];
const NOTE = "invented by the sandbox";
const LOWEST_SCORE = 35;

/** FNV-1a: the same text gives the same number on every machine and in every run. */
export function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  // The last bits of FNV alone are too regular for a remainder.
  return (value ^ (value >>> 15)) >>> 0;
}

/** Follows from the URL; the step shares no factor with the range, so a regenerated report always has another score. */
export function scoreOf(url: string, generation: number): number {
  return LOWEST_SCORE + ((hash(url) + generation * 5) % (101 - LOWEST_SCORE));
}

export const resultOf = (score: number): string => (score >= 80 ? "good" : score >= 50 ? "decent" : "bad");

/** Each check has its luck, four bits of a hash; the higher the score, the more luck is enough. */
export function resultsOf(url: string, score: number): object {
  const luck = hash(`checks of ${url}`);
  const results: Record<string, unknown> = { note: NOTE };
  CHECKS.forEach((check, i) => {
    results[check] = { passed: ((luck >>> (4 * i)) & 15) * 6.25 < score };
  });
  return results;
}

const SITE = Object.entries(PAGES)
  .flatMap(([host, paths]) => paths.map((path) => host + path))
  .sort((a, b) => hash(a) - hash(b));

/** The address of the n-th page; past the handwritten ones, numbered pages below them. */
export function pageAt(n: number): string {
  const page = SITE[n % SITE.length] ?? "example.com";
  const round = Math.floor(n / SITE.length);
  if (round === 0) return page;
  return page.includes("?") ? `${page}&item=${round}` : `${page}/${round}`;
}
