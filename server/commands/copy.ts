import { isatty } from "node:tty";
import type { Command } from "commander";
import { CommandRefused } from "../domain/command-refused.ts";
import { maskPassword } from "../domain/text/mask-password.ts";
import type { CopyProgress, CopyReport } from "../storage/copy/copy-rows.ts";
import { copyDatabase } from "../storage/database-url/copy-database.ts";
import { databaseUrlFault, MEMORY_URL } from "../storage/database-url/open-storage.ts";
import { refuseVisiblePassword } from "./common/named-database.ts";
import { print } from "./common/print.ts";
import { type CommandOptions, settingsOf, withSettings } from "./common/setting-options.ts";

type CopyOptions = CommandOptions & { readonly from: string; readonly to: string };

/** Not `databaseUrl`: a copy has two, and must not take one of them from the environment. */
const COPY_SETTINGS = ["databaseCa", "lockWait"] as const;

export function addCopyCommand(program: Command): void {
  withSettings(program.command("copy"), COPY_SETTINGS)
    .description("Copy a database into an empty one of either engine. The services must be stopped.")
    .requiredOption("--from <url>", "the database to copy, as DATABASE_URL names it; it is not changed")
    .requiredOption("--to <url>", "an empty database, or a new file")
    .action(async (options: CopyOptions) => {
      const { from, to } = options;
      requireUrl("--from", from);
      requireUrl("--to", to);
      if (from === to) throw new CommandRefused("--from and --to must name two databases.");
      const { databaseCa, lockWait } = settingsOf(options, COPY_SETTINGS);
      const line = new ProgressLine();
      try {
        const report = await copyDatabase(from, to, {
          caFile: databaseCa,
          lockWaitMs: lockWait * 1000,
          onProgress: (progress) => line.show(progress),
        });
        line.clear();
        print(sentenceOf(report, maskPassword(from), maskPassword(to)));
      } finally {
        line.clear();
      }
    });
}

function requireUrl(flag: string, url: string): void {
  refuseVisiblePassword(flag, url, "PGPASSWORD");
  const fault = databaseUrlFault(url);
  if (fault !== null) throw new CommandRefused(`${flag} ${fault}.`);
  if (url === MEMORY_URL) throw new CommandRefused(`${flag} must name a file: ${url} ends with its service.`);
}

function sentenceOf({ state, rows }: CopyReport, from: string, to: string): string {
  const done = { new: "copied", resumed: "copied, resumed", finished: "copied before" }[state];
  const { tenants, customers, tokens, idempotency_keys: keys } = rows;
  const counts = `${customers} customers of ${tenants} tenants, ${tokens} tokens, ${keys} idempotency keys`;
  return `${to}: ${done} from ${from} (${counts}). Both sides were read again, and are the same. Start no service on ${from} any more.`;
}

/** One line on a terminal that is written over; nothing elsewhere, where it would fill a log. */
class ProgressLine {
  #isShown = false;

  show({ table, phase, rows }: CopyProgress): void {
    if (!isatty(2)) return;
    this.#isShown = true;
    process.stderr.write(`\r\x1b[K${table}: ${rows} ${phase}`);
  }

  clear(): void {
    if (this.#isShown) process.stderr.write("\r\x1b[K");
    this.#isShown = false;
  }
}
