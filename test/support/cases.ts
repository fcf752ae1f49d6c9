import { buildRequest, type Request } from "../../src/http/request.js";
import { type Operation, operations } from "../../src/operations.js";

/** One operation with one input. */
export interface Case {
  name: string;
  type: string;
  row: Operation;
  input: Record<string, string>;
  once: boolean;
  /** The request that it sends. */
  request: Request;
}

/** An operation with examples of the parameters that are wanted. */
function caseOf(type: string, row: Operation, name: string, wanted: (param: string) => boolean): Case {
  const params = Object.entries(row.params).filter(([param]) => wanted(param));
  const input = Object.fromEntries(
    params.map(([param, { values = {}, example = "secret" }]) => [param, Object.keys(values).at(-1) ?? example]),
  );
  const request = buildRequest(row, input, { origin: "", prefix: "" });
  return { name, type, row, input, once: row.once?.(input) ?? false, request };
}

/** Every operation with its required parameters, and also with all parameters if these change whether a retry is safe. */
export const cases: Case[] = Object.entries<Operation>(operations).flatMap(([type, row]) => {
  const least = caseOf(type, row, type, (param) => row.params[param]?.required === true);
  const most = caseOf(type, row, `${type} with all parameters`, () => true);
  return most.once === least.once ? [least] : [least, most];
});
