/** The error messages that more than one test expects. */

/** The message for a value that is not allowed. */
export const mustBe = (name: string, allowed: string, from: string, actual: string) =>
  `${name} must be ${allowed}; ${from} is ${actual}.`;

export const wholeNumber = (min = 0) => `a whole number, ${min} or greater`;

/** The message for a required value that is blank. */
export const required = (name: string, from: string) => `${name} is required; ${from} is blank.`;

/** The message for an HTTP status that is an error, with the service's own words. */
export const returned = (status: number, words: string) =>
  status === 422 ? `The service rejected the request (422): ${words}` : `The service returned ${status}: ${words}`;
