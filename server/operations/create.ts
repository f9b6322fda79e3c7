import { CREATION_BODY, type CustomerFields } from "../domain/customer/customer.ts";
import type { RowVersion } from "../domain/entity-tag.ts";
import { pick } from "../domain/pick.ts";
import { flatMap, ok, type Result } from "../domain/problem.ts";
import type { Projection } from "../domain/projection.ts";
import type { CustomerStore } from "../storage/customers/customer-store.ts";
import type { Authority, Call } from "./call.ts";
import { JSON_TYPES, requireOperation, requireProjection } from "./checks.ts";
import { keyOf, keyReused, keyReusedOr, readIdempotencyKey } from "./idempotency-key.ts";
import { BodySchema } from "./request/body-schema.ts";

export type Created = {
  readonly id: string;
  readonly rowVersion: RowVersion;
  readonly fields: CustomerFields;
  /** Whether an earlier request under the same Idempotency-Key made it. */
  readonly isReplayed: boolean;
};

const creationBody = new BodySchema(CREATION_BODY);

/** POST /customers. */
export async function create(store: CustomerStore, call: Call): Promise<Result<Created>> {
  const early = checkCreate(call, call.authority);
  if (!early.ok) return early;
  const body = flatMap(await call.readJson(JSON_TYPES), creationBody.read);
  const authority = await call.lookAgain();
  if (!authority.ok) return authority;
  const checked = checkCreate(call, authority.value);
  if (!checked.ok) return checked;
  if (!body.ok) return keyReusedOr(store, authority.value, checked.value.key, () => body);
  const { tenant, nowMs, client, tokenPrefix, keepsValues } = authority.value;
  const { projection } = checked.value;
  const { name, email, status = "active" } = body.value;
  const key = keyOf(authority.value, checked.value.key, projection, ["POST", name, email, status]);
  const { requestId } = call;
  const who = { client, tokenPrefix, requestId, keepsValues };
  const origin = { ...who, operation: "create", isWithoutIfMatch: false } as const;
  const outcome = await store.create(tenant, { name, email, status }, nowMs, key, origin);
  if (outcome.kind === "key-reused") return keyReused();
  const { id, rowVersion, isReplayed } = outcome;
  // Not read back: what was stored is what was sent, also when an earlier request made it.
  return ok({ id, rowVersion, fields: pick({ id, name, email, status }, projection), isReplayed });
}

/** Checks 3, 5 and 6. */
function checkCreate(
  call: Call,
  authority: Authority,
): Result<{ readonly projection: Projection; readonly key: string | null }> {
  const permitted = requireOperation(authority, "create");
  if (!permitted.ok) return permitted;
  const projection = requireProjection(call, authority);
  if (!projection.ok) return projection;
  const key = readIdempotencyKey(call.headers);
  if (!key.ok) return key;
  return ok({ projection: projection.value, key: key.value });
}
