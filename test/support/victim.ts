import { writeSync } from "node:fs";
import { answer, listen } from "./faulty.js";

/** A service in a separate process that tests can kill; prints each request before it responds. */
const { url } = await listen((socket, { body }) => {
  writeSync(1, `${body}\n`);
  setTimeout(() => socket.write(answer(201, '{"data":{"id":7}}')), 5);
});
writeSync(1, `${url}\n`);
