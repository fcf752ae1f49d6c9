/** The value below which `share` of the sorted values lie. */
export const quantile = (sorted: ArrayLike<number>, share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;

const median = (values: number[]): number =>
  quantile(
    values.toSorted((a, b) => a - b),
    0.5,
  );

/** The medians of equal records of numbers, property by property. */
export function medians<T extends { [name in keyof T]: number }>(records: T[]): T {
  const names = Object.keys(records[0] ?? {}) as (keyof T)[];
  return Object.fromEntries(names.map((name) => [name, median(records.map((record) => record[name]))])) as T;
}
