/** `doctor`: is the kit itself fit to judge, and can it reach what it is pointed at. */
import { accessSync, constants, mkdirSync } from "node:fs";
import type { Command } from "commander";
import { NoReply } from "../http/outcome-signal.ts";
import { checkTransport } from "../http/transport-check.ts";
import { ownAsk, Wire } from "../http/wire.ts";
import { catalogue } from "../rules/catalogue.ts";
import { journalFolder, journalsIn } from "../target/journal.ts";
import { messageOf } from "../target/message.ts";
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
  const ok = (text: string) => print(`ok   ${text}`);
  const fail = (exitCode: number, text: string) => {
    print(`FAIL ${text}`);
    code = Math.max(code, exitCode);
  };
  ok(`Bun ${Bun.version}, ${catalogue.length} rules`);
  try {
    await checkTransport();
    ok("awkward headers leave this machine byte for byte, by undici and by raw socket");
  } catch (error) {
    fail(5, messageOf(error));
  }
  const folder = journalFolder(process.env);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.W_OK);
    const open = journalsIn(folder).length;
    ok(
      `journals are kept in ${folder}${open > 0 ? `; ${open} of earlier runs are open: run \`cleanup\`` : ""}`,
    );
  } catch (error) {
    fail(5, `journals can't be kept in ${folder}: ${messageOf(error)}`);
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
    const answers = `${profile.baseUrl} answers ${seen.status} for a customer that nobody has (404 is right)`;
    if (seen.status === 401) fail(4, answers);
    else ok(answers);
  } catch (error) {
    if (!(error instanceof NoReply)) throw error;
    fail(4, `${profile.baseUrl} can't be reached: ${error.exchange.failure}`);
  } finally {
    await wire.close();
  }
  return code;
}
