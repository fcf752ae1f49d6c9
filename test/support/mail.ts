import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { SMTPServer } from "smtp-server";
import { tlsFile } from "./faulty.js";

const require = createRequire(import.meta.url);

/** A mail as its recipient reads it. */
interface Mail {
  subject: string;
  text: string;
  html: string;
  from: { text: string };
  to: { text: string };
}

/** The parser of the e-mail nodes, which has no types. */
const { simpleParser } = createRequire(require.resolve("node-red-node-email/package.json"))("mailparser") as {
  simpleParser(raw: SMTPServerDataStream): Promise<Mail>;
};
type SMTPServerDataStream = Parameters<NonNullable<SMTPServer["onData"]>>[0];

export const LOGIN = { user: "reports@example.com", password: "mail-password" };

/** A local mail server with TLS that accepts one login and keeps the mails; `refuse` makes it reject each mail. */
export async function startMailServer() {
  const mails: Mail[] = [];
  const state = { refuse: false, refused: 0 };
  const server = new SMTPServer({
    secure: true,
    key: tlsFile("key"),
    cert: tlsFile("cert"),
    onAuth: ({ username, password }, _session, callback) =>
      username === LOGIN.user && password === LOGIN.password
        ? callback(null, { user: username })
        : callback(new Error("Invalid login")),
    onData(stream, _session, callback) {
      simpleParser(stream).then((mail) => {
        if (state.refuse) {
          state.refused++;
          return callback(new Error("The mailbox is full"));
        }
        mails.push(mail);
        callback();
      }, callback);
    },
  });
  // A client that gives up is no error of the tests.
  server.on("error", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.server.address() as AddressInfo).port,
    mails,
    state,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

export type MailServer = Awaited<ReturnType<typeof startMailServer>>;
