/** The request that every contender sends. */
export const query = { project: "example.com", sort_by: "score", per_page: 10 };
export const path = "/api/v1/reports";
export const key = "0123456789abcdef0123456789abcdef";
/** What every contender sends besides the headers of its own client. */
export const headers = { authorization: `Bearer ${key}`, accept: "application/json" };

/** The number of pages in the long list. */
export const PAGES = 1000;

const date = "2025-01-31T12:00:00.000000Z";
const record = (id: number) => ({
  id,
  url: `example.com/${id}`,
  project: "example.com",
  score: id % 101,
  result: "good",
  privacy: 0,
  password: false,
  generated_at: date,
  created_at: date,
  updated_at: null,
});

/** One page of a list, as the service writes it. */
export function page(number: number, pages: number, size: number): string {
  const data = Array.from({ length: size }, (_, index) => record((number - 1) * size + index + 1));
  const link = (to: number) => (to > pages || to < 1 ? null : `http://127.0.0.1${path}?page=${to}`);
  const links = { first: link(1), last: link(pages), prev: link(number - 1), next: link(number + 1) };
  const meta = { current_page: number, last_page: pages, per_page: size, total: pages * size };
  return JSON.stringify({ data, links, meta, status: 200 });
}
