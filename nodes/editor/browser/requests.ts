import type { Any, Text } from "./validation.js";

const PAUSE = 250;
const FRESH = 10_000;
const MOST = 20;

/** The requests of a dialog to the runtime: whether the service can be reached, and what can be written into a field. */
export function createRequests(RED: Any, $: Any, text: Text, current: (node: Any, name: string) => string | undefined) {
  const post = (path: string, data: unknown) =>
    $.ajax({ url: `seo-service/${path}`, method: "POST", contentType: "application/json", data: JSON.stringify(data) });
  /** A service as its dialog or the workspace has it, deployed or not. */
  const draft = (service: Any) => {
    const at = (name: string) => String(current(service, name) ?? "").replace("_ADD_", "");
    const apiKey = current(service, "apiKey") ?? service.credentials?.apiKey ?? "__PWRD__";
    return { id: service.id, baseUrl: at("baseUrl"), apiKey, tls: at("tls"), proxy: at("proxy") };
  };

  const test = (node: Any, button: Any, result: Any) => {
    const show = (ok: boolean, message: string) => {
      result.text(message).attr("class", ok ? "seo-good" : "seo-bad");
      button.prop("disabled", false);
    };
    button.on("click", () => {
      button.prop("disabled", true);
      result.text(text("dialog.testing")).attr("class", "");
      post("test", draft(node)).then(
        ({ ok, stage, reason, count }: Any) =>
          show(ok === true, `${ok ? text("dialog.found", { count }) : reason} ${text(`stage.${stage}`)}`),
        (failed: Any) => {
          const reason = failed.status ? failed.responseText || failed.statusText : text("dialog.unanswered");
          show(false, text("dialog.untested", { reason: String(reason).slice(0, 300) }));
        },
      );
    });
  };

  const answers = new Map<string, { time: number; answer: Any }>();
  const told = ({ label, date }: Any) => {
    const day = new Date(date ?? Number.NaN);
    if (Number.isNaN(day.getTime())) return String(label);
    return `${label} · ${day.toLocaleDateString(RED.i18n.lang(), { day: "numeric", month: "short" })}`;
  };
  /** Fills `list` with what the service has, as one types into `input`; in silence where it cannot. */
  const suggest = (node: Any, operation: string, input: Any, list: Any) => {
    const look = () => {
      const service = RED.nodes.node(current(node, "service"));
      const typed = input.val();
      if (!service || !input.attr("list")) return;
      const question = { ...draft(service), operation, text: typed };
      const key = JSON.stringify(question);
      if (Date.now() - (answers.get(key)?.time ?? 0) > FRESH)
        answers.set(key, { time: Date.now(), answer: post("suggest", question) });
      answers.get(key)?.answer.then(
        (found: Any) => {
          if (input.val() !== typed || !Array.isArray(found?.suggestions)) return;
          const option = (one: Any) => $("<option>").attr("value", String(one.value)).text(told(one));
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
