/** `npm run soak [-- messages [reconcile]]`, or `npm run soak -- audit [pages]`, `machines [runs]`, `long [minutes]` or `week [weeks]`. */
const [what = "messages"] = process.argv.slice(2);
await import(["audit", "machines", "long", "week"].includes(what) ? `./${what}.js` : "./messages.js");
