import { type Any, type Editor, STORED } from "./state.js";

const PAUSE = 250;
const CACHED_FOR = 10_000;
const MOST = 20;

type Reason = (node: Any, name: string) => string;

/** The requests of an edit dialog to the runtime: connection tests and suggestions. */
export function createRequests({ RED, $, text, state }: Editor, reason: Reason) {
  const { rows, current, chosen } = state;
  const post = (path: string, data: unknown) =>
    $.ajax({ url: path, method: "POST", contentType: "application/json", data: JSON.stringify(data) });

  /** The settings of a config node in its edit dialog or the workspace, deployed or not. */
  const draft = (config: Any) => {
    const secret = (name: string) => current(config, name) ?? config.credentials?.[name] ?? STORED;
    const values = Object.entries(rows(config)).map(([name, row]) => [
      name,
      row.credential ? secret(name) : chosen(config, name),
    ]);
    return { id: config.id, ...Object.fromEntries(values) };
  };

  /** Tests the connection at each click. Returns a function that clears the result. */
  const test = (node: Any, button: Any, result: Any) => {
    let runs = 0;
    const show = (ok: boolean, message: string) => {
      result.text(message).attr("class", ok ? "seo-good" : "seo-bad");
    };
    button.on("click", () => {
      const invalid = Object.keys(rows(node)).flatMap((name) => reason(node, name) || []);
      if (invalid.length > 0) return show(false, invalid.join(" "));
      const run = ++runs;
      const end = (ok: boolean, message: string) => run === runs && show(ok, message);
      result.text(text("dialog.testing")).attr("class", "");
      post(`${node.type}/test`, draft(node)).then(
        ({ ok, stage, values }: Any) => end(ok === true, text(`node.${node.type}.stage.${stage}`, values)),
        (failed: Any) => {
          const why = failed.status ? `HTTP ${failed.status}` : text("dialog.unanswered");
          end(false, text("dialog.untested", { reason: why }));
        },
      );
    });
    return () => {
      runs++;
      result.text("").attr("class", "");
    };
  };

  const answers = new Map<string, { time: number; answer: Any }>();
  const nameOf = ({ label, date }: Any) => {
    const day = new Date(date ?? Number.NaN);
    if (Number.isNaN(day.getTime())) return String(label);
    return `${label} · ${day.toLocaleDateString(RED.i18n.lang(), { day: "numeric", month: "short" })}`;
  };
  /** Fills `list` with suggestions while the user types into `input`. Errors are ignored. */
  const suggest = (node: Any, operation: string, input: Any, list: Any) => {
    const look = () => {
      const service = RED.nodes.node(current(node, "service"));
      const typed = input.val();
      if (!service || !input.attr("list")) return;
      const question = { ...draft(service), operation, text: typed };
      const key = JSON.stringify(question);
      if (Date.now() - (answers.get(key)?.time ?? 0) > CACHED_FOR)
        answers.set(key, { time: Date.now(), answer: post("seo-service/suggest", question) });
      answers.get(key)?.answer.then(
        (found: Any) => {
          if (input.val() !== typed || !Array.isArray(found?.suggestions)) return;
          const option = (one: Any) => $("<option>").attr("value", String(one.value)).text(nameOf(one));
          list.empty().append(found.suggestions.slice(0, MOST).map(option));
        },
        () => answers.delete(key),
      );
      if (answers.size > MOST) answers.clear();
    };
    let timer: ReturnType<typeof setTimeout>;
    input.on("input focus", () => {
      clearTimeout(timer);
      timer = setTimeout(look, PAUSE);
    });
  };

  return { test, suggest };
}
