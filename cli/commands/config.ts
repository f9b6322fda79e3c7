import type { Json, JsonObject } from "../client/json.ts";
import { originOf } from "../config/values/base-url.ts";
import { maskedProxyUrl } from "../config/values/proxy.ts";
import { printRows } from "../output/print-facts.ts";
import type { RegisterCommand } from "./common/command.ts";

export const registerConfig: RegisterCommand = (program, run) => {
  program
    .command("config")
    .description("print the settings that a command would use, and where each comes from, secrets masked")
    .action(
      run(async (invocation) => {
        const { settings } = invocation;
        const { sources } = settings;
        const row = (setting: string, value: Json, source: string | undefined): JsonObject =>
          new Map<string, Json>([
            ["setting", setting],
            ["value", value],
            ["from", source ?? "default"],
          ]);
        const { proxy } = settings;
        await printRows(
          invocation,
          ["setting", "value", "from"],
          [
            row("url", settings.url ?? null, sources.url),
            row("profile", settings.profile ?? null, sources.profile),
            ...settings.headers.map(({ name, value, secret }) =>
              row(
                `header ${name}`,
                secret ? "***" : value,
                name === "Authorization" && sources.token !== undefined ? sources.token : sources.headers,
              ),
            ),
            proxy.kind === "proxy"
              ? row("proxy", maskedProxyUrl(proxy.url), proxy.source)
              : row("proxy", null, undefined),
            row("cacert", sources.cacert?.value ?? null, sources.cacert?.source),
            row("cert", sources.cert?.value ?? null, sources.cert?.source),
            row("insecure", settings.insecure, sources.insecure),
            row("timeout", `${settings.timeoutMs / 1000}s`, sources.timeout),
            row("casing", settings.casing, sources.casing),
            row(
              "undo",
              settings.undoMs === undefined ? "off" : `${settings.undoMs / 3_600_000}h`,
              sources.undo,
            ),
            row("protected", settings.protectedBy !== undefined, protectedFrom(settings)),
          ],
        );
        return undefined;
      }),
    );
};

function protectedFrom({ protectedBy, url }: { protectedBy: string | undefined; url: string | undefined }) {
  return protectedBy === undefined ? undefined : `profile "${protectedBy}" guards ${originOf(url)}`;
}
