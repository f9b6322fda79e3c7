import { readFileSync } from "node:fs";
import { rootCertificates } from "node:tls";
import { CommandRefused } from "../../domain/command-refused.ts";
import { StoreUnavailable } from "../customers/customer-store.ts";
import type { StorageOptions } from "../storage.ts";
import { Lanes, type LanesOptions, POSTGRES_LIMITS, type PostgresLimits } from "./connection/lanes.ts";
import { passwordOf } from "./connection/password-file.ts";
import { type PostgresAddress, parsePostgresUrl } from "./connection/postgres-url.ts";
import { failureOf, StatementFailed } from "./connection/statement-failure.ts";

export type PostgresOptions = StorageOptions & { readonly limits?: Partial<PostgresLimits> };

/** Nothing is connected yet. @throws CommandRefused */
export function openLanes(databaseUrl: string, options: PostgresOptions): Lanes {
  return new Lanes(lanesOptions(databaseUrl, options));
}

/** Closes them after the work. @throws CommandRefused where the work fails, with a sentence for the operator */
export async function withLanes<T>(
  databaseUrl: string,
  options: PostgresOptions,
  work: (lanes: Lanes) => Promise<T>,
): Promise<T> {
  const lanes = openLanes(databaseUrl, options);
  try {
    return await work(lanes);
  } catch (error) {
    throw refusalOf(error, databaseUrl);
  } finally {
    await lanes.close();
  }
}

function lanesOptions(databaseUrl: string, options: PostgresOptions): LanesOptions {
  const parsed = parsePostgresUrl(databaseUrl);
  if (!parsed.ok) throw new CommandRefused(`DATABASE_URL ${parsed.fault}.`);
  const { address } = parsed;
  const { onServerEvent = () => {} } = options;
  return {
    address,
    password: () => passwordOf(address),
    ca: caOf(address, options.caFile ?? null),
    limits: { ...POSTGRES_LIMITS, ...options.limits },
    onRetry: ({ kind }) => {
      // A refused one is sent again alone; that is no fault.
      if (kind !== "refused") onServerEvent({ kind: "retry", reason: kind });
    },
    onConnect: (reason) => onServerEvent({ kind: "connected", reason }),
    onDeadline: () => onServerEvent({ kind: "deadline" }),
  };
}

/** The certificates that may vouch for the server, or null where the connection is not encrypted. */
function caOf({ isVerified, host }: PostgresAddress, caFile: string | null): string | null {
  if (!isVerified) {
    if (caFile === null) return null;
    throw new CommandRefused(
      `DATABASE_CA is set, but the connection to ${host} is not encrypted. Add sslmode=verify-full to DATABASE_URL, or leave DATABASE_CA out.`,
    );
  }
  if (process.env["NODE_TLS_REJECT_UNAUTHORIZED"] === "0") {
    throw new CommandRefused(
      "NODE_TLS_REJECT_UNAUTHORIZED=0 turns off that the database's certificate is verified. Unset it.",
    );
  }
  if (caFile === null) return rootCertificates.join("\n");
  try {
    return readFileSync(caFile, "utf8");
  } catch (error) {
    throw new CommandRefused(`DATABASE_CA "${caFile}" can't be read: ${(error as Error).message}.`);
  }
}

/** A sentence for the operator who starts the service; a bug stays an exception. */
export function refusalOf(error: unknown, databaseUrl: string): unknown {
  if (error instanceof CommandRefused) return error;
  const failure = error instanceof StoreUnavailable ? error : failureOf(error, true);
  const parsed = parsePostgresUrl(databaseUrl);
  if (!parsed.ok) return new CommandRefused(`DATABASE_URL ${parsed.fault}.`);
  const { host, port } = parsed.address;
  const message = `The database at ${host}:${port} can't be used: ${failure.message}${remedyOf(failure, parsed.address)}`;
  return new CommandRefused(message, { cause: error });
}

/** What to do, as a further sentence without its full stop, where the server's words do not say it. */
function remedyOf(failure: Error, address: PostgresAddress): string {
  const failed = failure instanceof StatementFailed ? failure : failure.cause;
  const sqlState = failed instanceof StatementFailed ? failed.sqlState : null;
  if (sqlState === "42501")
    return `. Run what \`customers-server grants --role ${address.username}\` prints, as the owner's role`;
  if (sqlState === "28P01" && passwordOf(address) === "")
    return ". No password was found: put one into the file that PGPASSFILE names";
  if (failed instanceof StatementFailed && failed.kind === "never-sent" && sqlState === null)
    return ". See that it runs there, and that DATABASE_URL and DATABASE_CA are right";
  return "";
}
