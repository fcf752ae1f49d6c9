import { execFileSync } from "node:child_process";
import { accessSync, constants, existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, chromium } from "playwright-core";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const USUAL = ["/usr/bin", "/usr/local/bin", "/snap/bin"];
const MAC = ["Chromium", "Google Chrome"].map((name) => `/Applications/${name}.app/Contents/MacOS/${name}`);
const HINT =
  "Chromium was not found, so the editor tests are skipped. Run apt-get install chromium or npx playwright-core install chromium, or set CHROMIUM_PATH.";

type Environment = Record<string, string | undefined>;

const runnable = (path: string) => {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

/** The path of Chromium, if any: from the environment, else where systems or Playwright install it. */
export function findChromium(env: Environment = process.env): string | undefined {
  const named = env.CHROMIUM_PATH ?? env.CHROME_BIN;
  if (named) return runnable(named) ? named : undefined;
  const folders = [...(env.PATH ?? "").split(delimiter).filter(Boolean), ...USUAL];
  const installed = NAMES.flatMap((name) => folders.map((folder) => join(folder, name)));
  return [...installed, ...MAC, chromium.executablePath()].find(runnable);
}

/** Installs Chromium if no confirmation is needed: as root on Debian. */
function install(): void {
  if (process.getuid?.() !== 0 || !existsSync("/etc/debian_version")) return;
  try {
    for (const args of [["update"], ["install", "-y", "--no-install-recommends", "chromium"]])
      execFileSync("apt-get", args, { stdio: "ignore", env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } });
  } catch {
    // The caller prints the hint.
  }
}

/** The path of Chromium, installed if necessary. If there is none, throws in CI and elsewhere prints a hint. */
export function needChromium(env: Environment = process.env, say: (line: string) => void = console.log) {
  let path = findChromium(env);
  if (!path && !env.CHROMIUM_PATH && !env.CHROME_BIN) {
    install();
    path = findChromium(env);
  }
  if (!path && env.CI) throw new Error(HINT);
  if (!path) say(`  ${HINT}`);
  return path;
}

export const launch = (executablePath: string): Promise<Browser> =>
  chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  });
