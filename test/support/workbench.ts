import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { linkPackage, root, startNodeRed } from "../../dev/nodered.js";
import { PACKAGE, type Texts } from "../../nodes/editor/forms.js";
import { type SandboxOptions, startSandbox } from "../../sandbox/server.js";
import { launch } from "./chromium.js";
import { openEditor } from "./editor-page.js";
import { installStandIns } from "./standins.js";

/** The context store that keeps its data in files. */
const FILES = "file";
/** "secret" */
const password = "$2b$04$tR6pSC7TFlg3Dg.N1epAmOIAegBG9H4t33ZZPwkfPjLvG26nK2UPK";
/** A user with read permission and one with write permission; anonymous users have none. */
const adminAuth = {
  type: "credentials",
  users: [
    { username: "reader", password, permissions: "read" },
    { username: "writer", password, permissions: "*" },
  ],
};
/** A minimal Node-RED, which loads faster and sends no requests to other hosts. */
const more = {
  adminAuth,
  contextStorage: { default: { module: "memory" }, [FILES]: { module: "localfilesystem" } },
  editorTheme: { tours: false, codeEditor: { lib: "ace" }, palette: { catalogues: [] } },
  nodesIncludes: [
    ...["20-inject.js", "21-debug.js", "05-tls.js", "06-httpproxy.js", "21-httpin.js", "91-global-config.js"],
    // A package is also included by the name of its folder.
    basename(PACKAGE),
  ],
};

/** The built texts of a language. */
export const catalogueOf = (locale: string) =>
  JSON.parse(readFileSync(join(root, `dist/nodes/locales/${locale}/seo-reports.json`), "utf8")) as Texts;

/** Changes to the default: an empty workspace, few node types, and a sandbox that responds immediately. */
interface Start {
  /** Whether Node-RED has all of its nodes, and the stand-ins. */
  all?: boolean;
  env?: Record<string, string>;
  flows?: object[];
  credentials?: Record<string, object>;
  service?: SandboxOptions;
  scale?: number;
}

export type Workbench = Awaited<ReturnType<typeof startWorkbench>>;

/** Starts Node-RED with the built package, the sandbox, and a browser in which the writer is logged in. */
export async function startWorkbench(
  chromium: string,
  { all = false, env = {}, flows = [], credentials = {}, service, scale = 1 }: Start = {},
) {
  const userDir = mkdtempSync(join(tmpdir(), "seo-editor-"));
  writeFileSync(join(userDir, "flows.json"), JSON.stringify(flows));
  writeFileSync(join(userDir, "flows_cred.json"), JSON.stringify(credentials));
  linkPackage(userDir);
  if (all) installStandIns(userDir);
  const start = async () => {
    const sandbox = await startSandbox(service);
    return {
      sandbox,
      nodeRed: await startNodeRed(userDir, {
        env: { SEO_BASE_URL: sandbox.url, SEO_API_KEY: sandbox.apiKey, ...env },
        more: all ? { ...more, nodesIncludes: undefined } : more,
      }),
    };
  };
  const [browser, { sandbox, nodeRed }] = await Promise.all([launch(chromium), start()]);
  /** The access token of a user. */
  const token = async (username: string) => {
    const scope = adminAuth.users.find((user) => user.username === username)?.permissions;
    const body = { client_id: "node-red-editor", grant_type: "password", scope, username, password: "secret" };
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${nodeRed.url}/auth/token`, { method: "POST", headers, body: JSON.stringify(body) });
    return ((await answer.json()) as { access_token: string }).access_token;
  };
  /** Sends a request to the admin API, as a user or anonymously. */
  const ask = async (path: string, user?: string, body?: object) => {
    const headers = {
      accept: "application/json",
      "content-type": "application/json",
      ...(user && { authorization: `Bearer ${await token(user)}` }),
    };
    const how = body ? { method: "POST", body: JSON.stringify(body) } : {};
    const answer = await fetch(`${nodeRed.url}/${path}`, { headers, ...how });
    return { status: answer.status, text: await answer.text() };
  };
  // The tips of Node-RED 5 sometimes fail because they have no place to appear.
  await ask("settings/user", "writer", { editor: { view: { "view-show-tips": false } } });
  const page = await browser.newPage({
    viewport: { width: 1200, height: 900 },
    deviceScaleFactor: scale,
    colorScheme: "light",
    reducedMotion: "reduce",
  });
  page.setDefaultTimeout(120_000);
  const editor = await openEditor(page, nodeRed.url, await token("writer"));

  return {
    sandbox,
    editor,
    url: nodeRed.url,
    log: nodeRed.log,
    ask,
    /** Deploys the editor's flows and waits until they have started, because Node-RED responds earlier. */
    async deploy() {
      const seen = nodeRed.log.length;
      await editor.deploy();
      while (!nodeRed.log.slice(seen).some((line) => line.includes("Started"))) await setTimeout(20);
    },
    async stop() {
      await browser.close();
      await Promise.all([nodeRed.stop(), sandbox.close()]);
      rmSync(userDir, { recursive: true, force: true });
    },
  };
}
