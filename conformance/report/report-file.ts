import { readFileSync } from "node:fs";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { ProfileFault } from "../target/profile.ts";
import { Report } from "./schema.ts";

const compiled = TypeCompiler.Compile(Report);

/** Members of evidence, layers and rules that were called otherwise before version 1.2, by a member beside them. */
const FORMER_NAMES = [
  ["probe", "odd", "header"],
  ["probe", "twin", "control"],
  ["sign", "mending", "fix"],
  ["impact", "again", "rerun"],
] as const;

function renamed(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const object = value as Record<string, unknown>;
  for (const [beside, former, name] of FORMER_NAMES) {
    if (!(beside in object && former in object)) continue;
    object[name] = object[former];
    delete object[former];
  }
  return object;
}

/** @throws ProfileFault where the file is missing, is not JSON, or is not a report of this schema. */
export function readReport(path: string): Report {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, "utf8"), renamed);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ProfileFault([`${path} can't be read as JSON: ${why}. Give the report.json of a run.`]);
  }
  if (compiled.Check(value)) return value;
  const [first] = [...compiled.Errors(value)];
  throw new ProfileFault([`${path} is not a report of this kit: ${first?.path} ${first?.message}.`]);
}
