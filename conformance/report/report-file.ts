import { readFileSync } from "node:fs";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { ProfileFault } from "../target/profile.ts";
import { Report } from "./schema.ts";

const compiled = TypeCompiler.Compile(Report);

/** @throws ProfileFault where the file is missing, is not JSON, or is not a report of this schema. */
export function readReport(path: string): Report {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ProfileFault([`${path} can't be read as JSON: ${why}. Give the report.json of a run.`]);
  }
  if (compiled.Check(value)) return value;
  const [first] = [...compiled.Errors(value)];
  throw new ProfileFault([`${path} is not a report of this kit: ${first?.path} ${first?.message}.`]);
}
