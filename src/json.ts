export type Json = Record<string, unknown>;

/** True for an object of properties: neither null nor an array. */
export const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);
