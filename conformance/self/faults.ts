/** Every fault of the self-test, in the order of the families. */
import { CONSEQUENCES } from "./consequences.ts";
import type { Fault } from "./fault.ts";
import { ATOMICITY_FAULTS } from "./faults/atomicity.ts";
import { AUTHORIZATION_FAULTS } from "./faults/authorization.ts";
import { COMPARISON_FAULTS } from "./faults/comparison.ts";
import { ENTITY_TAG_FAULTS } from "./faults/entity-tag.ts";
import { ERROR_FAULTS } from "./faults/errors.ts";
import { FIELD_FAULTS } from "./faults/fields.ts";
import { LAYER_FAULTS } from "./faults/layers.ts";
import { METRICS_FAULTS } from "./faults/metrics.ts";
import { NARROW_PRECONDITION_FAULTS } from "./faults/narrow-preconditions.ts";
import { NARROW_RACE_FAULTS } from "./faults/narrow-races.ts";
import { NARROW_READ_FAULTS } from "./faults/narrow-reads.ts";
import { NARROW_WRITE_FAULTS } from "./faults/narrow-writes.ts";
import { ORDER_FAULTS } from "./faults/order.ts";
import { REFUSAL_FAULTS } from "./faults/refusals.ts";
import { REPRESENTATION_FAULTS } from "./faults/representation.ts";
import { VERSION_FAULTS } from "./faults/versions.ts";
import { WRITE_FAULTS } from "./faults/writes.ts";

const PLANTED: Fault[] = [
  ...ENTITY_TAG_FAULTS,
  ...VERSION_FAULTS,
  ...COMPARISON_FAULTS,
  ...REFUSAL_FAULTS,
  ...WRITE_FAULTS,
  ...ORDER_FAULTS,
  ...ATOMICITY_FAULTS,
  ...FIELD_FAULTS,
  ...REPRESENTATION_FAULTS,
  ...AUTHORIZATION_FAULTS,
  ...ERROR_FAULTS,
  ...METRICS_FAULTS,
  ...LAYER_FAULTS,
  ...NARROW_PRECONDITION_FAULTS,
  ...NARROW_WRITE_FAULTS,
  ...NARROW_RACE_FAULTS,
  ...NARROW_READ_FAULTS,
];

export const FAULTS: readonly Fault[] = PLANTED.map((fault) => ({
  ...fault,
  also: CONSEQUENCES[fault.id] ?? [],
}));
