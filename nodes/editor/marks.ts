/** Stands before an English text that has yet to be translated. `npm run texts` writes it, and a release is refused while it is there. */
export const MARK = "[translate] ";

/** The JSON of a catalog without marks, as the editor shows it. */
export const unmarked = (json: string) => json.replaceAll(`"${MARK}`, '"');
