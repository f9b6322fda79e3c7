import { expect, test } from "bun:test";
import { FreshValues } from "./values.ts";

test("two of one length are found, however many values were made before: their number may grow by a digit", () => {
  for (let before = 0; before < 1100; before += 1) {
    const values = new FreshValues();
    for (let made = 0; made < before; made += 1) values.next();
    const [one, other] = values.nextTwoOfOneLength(["abcdef", "uvwxyz"]);
    expect([one.name.length, one.email.length]).toEqual([other.name.length, other.email.length]);
    expect(one).not.toEqual(other);
  }
});
