/** Error texts that several tests expect. */

/** Ends the error of a list that fails after some pages. */
export const received = (records: number, pages: number) =>
  ` Records received before that: ${records} (pages: ${pages}).`;

/** The error of a node's setting that is not a whole number of at least `min`. */
export const notWhole = (name: string, min: number, value: string) =>
  `${name} must be a whole number, ${min} or greater; the node's ${name} is "${value}".`;

/** The error of an input that cannot be read from `source`; the reason follows. */
export const unreadable = (name: string, source: string) => `Could not read ${name} from ${source}`;
