import type { Kind, Param } from "../../src/operations.js";

/** One field of a dialog, as the browser knows it: its texts are in the catalogue. */
export interface Row
  extends Partial<
    Pick<Param, "required" | "values" | "default" | "min" | "pattern" | "shown" | "example" | "when" | "suggest">
  > {
  kind: Kind;
  /** Where the catalogue has its texts. */
  key: string;
  /** What a new node has. */
  value: string;
  /** It comes from where the user says (a TypedInput). */
  source?: true;
  credential?: true;
  /** It is under "More". */
  fold?: boolean;
}

// biome-ignore lint/suspicious/noExplicitAny: the editor's globals and nodes have no types that fit Node-RED 4 and 5
type Any = any;

/**
 * The browser half of every node. The page holds this function's source, so it may use nothing but its parameters:
 * the editor's `RED` and `$`, the forms by node type, and the prefix of the catalogue's keys.
 */
export function register(
  RED: Any,
  $: Any,
  forms: Record<string, { main?: string; rows: Record<string, Row> }>,
  prefix: string,
) {
  const LONGEST = 8192;
  const text = (key: string, values?: Record<string, string | number>): string => RED._(prefix + key, values);
  const label = (row: Row) => text(`${row.key}.label`);
  const named = (row: Row, value: string) => {
    const name = text(`${row.key}.values.${value}`);
    return name.toLowerCase() === value.toLowerCase() ? name : `${name} (${value})`;
  };
  /** The value that is meant, by itself or by its English name. */
  const find = ({ values = {} }: Row, meant: string) =>
    Object.keys(values).find((value) =>
      [value, values[value]].some((one) => one?.toLowerCase() === meant.trim().toLowerCase()),
    );

  const sendable = (longest: number, value: string) =>
    value.length > longest ? "long" : /[\p{Cc}\p{Cs}]/u.test(value) ? "control" : "";
  const choice = (value: string, row: Row) => (find(row, value) === undefined ? "choice" : "");
  /** What is wrong with a fixed value, as a key of the catalogue. They agree with src/schema.ts. */
  const rules: Record<Kind, (value: string, row: Row) => string> = {
    text: (value) => sendable(LONGEST, value.trim()),
    secret: (value) => sendable(LONGEST, value),
    segment: (value) => sendable(255, value.trim()) || (/[/\\]|^\.\.?$/.test(value.trim()) ? "segment" : ""),
    choice,
    flag: (value, row) => (/^(true|false|yes|no)$/i.test(value.trim()) ? "" : choice(value, row)),
    count: (value, { min = 0 }) => (Number.isSafeInteger(Number(value)) && Number(value) >= min ? "" : "count"),
    node: () => "",
  };
  const misfit = ({ pattern, example }: Row, value: string) =>
    !pattern || new RegExp(`^(${pattern})$`, "i").test(value.trim()) ? "" : example ? "pattern" : "characters";
  /** The sentence that says why a value is not allowed, or nothing. */
  const reason = (row: Row, given: unknown, source: string): string => {
    const value = String(given ?? "");
    if (given === undefined || /^\$(\{\w+\}|\(\w+\))$/.test(value)) return "";
    if (value.trim() === "" || value === "_ADD_")
      return row.required ? text("invalid.required", { label: label(row) }) : "";
    if (source !== "str") {
      const valid = RED.validators.typedInput({ type: source })(value, { label: label(row) });
      return valid === true ? "" : String(valid);
    }
    const rule = rules[row.kind](value, row) || misfit(row, value);
    if (!rule) return "";
    const values = Object.keys(row.values ?? {}).map((one) => named(row, one));
    return text(`invalid.${rule}`, {
      label: label(row),
      max: row.kind === "segment" ? 255 : LONGEST,
      min: row.min ?? 0,
      values: values.join(", "),
      example: row.example ?? "",
    });
  };

  const rows = (node: Any): Record<string, Row> => forms[node.type]?.rows ?? {};
  const id = (node: Any, name: string) => `#node-${node._def.category === "config" ? "config-" : ""}input-${name}`;
  const opened = new WeakMap<object, Any>();
  /** What a property is: in the node's dialog while that is open, else in the node. */
  const current = (node: Any, name: string): string | undefined =>
    (opened.get(node)?.[0].isConnected ? $(id(node, name)).val() : undefined) ?? node[name];
  const from = (node: Any, name: string): string => (rows(node)[name]?.source && current(node, `${name}Type`)) || "str";
  const bare = (value: unknown) => String(value ?? "").replace("_ADD_", "");
  /** It is as in a new node. */
  const fresh = (node: Any, name: string) =>
    [name, `${name}Type`].every((key) => {
      const { value } = node._def.defaults[key] ?? {};
      return value === undefined || bare(current(node, key) ?? value) === value;
    });

  /** The sentence that says why a value has no effect, or nothing. */
  const conflict = (node: Any, name: string, row: Row): string => {
    if (fresh(node, name) || !current(node, name)) return "";
    for (const [key, needed] of Object.entries(row.when ?? {})) {
      const other = rows(node)[key];
      if (!other || from(node, key) !== "str") continue;
      const value = find(other, current(node, key) ?? "") ?? other.default ?? needed;
      if (value !== needed)
        return text("dialog.when", { label: label(row), other: label(other), value: named(other, needed) });
    }
    return "";
  };
  const refresh = (node: Any) => {
    for (const [name, row] of Object.entries(rows(node))) {
      const line = $(id(node, name)).closest(".form-row");
      const fixed = from(node, name) === "str";
      line.find(".seo-reason").text(reason(row, current(node, name), from(node, name)));
      line.find(".form-tips").text(conflict(node, name, row));
      line.toggle(Object.entries(row.shown ?? {}).every(([key, values]) => values.includes(current(node, key) ?? "")));
      if (!row.source) continue;
      const example = fixed && row.example ? text("dialog.example", { example: row.example }) : "";
      line.find(".red-ui-typedInput-input").attr({
        placeholder: example || (row.required ? "" : text("dialog.unsent")),
        list: fixed && row.suggest ? `seo-${name}` : null,
      });
    }
  };

  /** Turns an input into a TypedInput; where there is a closed list, the fixed value is chosen from it. */
  const typed = (node: Any, name: string, row: Row) => {
    const input = $(id(node, name));
    const value = String(input.val());
    const fixed = { value: "str", label: text("dialog.fixed"), icon: "fa fa-list-ul", options: [] as Any[] };
    for (const one of Object.keys(row.values ?? {})) fixed.options.push({ value: one, label: named(row, one) });
    if (!row.required) {
      const service = row.default ? text("dialog.default", { value: named(row, row.default) }) : text("dialog.unsent");
      fixed.options.unshift({ value: "", label: service });
    }
    if (row.values && from(node, name) === "str") {
      input.val(find(row, value) ?? value);
      if (value && !find(row, value)) fixed.options.push({ value, label: value });
    }
    const types = [row.values ? fixed : "str", "msg", "flow", "global", "env", "jsonata"];
    input.typedInput({ default: "str", typeField: `${id(node, name)}Type`, types });
    const box = input.next(".red-ui-typedInput-container").attr({ role: "group", "aria-label": label(row) });
    box.find(".red-ui-typedInput-input").attr("aria-label", label(row));
    const line = input.closest(".form-row");
    line
      .find("label")
      .on("click", () => box.find("input:visible, .red-ui-typedInput-option-trigger:visible").first().trigger("focus"));
  };

  const post = (path: string, data: unknown) =>
    $.ajax({ url: `seo-service/${path}`, method: "POST", contentType: "application/json", data: JSON.stringify(data) });
  /** The service as the dialog or the workspace has it, deployed or not. */
  const connection = (service: Any) => {
    const at = (name: string) => bare(current(service, name));
    const typed = opened.get(service)?.[0].isConnected ? at("apiKey") : service.credentials?.apiKey;
    return {
      baseUrl: at("baseUrl"),
      apiKey: typed ?? "__PWRD__",
      timeout: at("timeout"),
      tls: at("tls"),
      proxy: at("proxy"),
    };
  };
  const test = (node: Any, button: Any, result: Any) => {
    const show = (ok: boolean, message: string) => {
      result.text(message).attr("class", ok ? "seo-good" : "seo-bad");
      button.prop("disabled", false);
    };
    button.on("click", () => {
      button.prop("disabled", true);
      result.text(text("dialog.testing")).attr("class", "");
      post("test", { id: node.id, ...connection(node) }).then(
        (found: Any) => show(found?.ok === true, String(found?.message ?? "")),
        (failed: Any) => {
          const why = failed.status ? failed.responseText || failed.statusText : text("dialog.unanswered");
          show(false, text("dialog.untested", { reason: String(why).slice(0, 300) }));
        },
      );
    });
  };

  const answers = new Map<string, { time: number; answer: Any }>();
  const suggest = (node: Any, name: string, operation: string) => {
    const line = $(id(node, name)).closest(".form-row");
    const inner = line.find(".red-ui-typedInput-input").removeAttr("autocomplete");
    const list = $("<datalist>").attr("id", `seo-${name}`).appendTo(line);
    const ask = () => {
      const service = RED.nodes.node(current(node, "service"));
      if (!service || from(node, name) !== "str") return;
      const typed = inner.val();
      const question = { service: service.id, ...connection(service), param: name, operation, text: typed };
      const key = JSON.stringify(question);
      const known = answers.get(key);
      const fits = known && Date.now() - known.time < 10_000;
      const { answer } = fits ? known : { answer: post("suggest", question) };
      if (!fits) answers.set(key, { time: Date.now(), answer });
      if (answers.size > 50) answers.clear();
      answer.then(
        ({ suggestions }: Any) => {
          if (inner.val() !== typed) return;
          const options = [...suggestions].slice(0, 20);
          list.empty().append(options.map((one: Any) => $("<option>").attr("value", one.value).text(one.label)));
        },
        () => answers.delete(key),
      );
    };
    let timer: ReturnType<typeof setTimeout>;
    inner.on("input focus", () => {
      clearTimeout(timer);
      timer = setTimeout(ask, 250);
    });
  };

  return {
    text,
    title(this: Any) {
      return text(`node.${this.type}.title`);
    },
    label(this: Any) {
      const main = forms[this.type]?.main;
      const fixed = main && from(this, main) === "str" ? String(this[main] ?? "") : "";
      const short = fixed.length > 40 ? `${fixed.slice(0, 39)}…` : fixed;
      return this.name || `${text(`node.${this.type}.title`)} ${short}`.trim();
    },
    labelStyle(this: Any) {
      return this.name ? "node_label_italic" : "";
    },
    /** Two parameters: so the editor shows what it returns. */
    validate: (name: string) =>
      function (this: Any, value: unknown, _options: unknown) {
        const row = rows(this)[name];
        return (row && reason(row, value, from(this, name))) || true;
      },
    prepare(this: Any) {
      const form = $(id(this, "name")).closest("form");
      // A node of an older version lacks what is new: it has the default, and the dialog shows it.
      for (const [key, { value }] of Object.entries<Any>(this._def.defaults))
        if (this[key] === undefined && value) $(id(this, key)).val(value);
      opened.set(this, form);
      for (const [name, row] of Object.entries(rows(this))) {
        if (row.source) typed(this, name, row);
        if (row.suggest) suggest(this, name, row.suggest);
        if (!fresh(this, name)) $(id(this, name)).closest("details").prop("open", true);
      }
      test(this, form.find(".seo-test"), form.find("output"));
      form.on("change keyup paste input", () => refresh(this));
      refresh(this);
    },
  };
}
