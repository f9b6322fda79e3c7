/** A part of the matrix, a fault of each family among it; the whole is `bun run conformance:self`. */
import { expect, test } from "bun:test";
import { runFault, runVariant } from "./case.ts";
import { FAULTS } from "./faults.ts";
import { readGolden } from "./golden.ts";
import { complaintsOf, type Line, runLine } from "./matrix.ts";

/** The machine may be shared by many. */
const TIMEOUT_MS = 60_000;

const golden = await readGolden();

const PART: Line[] = [
  { kind: "fault", id: "etag-of-content", only: ["ETG-01", "ETG-09", "ETG-12", "ETG-17", "ETG-19"] },
  { kind: "fault", id: "takes-weak", only: ["IFM-09", "IFM-12", "IFM-23", "IFM-35"] },
  { kind: "fault", id: "404-before-428", only: ["ORD"] },
  { kind: "fault", id: "put-finds-then-saves", only: ["ATM-01", "ATM-03", "ATM-05"] },
  { kind: "fault", id: "unrequested-null", only: ["FLD-01", "FLD-09", "FLD-13"] },
  { kind: "fault", id: "forbidden-field-in-default-set", only: ["AUT-01", "AUT-05", "AUT-15"] },
  { kind: "fault", id: "problem-status-differs", only: ["PRB"] },
  { kind: "fault", id: "both-counted", only: ["MET-01", "MET-03", "MET-09"] },
  { kind: "fault", id: "gzip-weakens-etag", only: ["ENV-01", "ENV-02", "ENV-05"] },
  { kind: "variant", id: "all-200", only: ["ETG-07", "ETG-11", "IFM-01", "IFM-40"] },
  { kind: "variant", id: "metrics-labelled", only: ["MET-01", "MET-02"] },
  { kind: "weather", id: "burst-503", seed: 1, only: ["ETG-05", "ETG-07", "IFM-01"] },
  { kind: "target", id: "nothing-listens" },
  { kind: "target", id: "login-page" },
  { kind: "target", id: "mock", only: ["IFM-01", "IFM-03", "FLD-01", "FLD-03"] },
];

test.each(PART)(
  "$kind $id is as the matrix says",
  async (line) => {
    expect(complaintsOf(await runLine(line), golden, line.only)).toEqual([]);
  },
  TIMEOUT_MS,
);

const ONE = FAULTS.find(({ id }) => id === "takes-star");
if (ONE === undefined) throw new Error("the fault has another name now");

test("a fault whose code never ran is void", async () => {
  const idle = await runFault({ ...ONE, plant: () => () => ({}) }, ["IFM-12"]);
  expect(idle.complaints.join()).toContain("void");
});

test("a violation of a variant is a complaint", async () => {
  const broken = { id: "x", does: "", deployment: { tag: () => 'W/"1"' } };
  expect((await runVariant(broken, ["ETG-03"])).complaints.join()).toMatch(/false violation: ETG-03/);
});
