import { Argument, Option } from "@commander-js/extra-typings";
import { refusalOf } from "../client/refusal.ts";
import type { Reply } from "../client/wire/reply.ts";
import type { ApiRequest } from "../client/wire/request.ts";
import { isSuccess, meaningOf } from "../client/wire/status.ts";
import { readSettingFile } from "../config/sources/setting-source.ts";
import type { Invocation } from "../invocation.ts";
import { failure, UsageError } from "../outcome/failure.ts";
import { readFailure, unclearReply, writeFailure } from "../outcome/reply-failure.ts";
import { untilInterrupted } from "../outcome/until-interrupted.ts";
import { visibleControls } from "../output/visible-controls.ts";
import type { RegisterCommand } from "./common/command.ts";
import { confirmWrite } from "./common/confirm-write.ts";
import { entityTag, YES } from "./common/options.ts";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

export const registerApi: RegisterCommand = (program, run) => {
  program
    .command("api")
    .description(
      "send one request as it is, with the credentials, proxy and TLS of the settings; nothing is retried",
    )
    .addArgument(new Argument("<method>", "the method").choices(METHODS))
    .argument("<path>", "below the base URL, such as /customers?limit=1", pathBelow)
    .option("--input <path>", "the body, from a file; - is stdin")
    .option("-i, --include", "print the status and the headers before the body")
    .addOption(new Option("--if-match <tag>", "send If-Match").argParser(entityTag))
    .addOption(YES)
    .action(
      run(async (invocation, method, path, options) => {
        const body = await readBody(options.input, invocation);
        const request: ApiRequest = {
          method,
          path,
          headers: {
            accept: "application/json",
            ...(body === undefined ? {} : { "content-type": "application/json" }),
            ...(options.ifMatch === undefined ? {} : { "if-match": options.ifMatch }),
          },
          ...(body === undefined ? {} : { body }),
        };
        if (method !== "GET") {
          const refused = await confirmWrite(invocation, `send ${method} ${path}`, options.yes ?? false);
          if (refused !== undefined) return refused;
        }
        const { api, out, terminal } = invocation;
        const { remainingMs, interrupted } = invocation.deadline();
        const reply = await api.send(request, remainingMs(), interrupted);
        if (reply.kind === "complete") {
          const head = [...reply.fields].map(([name, value]) => `${name}: ${value}\n`).join("");
          const text = `${options.include ? `${reply.status}\n${head}\n` : ""}${reply.text}`;
          await out.write(terminal.stdoutIsTerminal ? onTerminal(text) : text);
          if (isSuccess(reply.status) || reply.status === 304) return undefined;
        }
        if (method !== "GET" && isUnclear(reply)) {
          return failure(
            "unknown-outcome",
            `the outcome of ${method} ${path} is unknown: ${unclearReply(reply)}`,
            "Look at what it was to change before you send it again.",
          );
        }
        const conditional = options.ifMatch !== undefined;
        const subject = { what: `${method} ${path}`, url: api.url, method, conditional };
        return method === "GET"
          ? readFailure(refusalOf(reply, "reading"), subject)
          : writeFailure(refusalOf(reply, "writing"), "done", subject);
      }),
    );
};

/** The prompt of the shell begins a line of its own. */
function onTerminal(text: string): string {
  return visibleControls(text === "" || text.endsWith("\n") ? text : `${text}\n`);
}

/** It may have been applied. */
function isUnclear(reply: Reply): boolean {
  if (reply.kind === "no-complete-reply") return reply.sent;
  const { write } = meaningOf(reply.status);
  return write === "may-arrive" || write === "reading-settles";
}

/** A whole URL would send the credentials elsewhere. */
function pathBelow(path: string): string {
  if (/[^\x21-\xff]/.test(path))
    throw new UsageError(
      "the path holds a character that no request line can carry",
      "Percent-encode it: a space is %20.",
    );
  if (path.startsWith("/") && !path.startsWith("//")) return path;
  throw new UsageError(
    `"${path}" does not begin with one slash`,
    "Give the path below the base URL: /customers",
  );
}

async function readBody(
  input: string | undefined,
  { flags, terminal, interrupted }: Invocation,
): Promise<string | undefined> {
  if (input === undefined) return undefined;
  if (input !== "-") return await untilInterrupted(readSettingFile(input, "--input"), interrupted);
  if (flags.tokenStdin)
    throw new UsageError("stdin can't hold both the token and the body", "Use --token-file.");
  return await terminal.readStdin("Put it into a file, and give the file: --input FILE.");
}
