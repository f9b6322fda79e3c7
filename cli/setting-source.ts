/** Where settings come from. */
import { readFileSync } from "node:fs";
import { UsageError } from "./failure.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** @param option the flag, for the message of the UsageError. */
export function readSettingFile(path: string, option: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new UsageError(
      `${option}: ${path} can't be read (${(error as NodeJS.ErrnoException).code ?? error})`,
    );
  }
}

/** A variable that is set but empty counts as not set. */
export function fromEnvironment(env: Environment, name: string): string | undefined {
  const value = env[name];
  return value === undefined || value === "" ? undefined : value;
}
