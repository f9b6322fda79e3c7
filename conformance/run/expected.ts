/** expected.toml: violations that are known, with reason, owner and end date. */
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { parse } from "smol-toml";
import { catalogue } from "../rules/catalogue.ts";
import { messageOf } from "../target/message.ts";
import type { Expectation } from "../target/options.ts";
import { ProfileFault } from "../target/profile.ts";

const ExpectedFile = Type.Object(
  {
    // A list without entries is a list: all that was known may have been fixed.
    violation: Type.Optional(
      Type.Array(
        Type.Object(
          {
            rule: Type.String({ pattern: "^[A-Z]{3}-[0-9]{2}$" }),
            reason: Type.String({ minLength: 1 }),
            owner: Type.String({ minLength: 1 }),
            until: Type.String({ pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$" }),
          },
          { additionalProperties: false },
        ),
      ),
    ),
  },
  { additionalProperties: false },
);

/** @throws ProfileFault with every fault of the file. */
export function readExpected(text: string): Expectation[] {
  let value: unknown;
  try {
    value = withPlainDates(parse(text));
  } catch (error) {
    throw new ProfileFault([`expected: ${messageOf(error).trim()}`]);
  }
  if (!Value.Check(ExpectedFile, value))
    throw new ProfileFault(
      [...Value.Errors(ExpectedFile, value)].map(
        ({ path, message }) => `expected: ${path.slice(1).replaceAll("/", ".")}: ${message}`,
      ),
    );
  const { violation = [] } = value;
  const known = new Set<string>(catalogue.map(({ id }) => id));
  const unknown = violation.filter(({ rule }) => !known.has(rule));
  if (unknown.length > 0)
    throw new ProfileFault(unknown.map(({ rule }) => `expected: there is no rule ${rule}`));
  return violation;
}

/** A TOML date is as good as a string of that form. */
function withPlainDates(value: unknown): unknown {
  if (value instanceof Date) return value.toISOString().slice(0, 10);
  if (Array.isArray(value)) return value.map(withPlainDates);
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withPlainDates(each)]));
  return value;
}
