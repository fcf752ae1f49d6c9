const [, , what = "messages"] = process.argv;
/** `npm run soak [-- messages [reconcile]]`, `npm run soak -- audit [pages]`, or `npm run soak -- machines [runs]`. */
await import(["audit", "machines"].includes(what) ? `./${what}.js` : "./messages.js");
