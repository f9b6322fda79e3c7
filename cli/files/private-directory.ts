import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Failure, failure } from "../outcome/failure.ts";
import { systemCode } from "./system-code.ts";

/** A new directory under TMPDIR for personal data: mode 0700, the operator's alone. */
export function makePrivateDirectory(purpose: string): string | Failure {
  try {
    return mkdtempSync(join(tmpdir(), `customers-${purpose}-`));
  } catch (error) {
    return failure(
      "failure",
      `no directory can be made in ${tmpdir()} (${systemCode(error)}); nothing was sent`,
      "Set TMPDIR.",
    );
  }
}
