import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Failure, failure } from "../outcome/failure.ts";

/** A new directory under TMPDIR for personal data: mode 0700, the operator's alone. */
export function makePrivateDirectory(purpose: string): string | Failure {
  try {
    return mkdtempSync(join(tmpdir(), `customers-${purpose}-`));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    return failure(
      "failure",
      `no directory can be made in ${tmpdir()} (${code}); nothing was sent`,
      "Set TMPDIR.",
    );
  }
}
