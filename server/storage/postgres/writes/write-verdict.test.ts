import { expect, test } from "bun:test";
import { drawRowVersion } from "../../../domain/entity-tag.ts";
import { type Judged, judge, type Seen, type Verdict } from "./write-verdict.ts";

const [sent, next, other] = [drawRowVersion(), drawRowVersion(), drawRowVersion()];
const WRITE: Judged = { expected: sent, next, isKeyed: false, wasUnknown: false };
const NOTHING: Seen = { row_version: null, outcome: null, fields: null, is_same_request: null };
const kept = { outcome: "{}", is_same_request: true };

// The state that is seen after a write was not applied, and whether an earlier try of it lost its answer.
test.each<[string, Partial<Judged>, Partial<Seen>, Verdict["kind"]]>([
  ["no row", {}, {}, "missing"],
  ["another version", {}, { row_version: other }, "stale"],
  ["the version that was sent", {}, { row_version: sent }, "held"],
  ["its own version", {}, { row_version: next }, "applied-before"],
  ["no row, after a lost answer", { wasUnknown: true }, {}, "unknown"],
  ["another version, after a lost answer", { wasUnknown: true }, { row_version: other }, "unknown"],
  ["the version that was sent, after a lost answer", { wasUnknown: true }, { row_version: sent }, "held"],
  ["its own version, after a lost answer", { wasUnknown: true }, { row_version: next }, "applied-before"],
  [
    "any row, where any version may be written",
    { expected: { anyExcept: [] } },
    { row_version: other },
    "held",
  ],
  ["the excluded version", { expected: { anyExcept: [other] } }, { row_version: other }, "stale"],
  ["its key, kept for the same request", { isKeyed: true }, { ...kept, row_version: other }, "replayed"],
  ["its key, kept for another request", { isKeyed: true }, { ...kept, is_same_request: false }, "key-reused"],
  [
    "no key, after a lost answer to a keyed write",
    { isKeyed: true, wasUnknown: true },
    { row_version: other },
    "stale",
  ],
])("with %s stored a write is judged", (_, write, seen, kind) => {
  expect(judge({ ...WRITE, ...write }, { ...NOTHING, ...seen }).kind).toBe(kind);
});

test("a refusal names the version that is stored", () => {
  expect(judge(WRITE, { ...NOTHING, row_version: other })).toEqual({ kind: "stale", rowVersion: other });
});
