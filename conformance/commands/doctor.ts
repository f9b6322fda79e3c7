/** `doctor`: is the kit itself fit to judge, and can it reach what it is pointed at. */
import { accessSync, constants, mkdirSync } from "node:fs";
import type { Command } from "commander";
import { NoReply } from "../http/outcome-signal.ts";
import { checkTransport } from "../http/transport-check.ts";
import { ownAsk, Wire } from "../http/wire.ts";
import { catalogue } from "../rules/catalogue.ts";
import { journalFolder, journalsIn } from "../target/journal.ts";
import { defaultOptions } from "../target/options.ts";
import { print } from "./print.ts";
import { addTargetOptions, profileOf, type TargetFlags } from "./target-options.ts";

export function addDoctorCommand(program: Command, end: (exitCode: number) => void): void {
  addTargetOptions(program.command("doctor"))
    .description("check the kit itself, and whether it reaches the deployment")
    .action(async (flags: TargetFlags) => end(await doctor(flags)));
}

/** @returns 0, 4 where the deployment can't be reached, 5 where the kit is at fault. */
async function doctor(flags: TargetFlags): Promise<number> {
  let code = 0;
  const say = (ok: boolean, text: string, bad: number) => {
    print(`${ok ? "ok  " : "FAIL"} ${text}`);
    if (!ok) code = Math.max(code, bad);
  };
  say(true, `Bun ${Bun.version}, ${catalogue.length} rules`, 5);
  try {
    await checkTransport();
    say(true, "awkward headers leave this machine byte for byte, by undici and by raw socket", 5);
  } catch (error) {
    say(false, error instanceof Error ? error.message : String(error), 5);
  }
  const folder = journalFolder(process.env);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.W_OK);
    const open = journalsIn(folder).length;
    say(
      true,
      `journals are kept in ${folder}${open > 0 ? `; ${open} of earlier runs are open: run \`cleanup\`` : ""}`,
      5,
    );
  } catch (error) {
    say(
      false,
      `journals can't be kept in ${folder}: ${error instanceof Error ? error.message : String(error)}`,
      5,
    );
  }
  if (flags.baseUrl === undefined && flags.profile === undefined) {
    print("     no --base-url: nothing was sent to any deployment");
    return code;
  }
  const profile = profileOf(flags, process.env);
  const wire = new Wire(profile, defaultOptions);
  try {
    const seen = await wire.send(
      ownAsk("doctor", "GET", `${profile.baseUrl}/customers/${crypto.randomUUID()}`),
    );
    say(
      seen.status !== 401,
      `${profile.baseUrl} answers ${seen.status} for a customer that nobody has (404 is right)`,
      4,
    );
  } catch (error) {
    if (!(error instanceof NoReply)) throw error;
    say(false, `${profile.baseUrl} can't be reached: ${error.exchange.failure}`, 4);
  } finally {
    await wire.close();
  }
  return code;
}
