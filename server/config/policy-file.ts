import { readFileSync } from "node:fs";
import { parse, TomlError } from "smol-toml";
import { type PolicyResult, readPolicy } from "../domain/policy.ts";

/** The policy of a service without a policy file. */
export const BUILT_IN_POLICY = `[roles.admin]
read = ["id", "name", "email", "status"]
operations = ["get", "list", "create", "replace", "patch", "delete"]
[roles.editor]
read = ["id", "name", "email", "status"]
operations = ["get", "list", "create", "replace", "patch", "delete"]
[roles.viewer]
read = ["id", "name", "email", "status"]
operations = ["get", "list"]
[roles.support]
read = ["id", "name", "status"]
operations = ["get", "list"]
[roles.monitor]
read = []
operations = ["metrics"]

[enforcement]
mode = "strict"
`;

/** @param path a TOML file, or null for the built-in policy */
export function readPolicyFile(path: string | null): PolicyResult {
  if (path === null) return readPolicyText(BUILT_IN_POLICY);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    return { ok: false, faults: [`it cannot be read: ${(error as Error).message}`] };
  }
  return readPolicyText(text);
}

export function readPolicyText(text: string): PolicyResult {
  try {
    const faults = impossibleDates(text);
    return faults.length > 0 ? { ok: false, faults } : readPolicy(parse(text));
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    return { ok: false, faults: [`it is not TOML: ${error.message.trim()}`] };
  }
}

/** The parser moves 2027-02-30 to the second of March, and would lengthen an allowance by that. */
function impossibleDates(text: string): string[] {
  return [...text.matchAll(/^[ \t]*until[ \t]*=[ \t]*(\d{4}-\d{2}-\d{2})/gm)]
    .map(([, date = ""]) => date)
    .filter((date) => {
      const time = Date.parse(`${date}T00:00:00Z`);
      return Number.isNaN(time) || new Date(time).toISOString().slice(0, 10) !== date;
    })
    .map((date) => `enforcement.until is ${date}, and there is no such day`);
}
