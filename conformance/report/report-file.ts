import { TypeCompiler } from "@sinclair/typebox/compiler";
import { readTextFile } from "../commands/target-options.ts";
import { ProfileFault } from "../target/profile.ts";
import { Report } from "./schema.ts";

const compiled = TypeCompiler.Compile(Report);

/** @throws ProfileFault where the file is missing, no JSON, or no report of this schema. */
export function readReport(path: string): Report {
  let value: unknown;
  try {
    value = JSON.parse(readTextFile(path));
  } catch (error) {
    if (error instanceof ProfileFault) throw error;
    throw new ProfileFault([
      `${path} is not JSON: ${error instanceof Error ? error.message : String(error)}`,
    ]);
  }
  if (compiled.Check(value)) return value;
  const [first] = [...compiled.Errors(value)];
  throw new ProfileFault([`${path} is not a report of this kit: ${first?.path} ${first?.message}`]);
}
