/** A service says in `Token-Expires` that the token of a request is near its end. */
import { httpDateMs } from "../client/wire/http-date.ts";
import { amount } from "./amount.ts";

export type TokenEnd = {
  /** In ms since 1970. */
  readonly atMs: number;
  /** By the clock of the service where its reply has a Date, so that a wrong one here changes nothing. */
  readonly remainingMs: number;
};

/** @param fields by lower-case name. @returns undefined where the reply announces no end, or none that can be read */
export function tokenEndOf(fields: ReadonlyMap<string, string>, nowMs: number): TokenEnd | undefined {
  const atMs = Date.parse(fields.get("token-expires") ?? "");
  if (Number.isNaN(atMs)) return undefined;
  return { atMs, remainingMs: atMs - (httpDateMs(fields.get("date")) ?? nowMs) };
}

const HOUR_MS = 3_600_000;

/** "ends on 2027-06-09 12:00 UTC, in 6 days" */
export function tokenEndInWords({ atMs, remainingMs }: TokenEnd): string {
  const hours = Math.floor(remainingMs / HOUR_MS);
  const left =
    hours < 1
      ? "in less than an hour"
      : hours < 48
        ? `in ${amount(hours, "hour")}`
        : `in ${Math.floor(hours / 24)} days`;
  return `ends on ${new Date(atMs).toISOString().slice(0, 16).replace("T", " ")} UTC, ${left}`;
}

/** Where a token comes from: settings name both. */
type Origin = {
  readonly sources: { readonly token: string | undefined };
  readonly profile: string | undefined;
};

/** What to do before the token ends. */
export function tokenRenewal({ sources, profile }: Origin): string {
  const login = `run: customers login --profile ${profile}`;
  const uses: Readonly<Record<string, string>> = {
    profile: login,
    keyring: login,
    CUSTOMERS_TOKEN: "set CUSTOMERS_TOKEN to it",
    "--token-file": "write it into the file of --token-file",
    "--token-stdin": "give it on stdin",
  };
  const use = uses[sources.token ?? ""] ?? "put it into the header that has the old one";
  return `get a new token from those who run the service, then ${use}`;
}

export function tokenEndWarning(end: TokenEnd, origin: Origin): string {
  return `warning: the token ${tokenEndInWords(end)}; ${tokenRenewal(origin)}`;
}
