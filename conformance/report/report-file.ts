import { readFileSync } from "node:fs";
import { Value } from "@sinclair/typebox/value";
import { messageOf } from "../target/message.ts";
import { ProfileFault } from "../target/profile.ts";
import { Report } from "./schema.ts";

/** @throws ProfileFault where the file is missing, is not JSON, or is not a report of this schema. */
export function readReport(path: string): Report {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw new ProfileFault([
      `${path} can't be read as JSON: ${messageOf(error)}. Give the report.json of a run.`,
    ]);
  }
  if (Value.Check(Report, value)) return value;
  const [first] = [...Value.Errors(Report, value)];
  throw new ProfileFault([`${path} is not a report of this kit: ${first?.path} ${first?.message}.`]);
}
