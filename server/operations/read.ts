import { parseCustomerId } from "../domain/customer/customer-id.ts";
import type { RowVersion } from "../domain/entity-tag.ts";
import { andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import { diagnose, failedPrecondition, readPreconditions } from "../domain/precondition.ts";
import { ok, type Result } from "../domain/problem.ts";
import { hidesDefaultField } from "../domain/projection.ts";
import type { CustomerStore, StoredCustomer } from "../storage/customers/customer-store.ts";
import type { Call } from "./call.ts";
import { customerNotFound, requireOperation, requireProjection } from "./checks.ts";
import { preconditionFailed } from "./failed-precondition.ts";
import type { RefusalTrail } from "./refusal-trail.ts";

export type Read =
  | { readonly kind: "customer"; readonly customer: StoredCustomer }
  | { readonly kind: "not-modified"; readonly rowVersion: RowVersion };

type ReadStores = { readonly customers: Pick<CustomerStore, "read">; readonly trail: RefusalTrail };

/** GET and HEAD of one customer. */
export function read({ customers, trail }: ReadStores, call: Call, id: string): MaybePromise<Result<Read>> {
  const { authority } = call;
  const permitted = requireOperation(authority, "get");
  if (!permitted.ok) return permitted;
  const projection = requireProjection(call, authority);
  if (!projection.ok) return projection;
  const storedId = parseCustomerId(id);
  if (storedId === null) return customerNotFound();
  return andThen(
    customers.read(authority.tenant, storedId, projection.value),
    (customer): MaybePromise<Result<Read>> => {
      if (customer === null) return customerNotFound();
      const { rowVersion } = customer;
      const preconditions = readPreconditions(call.headers);
      const failed = failedPrecondition(preconditions, rowVersion);
      if (failed === "If-Match") {
        const diagnosis = diagnose(preconditions, rowVersion);
        const refused = { authority, preconditions, diagnosis, current: rowVersion };
        return preconditionFailed(trail, call, storedId, refused);
      }
      // The policy hides a field of the default set, and the tag is the same for every caller: the copy that
      // it names may be from before, and a 304 would confirm it. With `fields` a copy has what was asked for.
      const isUnchanged = failed === "If-None-Match" && !hidesDefaultField(projection.value);
      return ok(isUnchanged ? { kind: "not-modified", rowVersion } : { kind: "customer", customer });
    },
  );
}
