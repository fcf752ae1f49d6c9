/** Error texts that several tests expect. */

/** The message for a value that is not allowed. */
export const mustBe = (name: string, allowed: string, from: string, actual: string) =>
  `${name} must be ${allowed}; ${from} is ${actual}.`;

export const wholeNumber = (min = 0) => `a whole number, ${min} or greater`;

/** The message for a required value that is blank. */
export const required = (name: string, from: string) => `${name} is required; ${from} is blank.`;

/** The message for an HTTP status that is an error, with the service's own words. */
export const returned = (status: number, words: string) =>
  status === 422 ? `The service rejected the request (422): ${words}` : `The service returned ${status}: ${words}`;

/** Ends the error of a list that fails after some pages. */
export const received = (records: number, pages: number) =>
  ` Records received before that: ${records} (pages: ${pages}).`;

/** The error of an input that cannot be read from `source`; the reason follows. */
export const unreadable = (name: string, source: string) => `Could not read ${name} from ${source}`;
