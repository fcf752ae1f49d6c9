/** `npm run soak -- messages [count [reconcile]]`, `audit [pages]`, `kills [kills [pages]]`, `machines [runs]`, `long [minutes]` or `week [weeks]`. */
const [what = ""] = process.argv.slice(2);
if (!["messages", "audit", "kills", "machines", "long", "week"].includes(what))
  throw new Error("Usage: npm run soak -- messages|audit|kills|machines|long|week [count]");
await import(`./${what}.js`);
