import type { WriteOrigin } from "../../../domain/audit/audit-entry.ts";

/** Who writes where a test does not say. */
export const TEST_ORIGIN: WriteOrigin = {
  client: "tests",
  tokenPrefix: "cst_tests",
  requestId: "test",
  operation: "replace",
  isWithoutIfMatch: false,
  keepsValues: false,
};
