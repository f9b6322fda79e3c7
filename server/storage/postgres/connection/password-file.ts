import { readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { CommandRefused } from "../../../domain/command-refused.ts";
import type { PostgresAddress } from "./postgres-url.ts";

/**
 * The password of an address: of the URL, of the environment, or of the file
 * that PostgreSQL's own programs read (PGPASSFILE, or ~/.pgpass). Asked at each
 * new connection, so that a password can be changed under a running service.
 *
 * @throws CommandRefused for a file that others may read
 */
export function passwordOf(address: PostgresAddress, env: NodeJS.ProcessEnv = process.env): string {
  if (address.password !== null) return address.password;
  if (env["PGPASSWORD"] !== undefined && env["PGPASSWORD"] !== "") return env["PGPASSWORD"];
  const file = env["PGPASSFILE"] ?? join(homedir(), ".pgpass");
  const found = statSync(file, { throwIfNoEntry: false });
  if (found?.isFile() !== true) return "";
  const mode = found.mode & 0o777;
  if ((mode & 0o077) !== 0) {
    throw new CommandRefused(
      `${file} may be read by others (mode ${mode.toString(8).padStart(4, "0")}). Run \`chmod 600 ${file}\`.`,
    );
  }
  return passwordIn(readFileSync(file, "utf8"), address) ?? "";
}

/**
 * Finds the password in a file of lines `host:port:database:user:password`, where
 * `*` stands for anything and a backslash takes a colon or a backslash literally.
 */
export function passwordIn(text: string, { host, port, database, username }: PostgresAddress): string | null {
  const wanted = [host, String(port), database, username];
  for (const line of text.split("\n")) {
    if (line.startsWith("#")) continue;
    const fields =
      line
        .replace(/\r$/, "")
        .match(/(?:\\.|[^:\\])*(?=:|$)/g)
        ?.filter(isField) ?? [];
    const [password] = fields.slice(wanted.length);
    const fits = wanted.every((value, index) => fields[index] === "*" || plain(fields[index]) === value);
    if (fits && password !== undefined) return plain(password) ?? null;
  }
  return null;
}

/** An empty match stands behind each field that is not empty. */
function isField(text: string, index: number, all: readonly string[]): boolean {
  return text !== "" || index === 0 || all[index - 1] === "";
}

function plain(field: string | undefined): string | undefined {
  return field?.replace(/\\(.)/g, "$1");
}
