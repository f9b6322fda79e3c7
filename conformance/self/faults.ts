/** Every fault of the self-test, in the order of the families. */
import type { Fault } from "./fault.ts";
import { AUTHORIZATION_FAULTS } from "./faults/authorization.ts";
import { CHAIN_AND_BODY_FAULTS } from "./faults/chains-and-bodies.ts";
import { COMBINATION_FAULTS } from "./faults/combined-conditions.ts";
import { COMPARISON_FAULTS } from "./faults/comparison.ts";
import { CONDITIONAL_READ_FAULTS } from "./faults/conditional-reads.ts";
import { METRICS_FAULTS } from "./faults/counting.ts";
import { ENTITY_TAG_FAULTS } from "./faults/entity-tag.ts";
import { ERROR_FAULTS } from "./faults/errors.ts";
import { EXEMPT_ADDRESS_FAULTS } from "./faults/exempt-addresses.ts";
import { EXEMPT_BODY_FAULTS } from "./faults/exempt-bodies.ts";
import { EXEMPT_CONNECTION_FAULTS } from "./faults/exempt-connections.ts";
import { EXEMPT_CUSTOMER_FAULTS } from "./faults/exempt-customers.ts";
import { EXEMPT_HEADER_FAULTS } from "./faults/exempt-headers.ts";
import { FAULTY_BRANCH_FAULTS } from "./faults/faulty-branches.ts";
import { FIELD_FAULTS } from "./faults/field-selection.ts";
import { FIND_THEN_SAVE_FAULTS } from "./faults/find-then-save.ts";
import { HEADER_READING_FAULTS } from "./faults/header-reading.ts";
import { HISTORY_FAULTS } from "./faults/history.ts";
import { JOINED_REQUEST_FAULTS } from "./faults/joined-requests.ts";
import { LAYER_FAULTS } from "./faults/layers.ts";
import { LEFT_OVER_FAULTS } from "./faults/left-over.ts";
import { LOCK_FAULTS } from "./faults/locks.ts";
import { LOST_RACE_FAULTS } from "./faults/lost-races.ts";
import { ORDER_FAULTS } from "./faults/order-of-checks.ts";
import { REFUSAL_FAULTS } from "./faults/refusals.ts";
import { REPRESENTATION_FAULTS } from "./faults/representation.ts";
import { SIDE_DOOR_FAULTS } from "./faults/side-doors.ts";
import { SIDE_DOOR_READ_FAULTS } from "./faults/side-doors-reads.ts";
import { STAND_IN_FAULTS } from "./faults/stand-in-headers.ts";
import { TENANT_FAULTS } from "./faults/tenants.ts";
import { USUAL_READ_FAULTS } from "./faults/usual-reads.ts";
import { VERSION_FAULTS } from "./faults/versions.ts";
import { VISIBILITY_FAULTS } from "./faults/visibility.ts";
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
