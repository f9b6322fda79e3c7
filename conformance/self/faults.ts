/** Every fault of the self-test, in the order of the families. */
import type { Fault } from "./fault.ts";
import { FIND_THEN_SAVE_FAULTS } from "./faults/atomicity/find-then-save.ts";
import { JOINED_REQUEST_FAULTS } from "./faults/atomicity/joined-requests.ts";
import { LOCK_FAULTS } from "./faults/atomicity/locks.ts";
import { LOST_RACE_FAULTS } from "./faults/atomicity/lost-races.ts";
import { VISIBILITY_FAULTS } from "./faults/atomicity/visibility.ts";
import { AUTHORIZATION_FAULTS } from "./faults/callers/authorization.ts";
import { TENANT_FAULTS } from "./faults/callers/tenants.ts";
import { CHAIN_AND_BODY_FAULTS } from "./faults/chains-and-bodies.ts";
import { COMBINATION_FAULTS } from "./faults/combined-conditions.ts";
import { METRICS_FAULTS } from "./faults/counting.ts";
import { ERROR_FAULTS } from "./faults/errors.ts";
import { ENTITY_TAG_FAULTS } from "./faults/etag/entity-tag.ts";
import { HISTORY_FAULTS } from "./faults/etag/history.ts";
import { VERSION_FAULTS } from "./faults/etag/versions.ts";
import { EXEMPT_ADDRESS_FAULTS } from "./faults/exempt/exempt-addresses.ts";
import { EXEMPT_BODY_FAULTS } from "./faults/exempt/exempt-bodies.ts";
import { EXEMPT_CONNECTION_FAULTS } from "./faults/exempt/exempt-connections.ts";
import { EXEMPT_CUSTOMER_FAULTS } from "./faults/exempt/exempt-customers.ts";
import { EXEMPT_HEADER_FAULTS } from "./faults/exempt/exempt-headers.ts";
import { FIELD_FAULTS } from "./faults/fields/field-selection.ts";
import { REPRESENTATION_FAULTS } from "./faults/fields/representation.ts";
import { COMPARISON_FAULTS } from "./faults/if-match/comparison.ts";
import { FAULTY_BRANCH_FAULTS } from "./faults/if-match/faulty-branches.ts";
import { HEADER_READING_FAULTS } from "./faults/if-match/header-reading.ts";
import { LEFT_OVER_FAULTS } from "./faults/if-match/left-over.ts";
import { ORDER_FAULTS } from "./faults/if-match/order-of-checks.ts";
import { REFUSAL_FAULTS } from "./faults/if-match/refusals.ts";
import { SIDE_DOOR_FAULTS } from "./faults/if-match/side-doors.ts";
import { STAND_IN_FAULTS } from "./faults/if-match/stand-in-headers.ts";
import { LAYER_FAULTS } from "./faults/layers.ts";
import { CONDITIONAL_READ_FAULTS } from "./faults/reads/conditional-reads.ts";
import { SIDE_DOOR_READ_FAULTS } from "./faults/reads/side-doors-reads.ts";
import { USUAL_READ_FAULTS } from "./faults/reads/usual-reads.ts";
import { WRITE_FAULTS } from "./faults/writes.ts";

export const FAULTS: readonly Fault[] = [
  ...ENTITY_TAG_FAULTS,
  ...VERSION_FAULTS,
  ...COMPARISON_FAULTS,
  ...HEADER_READING_FAULTS,
  ...REFUSAL_FAULTS,
  ...STAND_IN_FAULTS,
  ...EXEMPT_HEADER_FAULTS,
  ...EXEMPT_BODY_FAULTS,
  ...EXEMPT_CONNECTION_FAULTS,
  ...EXEMPT_ADDRESS_FAULTS,
  ...EXEMPT_CUSTOMER_FAULTS,
  ...FAULTY_BRANCH_FAULTS,
  ...LEFT_OVER_FAULTS,
  ...HISTORY_FAULTS,
  ...CHAIN_AND_BODY_FAULTS,
  ...SIDE_DOOR_FAULTS,
  ...SIDE_DOOR_READ_FAULTS,
  ...USUAL_READ_FAULTS,
  ...COMBINATION_FAULTS,
  ...WRITE_FAULTS,
  ...ORDER_FAULTS,
  ...FIND_THEN_SAVE_FAULTS,
  ...LOST_RACE_FAULTS,
  ...LOCK_FAULTS,
  ...JOINED_REQUEST_FAULTS,
  ...VISIBILITY_FAULTS,
  ...FIELD_FAULTS,
  ...REPRESENTATION_FAULTS,
  ...CONDITIONAL_READ_FAULTS,
  ...AUTHORIZATION_FAULTS,
  ...TENANT_FAULTS,
  ...ERROR_FAULTS,
  ...METRICS_FAULTS,
  ...LAYER_FAULTS,
];
