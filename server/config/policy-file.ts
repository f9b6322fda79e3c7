import { parse, TomlError } from "smol-toml";
import { type Enforcement, type PolicyResult, readPolicy } from "../domain/policy/policy.ts";
import { dayOf } from "../domain/text/iso-time.ts";
import { readRegularFile } from "./regular-file.ts";

/** The policy of a service without a policy file. */
export const BUILT_IN_POLICY = `[roles.admin]
read = ["id", "name", "email", "status"]
operations = ["get", "list", "create", "replace", "patch", "delete", "history"]
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
    text = readRegularFile(path);
  } catch (error) {
    return { ok: false, faults: [`it cannot be read: ${(error as Error).message}`] };
  }
  return readPolicyText(text);
}

export function readPolicyText(text: string): PolicyResult {
  try {
    const result = readPolicy(parse(text));
    const fault = result.ok ? movedDateFault(text, result.policy.enforcement) : null;
    return fault === null ? result : { ok: false, faults: [fault] };
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    return { ok: false, faults: [`it is not TOML: ${placeOf(error)}`] };
  }
}

/** The lines below the first quote the file, which may be one of secrets: logs keep the fault. */
function placeOf({ line, column, message }: TomlError): string {
  const [kind = ""] = message.replace(/^Invalid TOML document: /, "").split("\n");
  return `line ${line}, column ${column}: ${kind}`;
}

/**
 * The parser moves 2027-02-30 to the second of March, which
 * would lengthen an allowance. The file does not hold that date.
 */
function movedDateFault(text: string, enforcement: Enforcement): string | null {
  if (enforcement.mode !== "observe") return null;
  const date = dayOf(enforcement.untilMs);
  if (text.includes(date)) return null;
  return `enforcement.until must be a day of the calendar, as in 2027-03-31; as written it would mean ${date}`;
}
