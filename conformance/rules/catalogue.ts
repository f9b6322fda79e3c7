/** All rules, in the order in which they are run. */
import type { Rule } from "../probe/rule.ts";
import { races } from "./atomicity/races.ts";
import { credentials } from "./callers/credentials.ts";
import { forbiddenFields } from "./callers/forbidden-fields.ts";
import { hiddenCustomers } from "./callers/hidden-customers.ts";
import { otherTenantReads } from "./callers/other-tenant-reads.ts";
import { otherTenantWrites } from "./callers/other-tenant-writes.ts";
import { readsAtOnce } from "./callers/reads-at-once.ts";
import { sharedVersion } from "./callers/shared-version.ts";
import { combinations } from "./combinations.ts";
import { environment } from "./environment/environment.ts";
import { lasting } from "./environment/lasting.ts";
import { etag } from "./etag/etag.ts";
import { bodies } from "./fields/bodies.ts";
import { fieldValues } from "./fields/field-values.ts";
import { selectedFields } from "./fields/selected-fields.ts";
import { unknownFields } from "./fields/unknown-fields.ts";
import { ifMatchRules } from "./if-match/if-match.ts";
import { order } from "./if-match/order.ts";
import { metrics } from "./metrics.ts";
import { problems } from "./problems.ts";

/** A family that stands in several files. */
const byId = (...rules: readonly (readonly Rule[])[]): Rule[] =>
  rules.flat().toSorted((a, b) => a.id.localeCompare(b.id));

// PRB is last, since PRB-05 looks back at every reply of the run.
export const catalogue: readonly Rule[] = [
  ...etag,
  ...ifMatchRules,
  ...order,
  ...races,
  ...byId(selectedFields, unknownFields, fieldValues, bodies),
  ...byId(forbiddenFields, sharedVersion),
  ...byId(otherTenantReads, otherTenantWrites, credentials, [hiddenCustomers]),
  readsAtOnce,
  ...combinations,
  ...metrics,
  ...environment,
  ...lasting,
  ...problems,
];
