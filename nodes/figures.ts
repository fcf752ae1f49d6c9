/** Milliseconds. */
export const SECOND = 1000;

/** A span of time as a status shows it. The symbols are the same in every language. */
export function span(ms: number): string {
  const seconds = Math.ceil(ms / SECOND);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 10 ? `${hours} h ${minutes % 60} min` : `${Math.round(minutes / 60)} h`;
}

/** The text of why a batch waits, given as the code of its progress. */
export const reasonKey = (reason: string): string =>
  reason.startsWith("SEO_") ? `error.${reason}.status` : `status.${reason}`;
