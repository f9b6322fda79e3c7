import { homedir } from "node:os";
import { join } from "node:path";
import type { Environment } from "./setting-source.ts";

/**
 * A file of this program in a directory of the XDG Base Directory specification.
 * @param fallback below the home directory
 */
export function xdgPath(
  env: Environment,
  variable: "XDG_CONFIG_HOME" | "XDG_STATE_HOME",
  fallback: string,
  file: string,
): string {
  // A path that is not absolute must be ignored, says the specification.
  const configured = env[variable];
  const base = configured?.startsWith("/") ? configured : join(env["HOME"] || homedir(), fallback);
  return join(base, "customers", file);
}
