import type { Json, JsonObject } from "../client/json.ts";
import { tokenEndWarning } from "../outcome/token-end.ts";
import { printFacts } from "../output/print-facts.ts";
import type { RegisterCommand } from "./common/command.ts";
import { refusedByService } from "./common/service-check.ts";

export const registerWhoami: RegisterCommand = (program, run) => {
  program
    .command("whoami")
    .description("print the server, the profile and where the credentials come from, and check them")
    .action(
      run(async (invocation) => {
        const { settings, api } = invocation;
        const refused = await refusedByService(invocation.ports());
        const end = api.takeTokenEnd();
        if (end !== undefined) invocation.messages.caution(tokenEndWarning(end, settings));
        const names = settings.headers.map(({ name }) => name).join(", ");
        const facts: JsonObject = new Map<string, Json>([
          ["url", api.url],
          ["urlFrom", settings.sources.url ?? null],
          ["profile", settings.profile ?? null],
          ["tokenFrom", settings.sources.token ?? null],
          ["headers", names],
          ["protectedBy", settings.protectedBy ?? null],
          ["accepted", refused === undefined],
          ["tokenExpires", end === undefined ? null : new Date(end.atMs).toISOString()],
        ]);
        await printFacts(invocation, facts);
        return refused;
      }),
    );
};
