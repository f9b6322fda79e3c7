import { expect, test } from "bun:test";
import { Onlooker } from "./onlooker.ts";

type Step = readonly ["read", string] | readonly ["begin"] | readonly ["end", string?];

const own: readonly Step[] = [["read", "1"], ["begin"], ["end", "2"]];

test.each([
  [
    "reads alone of one tag",
    [
      ["read", "1"],
      ["read", "1"],
    ],
    0,
  ],
  [
    "a tag that nobody of us made",
    [
      ["read", "1"],
      ["read", "9"],
    ],
    1,
  ],
  ["a tag after our own write", [...own, ["read", "2"]], 0],
  [
    "a tag after our own write whose answer carried none",
    [["read", "1"], ["begin"], ["end"], ["read", "7"]],
    0,
  ],
  ["a copy that lags behind and catches up", [...own, ["read", "2"], ["read", "1"], ["read", "2"]], 0],
  [
    "a tag read while our own write is under way",
    [["read", "1"], ["begin"], ["read", "2"], ["end", "2"], ["read", "2"]],
    0,
  ],
  ["others between two reads after our own write", [...own, ["read", "2"], ["read", "3"], ["read", "4"]], 2],
] as const satisfies readonly (readonly [string, readonly Step[], number])[])("%s", (_, steps, moved) => {
  const onlooker = new Onlooker();
  for (const step of steps as readonly Step[]) {
    if (step[0] === "read") onlooker.read("/customers/a", step[1]);
    else if (step[0] === "begin") onlooker.writeBegins("/customers/a");
    else onlooker.writeEnds("/customers/a", step[1]);
  }
  expect(onlooker.moved).toBe(moved);
});

test("a read lags where it shows the tag that an accepted write of ours has replaced", () => {
  const onlooker = new Onlooker();
  onlooker.writeBegins("/customers/a");
  onlooker.writeEnds("/customers/a", "2", "1");
  expect(["1", "2", "3"].filter((tag) => onlooker.lags("/customers/a", tag))).toEqual(["1"]);
  // Tags of a service that counts in circles come back.
  onlooker.writeBegins("/customers/a");
  onlooker.writeEnds("/customers/a", "1", "2");
  expect(["1", "2", "3"].filter((tag) => onlooker.lags("/customers/a", tag))).toEqual(["2"]);
});

test("a tag is a former one once a read shows the tag of a later accepted write", () => {
  const onlooker = new Onlooker();
  const write = (tag: string, answer: string) => {
    onlooker.writeBegins("/customers/1");
    onlooker.writeEnds("/customers/1", answer, tag);
  };
  write("1", "2");
  write("2", "3");
  const isFormer = () => ["1", "2", "3"].map((tag) => onlooker.isFormer("/customers/1", tag));
  expect(isFormer()).toEqual([false, false, false]);
  onlooker.read("/customers/1", "3");
  expect(isFormer()).toEqual([true, true, false]);
});

test("a page of the environment that answers a write with a tag of its own makes no tag a former one", () => {
  const onlooker = new Onlooker();
  onlooker.writeBegins("/customers/1");
  onlooker.writeEnds("/customers/1", "page", "1");
  onlooker.read("/customers/1", "1");
  expect(onlooker.isFormer("/customers/1", "1")).toBe(false);
});
