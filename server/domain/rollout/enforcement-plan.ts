import { type Enforcement, isEnforced, WRITE_METHODS, type WriteMethod } from "../policy/policy.ts";
import { CLEAN_DAYS, type ClientDay, type ClientReadiness, readinessOf } from "./client-readiness.ts";

/** What a policy file can enforce now beyond what it does, without refusing a write of any client that was seen. */
export type EnforcementPlan =
  /** All writes need If-Match already. */
  | { readonly kind: "strict" }
  /** All clients that were seen are ready or enforced: `mode = "strict"` would refuse none of their writes. */
  | { readonly kind: "all-ready"; readonly clients: readonly ClientReadiness[] }
  | {
      readonly kind: "staged";
      readonly untilMs: number;
      readonly enforcedClients: readonly string[];
      readonly enforcedMethods: readonly WriteMethod[];
      readonly newClients: readonly string[];
      readonly newMethods: readonly WriteMethod[];
      readonly clients: readonly ClientReadiness[];
    };

export function planOf(
  counts: readonly ClientDay[],
  enforcement: Enforcement,
  nowMs: number,
  cleanDays = CLEAN_DAYS,
): EnforcementPlan {
  if (enforcement.mode === "strict" || nowMs >= enforcement.untilMs) return { kind: "strict" };
  const clients = readinessOf(counts, enforcement, nowMs, cleanDays);
  const isSafe = ({ state }: ClientReadiness): boolean => state === "ready" || state === "enforced";
  if (clients.length > 0 && clients.every(isSafe)) return { kind: "all-ready", clients };
  const { untilMs, enforcedClients, enforcedMethods } = enforcement;
  const newClients = clients.filter(({ state }) => state === "ready").map(({ client }) => client);
  const next = { ...enforcement, enforcedClients: new Set([...enforcedClients, ...newClients]) };
  const newMethods = WRITE_METHODS.filter((method) => isMethodReady(method, counts, next, nowMs, cleanDays));
  return {
    kind: "staged",
    untilMs,
    enforcedClients: [...next.enforcedClients],
    enforcedMethods: WRITE_METHODS.filter(
      (method) => enforcedMethods.has(method) || newMethods.includes(method),
    ),
    newClients,
    newMethods,
    clients,
  };
}

/** Whether there are clients that use a method and are not enforced in it, and all are ready in it. */
function isMethodReady(
  method: WriteMethod,
  counts: readonly ClientDay[],
  enforcement: Enforcement,
  nowMs: number,
  cleanDays: number,
): boolean {
  const open = counts.filter(
    (count) => count.method === method && !isEnforced(enforcement, count.client, method, nowMs),
  );
  return (
    open.length > 0 &&
    readinessOf(open, enforcement, nowMs, cleanDays).every(({ state }) => state === "ready")
  );
}
