/** A part of the matrix, a fault of each family among it; the whole is `bun run conformance:self`. */
import { expect, test } from "bun:test";
import { runFault, runVariant, type Verdict } from "./case.ts";
import { FAULTS } from "./faults.ts";
import { type Line, runLines } from "./matrix.ts";

/** All of it takes seconds; the machine may be shared by many. */
const TIMEOUT_MS = 120_000;

const PART: Line[] = [
  ...[
    "etag-of-content",
    "takes-weak",
    "put-412-but-applied",
    "404-before-428",
    "put-finds-then-saves",
    "unrequested-null",
    "forbidden-field-in-default-set",
    "problem-status-differs",
    "both-counted",
    "gzip-weakens-etag",
    "only-ifm-15-unchanged",
  ].map((id): Line => ({ kind: "fault", id })),
  ...["as-sampled", "all-200", "tag-with-commas", "ids-given", "metrics-labelled"].map(
    (id): Line => ({ kind: "variant", id }),
  ),
  ...["nothing-listens", "hangs", "login-page", "mock", "endless-body"].map(
    (id): Line => ({ kind: "target", id }),
  ),
];

test(
  "each line of the part is as the matrix says",
  async () => {
    const verdicts: Verdict[] = [];
    await runLines(PART, 3, (verdict) => verdicts.push(verdict));
    expect(verdicts).toHaveLength(PART.length);
    expect(
      verdicts
        .filter(({ complaints }) => complaints.length > 0)
        .map(({ id, complaints }) => [id, complaints]),
    ).toEqual([]);
  },
  TIMEOUT_MS,
);

const ONE = FAULTS.find(({ id }) => id === "takes-star");
if (ONE === undefined) throw new Error("the fault has another name now");

test(
  "a fault whose code never ran is void, even where nothing else is wrong",
  async () => {
    const idle = await runFault({ ...ONE, plant: () => () => ({}) }, ["IFM-12"]);
    expect(idle.complaints.join()).toContain("void");
    expect(idle.complaints.join()).toContain("missed: IFM-12 is pass");
  },
  TIMEOUT_MS,
);

test(
  "a fault that another rule catches, or for another cause, is not caught",
  async () => {
    const elsewhere = await runFault({ ...ONE, rule: "IFM-09", also: [] }, ["IFM-09", "IFM-12"]);
    expect(elsewhere.complaints.join()).toContain("missed: IFM-09");
    const otherwise = await runFault({ ...ONE, cause: /no such words/ }, ["IFM-12"]);
    expect(otherwise.complaints.join()).toContain("cause not stated");
  },
  TIMEOUT_MS,
);

test(
  "a violation of a variant, and a rule that could not run on one, are complaints",
  async () => {
    const broken = { id: "x", does: "", deployment: { tag: () => 'W/"1"' } };
    expect((await runVariant(broken, ["ETG"])).complaints.join()).toMatch(/false violation: ETG-03/);
  },
  TIMEOUT_MS,
);
