/** Every fault of the self-test, in the order of the families. */
import { ATOMICITY_FAULTS } from "./faults/atomicity.ts";
import { AUTHORIZATION_FAULTS } from "./faults/authorization.ts";
import { ENTITY_TAG_FAULTS } from "./faults/entity-tag.ts";
import { ERROR_FAULTS } from "./faults/errors.ts";
import { FIELD_FAULTS } from "./faults/fields.ts";
import { IF_MATCH_FAULTS } from "./faults/if-match.ts";
import { LAYER_FAULTS } from "./faults/layers.ts";
import { METRICS_FAULTS } from "./faults/metrics.ts";
import { ORDER_FAULTS } from "./faults/order.ts";

export const FAULTS = [
  ...ENTITY_TAG_FAULTS,
  ...IF_MATCH_FAULTS,
  ...ORDER_FAULTS,
  ...ATOMICITY_FAULTS,
  ...FIELD_FAULTS,
  ...AUTHORIZATION_FAULTS,
  ...ERROR_FAULTS,
  ...METRICS_FAULTS,
  ...LAYER_FAULTS,
];
