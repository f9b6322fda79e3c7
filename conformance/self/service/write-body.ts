/** The body of a write (2.3; for PATCH a merge patch or a JSON Patch) to the changes that it asks for. */

import type { Change } from "./seams.ts";
import type { Deployment } from "./sound-options.ts";

const REQUIRED = ["name", "email"] as const;

export function isJson(bytes: Buffer): boolean {
  try {
    JSON.parse(bytes.toString("utf8"));
    return true;
  } catch {
    return false;
  }
}

/** @returns undefined when the body is not what the deployment takes. */
export function readWriteBody(
  bytes: Buffer,
  method: string,
  deployment: Deployment,
  writable: (keyof Change)[] = ["name", "email"],
): Change | undefined {
  let json: unknown;
  try {
    json = JSON.parse(bytes.toString("utf8"));
  } catch {
    return undefined;
  }
  const members = method === "PATCH" && deployment.patch.format === "json-patch" ? fromJsonPatch(json) : json;
  if (typeof members !== "object" || members === null || Array.isArray(members)) return undefined;
  const change: Change = {};
  for (const field of writable) {
    const value: unknown = (members as Record<string, unknown>)[deployment.members[field]];
    if (value === undefined) {
      if (method === "PUT" && REQUIRED.some((each) => each === field)) return undefined;
      continue;
    }
    if (typeof value !== "string") return undefined;
    change[field] = normalize(value, field, deployment);
  }
  return change;
}

function normalize(value: string, field: keyof Change, deployment: Deployment): string {
  if (deployment.normalize === "as-sent") return value;
  return field === "email" ? value.trim().toLowerCase() : value.trim();
}

function fromJsonPatch(json: unknown): Record<string, unknown> | undefined {
  if (!Array.isArray(json)) return undefined;
  const members: Record<string, unknown> = {};
  for (const step of json as unknown[]) {
    const { op, path, value } = (step ?? {}) as { op?: unknown; path?: unknown; value?: unknown };
    if ((op !== "replace" && op !== "add") || typeof path !== "string") return undefined;
    members[path.slice(1)] = value;
  }
  return members;
}
