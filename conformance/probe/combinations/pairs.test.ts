import { expect, test } from "bun:test";
import fc from "fast-check";
import { pairs } from "./pairs.ts";

test("every two levels of any two factors meet in a row, in whatever turn", () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 2, maxLength: 14 });
  fc.assert(
    fc.property(sizes, fc.nat(3), (sizes, turn) => {
      const factors = Object.fromEntries(
        sizes.map((size, place) => [`factor ${place}`, [...Array(size).keys()]]),
      );
      const rows = pairs(factors, turn);
      for (const [a, levels] of Object.entries(factors))
        for (const [b, others] of Object.entries(factors))
          if (a !== b)
            for (const one of levels)
              for (const other of others)
                expect(rows.some((row) => row[a] === one && row[b] === other)).toBe(true);
    }),
    { numRuns: 20 },
  );
});

test("there are as many rows as the square of the next prime, and other ones in another turn", () => {
  const factors = { a: [0, 1, 2, 3, 4, 5], b: ["x", "y"], c: [true, false] };
  expect(pairs(factors)).toHaveLength(49);
  expect(pairs(factors, 1)).not.toEqual(pairs(factors, 0));
});
