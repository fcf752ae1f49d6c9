/** `npm run soak [-- messages [reconcile]]`, `npm run soak -- audit [pages]`, or `npm run soak -- machines [runs]`. */
const [what = "messages"] = process.argv.slice(2);
await import(["audit", "machines"].includes(what) ? `./${what}.js` : "./messages.js");
