/** All rules, in the order in which they are run. */
import type { Rule } from "../probe/rule.ts";
import { bodies } from "./bodies.ts";
import { combinations } from "./combinations.ts";
import { credentials } from "./credentials.ts";
import { environment } from "./environment.ts";
import { etag } from "./etag.ts";
import { fieldValues } from "./field-values.ts";
import { forbiddenFields } from "./forbidden-fields.ts";
import { hiddenCustomers } from "./hidden-customers.ts";
import { ifMatchRules } from "./if-match.ts";
import { lasting } from "./lasting.ts";
import { metrics } from "./metrics.ts";
import { order } from "./order.ts";
import { otherTenantReads } from "./other-tenant-reads.ts";
import { otherTenantWrites } from "./other-tenant-writes.ts";
import { problems } from "./problems.ts";
import { races } from "./races.ts";
import { readsAtOnce } from "./reads-at-once.ts";
import { selectedFields } from "./selected-fields.ts";
import { sharedVersion } from "./shared-version.ts";
import { unknownFields } from "./unknown-fields.ts";

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
