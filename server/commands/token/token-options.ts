import { FIELD_NAMES } from "../../domain/customer/field-registry.ts";
import { NAME_PATTERN } from "../../domain/policy/issuer.ts";
import type { Policy } from "../../domain/policy/policy.ts";
import { OPERATIONS, scopeOf } from "../../domain/policy/rights.ts";
import { nearest } from "../../domain/text/nearest.ts";
import type { RotationTerms, TokenHolder } from "../../storage/tokens/token-store.ts";

export type TokenOptions = {
  readonly role: string;
  readonly client: string;
  readonly tenant?: string;
  readonly expires?: string;
  readonly fields?: string;
  readonly operations?: string;
};

type Fault = { readonly ok: false; readonly fault: string };

type TokenReading =
  | { readonly ok: true; readonly holder: TokenHolder; readonly expiresAtMs: number | null }
  | Fault;

const NAME_SHAPE = "1 to 64 letters, digits, dots, dashes and underscores, starting with a letter or digit";

/**
 * Reads whom the new token is for.
 *
 * @returns that, or one sentence: which option is wrong, and what it must be
 */
export function readTokenOptions(policy: Policy, options: TokenOptions, nowMs: number): TokenReading {
  const { role, client, tenant, expires } = options;
  const isName = (text: string): boolean => new RegExp(NAME_PATTERN).test(text);
  if (!isName(client)) return refuse(`--client "${client}" must be ${NAME_SHAPE}.`);
  if (tenant !== undefined && !isName(tenant)) return refuse(`--tenant "${tenant}" must be ${NAME_SHAPE}.`);
  const own = tenant === undefined ? undefined : policy.tenants.get(tenant);
  const rights = own?.get(role) ?? policy.roles.get(role);
  if (rights === undefined) {
    const roles = [...new Set([...policy.roles.keys(), ...(own?.keys() ?? [])])];
    return refuse(`--role "${role}" must be a role of the policy: ${roles.join(", ")}.`);
  }
  const isForMetrics = rights.operations.has("metrics");
  if (isForMetrics && tenant !== undefined) {
    return refuse(
      `--tenant must be left out: the role ${role} reads metrics, which name every tenant, so its tokens belong to none.`,
    );
  }
  if (!isForMetrics && tenant === undefined) {
    return refuse("--tenant is missing. Name the tenant whose customers the token may reach.");
  }
  const lifetimeMs = expires === undefined ? null : durationMs(expires);
  if (Number.isNaN(lifetimeMs)) return refuse(notATime("--expires", expires));
  const mayNotRead = `the role ${role} may not read. It may read`;
  const fields = readScope("--fields", options.fields, FIELD_NAMES, rights.read, mayNotRead);
  if (!fields.ok) return fields;
  const mayNotDo = `the role ${role} lacks. It has the operations`;
  const operations = readScope("--operations", options.operations, OPERATIONS, rights.operations, mayNotDo);
  if (!operations.ok) return operations;
  return {
    ok: true,
    holder: { role, client, tenant: tenant ?? null, scope: scopeOf(fields.names, operations.names) },
    expiresAtMs: lifetimeMs === null ? null : nowMs + lifetimeMs,
  };
}

export type RotateOptions = { readonly overlap: string; readonly expires?: string };

/** @param options `expires` left out: as long as the old token was to be valid; "never": until it is revoked */
export function readRotateOptions({
  overlap,
  expires,
}: RotateOptions): { readonly ok: true; readonly terms: RotationTerms } | Fault {
  const overlapMs = /^0[hdw]?$/.test(overlap) ? 0 : durationMs(overlap);
  if (Number.isNaN(overlapMs)) return refuse(notATime("--overlap", overlap));
  const lifetimeMs = expires === undefined ? "same" : expires === "never" ? null : durationMs(expires);
  if (Number.isNaN(lifetimeMs)) return refuse(notATime("--expires", expires));
  return { ok: true, terms: { overlapMs, lifetimeMs } };
}

export function notATime(flag: string, text: string | undefined): string {
  return `${flag} "${text}" must be a time such as 12h, 90d or 52w.`;
}

const UNITS_MS: Record<string, number> = { h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** @returns ms, or NaN */
export function durationMs(text: string): number {
  const [, count, unit = ""] = /^([1-9]\d{0,4})([hdw])$/.exec(text) ?? [];
  return Number(count) * (UNITS_MS[unit] ?? Number.NaN);
}

type Names<Name> = { readonly ok: true; readonly names: readonly Name[] | null } | Fault;

/**
 * Reads what a scope lists. It only narrows: names that the role does not hold are refused.
 *
 * @param text names separated by commas; left out: all, those too that the role gets later
 * @param lacks goes between the names that it lacks and those that it holds: "which", `lacks`, ":"
 */
function readScope<Name extends string>(
  flag: string,
  text: string | undefined,
  known: readonly Name[],
  held: ReadonlySet<Name>,
  lacks: string,
): Names<Name> {
  if (text === undefined) return { ok: true, names: null };
  const names: Name[] = [];
  for (const given of text.split(",").map((name) => name.trim())) {
    const name = known.find((candidate) => candidate === given);
    if (name === undefined) {
      const near = nearest(given, known);
      const hint = near === null ? "" : ` Did you mean ${near}?`;
      return refuse(`${flag} names "${given}", but must name some of ${known.join(", ")}.${hint}`);
    }
    names.push(name);
  }
  const lacking = names.filter((name) => !held.has(name));
  if (lacking.length === 0) return { ok: true, names };
  const rest = known.filter((name) => held.has(name)).join(", ") || "none";
  return refuse(`${flag} names ${lacking.join(", ")}, which ${lacks}: ${rest}.`);
}

function refuse(fault: string): Fault {
  return { ok: false, fault };
}
