import type { Command } from "commander";
import { CommandRefused } from "../domain/command-refused.ts";
import { hostInUrl } from "../domain/network/network.ts";
import { print } from "./common/print.ts";
import { type CommandOptions, settingsOf, withSettings } from "./common/setting-options.ts";

const NAMES = ["host", "port", "adminPort", "tlsCertFile"] as const;
const TIMEOUT_MS = 5_000;

/** For images without curl: a container's health check runs it with the settings of `serve`. */
export function addHealthCommand(program: Command): void {
  withSettings(program.command("health"), NAMES)
    .description("Ask the service of these settings whether it is ready; exit code 1 when it is not.")
    .action(async (options: CommandOptions) => {
      const { host, port, adminPort, tlsCertFile } = settingsOf(options, NAMES);
      const scheme = tlsCertFile === "" ? "http" : "https";
      const url = `${scheme}://${hostInUrl(host)}:${adminPort ?? port}/readyz`;
      print(await askReadiness(url));
    });
}

async function askReadiness(url: string): Promise<string> {
  try {
    const reply = await fetch(url, {
      signal: AbortSignal.timeout(TIMEOUT_MS),
      // The certificate is for the public name; this asks the same machine.
      tls: { rejectUnauthorized: false },
    });
    const text = await reply.text();
    if (reply.ok) return text;
    throw new CommandRefused(`${url} answered ${reply.status}: ${text}`);
  } catch (error) {
    if (error instanceof CommandRefused) throw error;
    const isLate = error instanceof DOMException && error.name === "TimeoutError";
    const fault = isLate
      ? `does not answer within ${TIMEOUT_MS / 1000} s. Look at the service's log.`
      : "does not answer. Start the service, or correct HOST and PORT.";
    throw new CommandRefused(`${url} ${fault}`, { cause: error });
  }
}
