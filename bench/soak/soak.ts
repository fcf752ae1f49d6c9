/** `npm run soak [-- messages [reconcile]]`, or `npm run soak -- audit [pages]`. */
await import(process.argv[2] === "audit" ? "./audit.js" : "./messages.js");
