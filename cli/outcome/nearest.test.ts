import { expect, test } from "bun:test";
import { nearestOf } from "./nearest.ts";

test.each([
  ["nmae", "name"],
  ["nam", "name"],
  ["Emial", "email"],
  ["STATUS", "status"],
  ["statsu", "status"],
  ["ID", "id"],
  ["idd", "id"],
  ["phone", undefined],
  ["x", undefined],
  ["createdAt", undefined],
  ["", undefined],
])("%p is near to %p", (name, nearest) => {
  expect(nearestOf(name, ["id", "name", "email", "status"])).toBe(nearest as string);
});
