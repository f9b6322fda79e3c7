import type { Command } from "commander";
import { readConfig } from "../config/config.ts";
import { mistypedVariables } from "../config/mistyped-variables.ts";
import { SETTING_NAMES } from "../config/settings.ts";
import { nearest } from "../domain/text/nearest.ts";
import { curlLines } from "../first-start.ts";
import type { RunningService } from "../service.ts";
import { OutputLost, print } from "./common/print.ts";
import {
  type CommandOptions,
  settingsRefused,
  settingTexts,
  withSettings,
} from "./common/setting-options.ts";
import { onReload, onStop } from "./common/signals.ts";

export function addServeCommand(program: Command): void {
  withSettings(program.command("serve", { isDefault: true }), SETTING_NAMES)
    .description("Start the service.")
    .option("--no-samples", "the same as --samples 0")
    .option("--print-url", 'print one line, {"url":"…"}, on stdout and nothing else')
    // As the default command it receives every word that is no command.
    .allowExcessArguments()
    .action(async (options: CommandOptions, { args: [word] }: Command) => {
      if (word !== undefined) refuseWord(program, word);
      await serve(options);
    });
}

async function serve(options: CommandOptions): Promise<void> {
  // Until the service runs there is nothing to finish.
  let stop = (): void => process.exit(0);
  onStop(() => stop());
  const config = readConfig(settingTexts(options));
  if (!config.ok) throw settingsRefused(config.faults);
  // Loaded here alone: the other commands need no HTTP, which takes most of the time to start.
  const { startService } = await import("../service.ts");
  const service = await startService(config.value);
  for (const sentence of mistypedVariables(Object.keys(process.env))) service.logWarning(sentence);
  stop = () => {
    stop = service.endGrace;
    void service.stop().then(() => process.exit(0));
  };
  onReload(service.reload);
  try {
    print(announcement(service, options["printUrl"] === true, config.value.tls !== null));
  } catch (error) {
    if (!(error instanceof OutputLost)) throw error;
    service.logFault(`${error.reason} The service runs on; the log has its address.`);
  }
}

function announcement(
  { url, adminUrl, first }: RunningService,
  isForPrograms: boolean,
  isTls: boolean,
): string {
  if (isForPrograms) return JSON.stringify({ url, ...(adminUrl === null ? {} : { adminUrl }) });
  const lines = [`Listening on ${url}`];
  if (adminUrl !== null) lines.push(`Metrics and health on ${adminUrl}`);
  if (first !== null) {
    lines.push(`\nThe first start created an admin token in ${first.tokenFile}. Try:\n`);
    for (const line of curlLines(first, url, isTls)) lines.push(`${line}\n`);
  }
  return lines.join("\n");
}

function refuseWord(program: Command, word: string): never {
  const near = nearest(
    word,
    program.commands.map((command) => command.name()),
  );
  const hint = near === null ? "" : `\n(Did you mean ${near}?)`;
  return program.error(`error: unknown command '${word}'${hint}`);
}
