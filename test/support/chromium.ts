import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, chromium } from "playwright-core";
import { missing } from "./program.js";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const USUAL = ["/usr/bin", "/usr/local/bin", "/snap/bin"];
const MAC = ["Chromium", "Google Chrome"].map((name) => `/Applications/${name}.app/Contents/MacOS/${name}`);
const HINT =
  "Chromium was not found, so the editor tests are skipped. Run apt-get install chromium or npx playwright-core install chromium, or set CHROMIUM_PATH.";

const runnable = (path: string) => {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

/** The path of Chromium, if any: from the environment, else where systems or Playwright install it. */
function findChromium(): string | undefined {
  const { CHROMIUM_PATH, CHROME_BIN, PATH = "" } = process.env;
  const named = CHROMIUM_PATH ?? CHROME_BIN;
  if (named) return runnable(named) ? named : undefined;
  const folders = [...PATH.split(delimiter).filter(Boolean), ...USUAL];
  const installed = NAMES.flatMap((name) => folders.map((folder) => join(folder, name)));
  return [...installed, ...MAC, chromium.executablePath()].find(runnable);
}

/** The Chromium to use. If there is none: an error in CI, else one line that says what to do. */
export const needChromium = () => findChromium() ?? missing(HINT);

export const launch = (executablePath: string): Promise<Browser> =>
  chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
