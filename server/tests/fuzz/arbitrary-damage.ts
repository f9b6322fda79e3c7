import fc from "fast-check";

/** Bytes of a good request with some of them changed, taken out or put in; or bytes of no meaning at all. */
export const anyDamage: fc.Arbitrary<(bytes: Uint8Array) => Uint8Array> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .array(
        fc.record({
          at: fc.nat(),
          kind: fc.constantFrom("change", "cut", "insert", "repeat"),
          byte: fc.nat({ max: 255 }),
        }),
        {
          minLength: 1,
          maxLength: 4,
        },
      )
      .map((edits) => (bytes: Uint8Array) => {
        let damaged = Buffer.from(bytes);
        for (const { at, kind, byte } of edits) {
          const place = at % Math.max(1, damaged.length);
          const [before, after] = [damaged.subarray(0, place), damaged.subarray(place)];
          if (kind === "change") damaged = Buffer.concat([before, Buffer.from([byte]), after.subarray(1)]);
          else if (kind === "cut") damaged = Buffer.concat([before, after.subarray(1 + (byte % 20))]);
          else if (kind === "insert") damaged = Buffer.concat([before, Buffer.from([byte]), after]);
          else damaged = Buffer.concat([before, after.subarray(0, byte), after]);
        }
        return damaged;
      }),
  },
  { weight: 1, arbitrary: fc.uint8Array({ minLength: 1, maxLength: 300 }).map((noise) => () => noise) },
  {
    weight: 1,
    arbitrary: fc
      .nat({ max: 100 })
      .map((share) => (bytes: Uint8Array) => bytes.subarray(0, Math.ceil((bytes.length * share) / 100))),
  },
);
