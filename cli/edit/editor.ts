/** The operator's editor on one file, which stays until it is removed on purpose. */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makePrivateDirectory } from "../files/private-directory.ts";
import { systemCode } from "../files/system-code.ts";
import { decodeUtf8 } from "../files/utf-8.ts";
import type { Invocation } from "../invocation.ts";
import { type Failure, failure, isFailure } from "../outcome/failure.ts";

/** Personal data, and an editor may move the file out of its private directory. */
const OWN = { mode: 0o600 };

export type EditedFile = {
  path: string;
  /** Shows the text in the editor, and gives what was saved. */
  edit(text: string): Promise<string | Failure>;
  remove(): void;
};

/** $VISUAL, else $EDITOR, else vi where a person sits; a shell reads it, so `code --wait` works. */
export function openEditor(
  { env, terminal, host, interrupted }: Invocation,
  name: string,
): EditedFile | Failure {
  const editor = env["VISUAL"] || env["EDITOR"] || (terminal.interactive ? "vi" : "");
  if (editor === "") {
    return failure(
      "usage",
      "there is no terminal and no editor is set",
      "Set VISUAL or EDITOR, or use: customers update",
    );
  }
  const directory = makePrivateDirectory("edit");
  if (typeof directory !== "string") return directory;
  const remove = () => rmSync(directory, { recursive: true, force: true });
  let isFirst = true;
  const path = join(directory, `${name.replaceAll(/[^A-Za-z0-9_-]/g, "_")}.jsonc`);
  return {
    path,
    async edit(text) {
      const shown = withFile(path, "written", () => writeFileSync(path, text, OWN));
      if (shown !== undefined) return shown;
      if (interrupted.aborted) return failure("interrupted", "interrupted; nothing was sent");
      // Ctrl-C in an editor is a key of the editor: it must not end the command that waits for it.
      const resume = host.suspendInterrupts();
      const child = Bun.spawn(["/bin/sh", "-c", `${editor} "$1"`, "customers-edit", path], {
        env: { ...env },
        stdin: "inherit",
        stdout: terminal.stdoutIsTerminal ? "inherit" : 2, // stdout is for data
        stderr: "inherit",
        signal: interrupted,
      });
      const began = performance.now();
      const exitCode = await child.exited;
      resume();
      const isOfServer = isFirst;
      isFirst = false;
      if (interrupted.aborted)
        return failure("interrupted", "interrupted while the editor was open; nothing was sent");
      if (exitCode !== 0) {
        // `:cq` of vi: what the server shows need not be kept, and is personal data.
        const left = existsSync(path) && withFile(path, "read", () => readFileSync(path, "utf8"));
        if (isOfServer && left === text) remove();
        return failure(
          "failure",
          `the editor (${editor}) ended with exit code ${exitCode}; nothing was sent`,
        );
      }
      if (existsSync(path)) {
        const bytes = withFile(path, "read", () => readFileSync(path));
        if (isFailure(bytes)) return bytes;
        const saved = decodeUtf8(bytes);
        if (saved === undefined) return notUtf8(path);
        return saved === text && performance.now() - began < HURRIED_MS && terminal.interactive
          ? hurried(editor)
          : saved;
      }
      const restored = withFile(path, "written", () => writeFileSync(path, text, OWN));
      return restored ?? failure("failure", `the editor (${editor}) removed the file; nothing was sent`);
    },
    remove,
  };
}

/** Nobody reads a text and decides in less: the editor has left its window open and returned. */
const HURRIED_MS = 1000;

function hurried(editor: string): Failure {
  return failure(
    "usage",
    `the editor (${editor}) returned at once without a change; nothing was sent`,
    "An editor with a window of its own must wait until the file is closed: VISUAL='code --wait'.",
  );
}

function notUtf8(path: string): Failure {
  return failure(
    "usage",
    `the text in ${path} is not UTF-8; nothing was sent`,
    "Have the editor save it as UTF-8.",
  );
}

/** A full disk, or what an editor left in the file's place, is no fault of this program. */
function withFile<Value>(path: string, done: "written" | "read", work: () => Value): Value | Failure {
  try {
    return work();
  } catch (error) {
    return failure(
      "failure",
      `the text in ${path} can't be ${done} (${systemCode(error)}); nothing was sent`,
      "Make room there, or set TMPDIR.",
    );
  }
}
