import { expect, test } from "bun:test";
import { changedValues } from "./kept-values.ts";

const ROW = { tenant: "acme", customerId: "01890000-0000-7000-8000-000000000000", number: 7 };

test("values are read as they were written", () => {
  const written = { name: { before: "Ada", after: "Grace" }, email: { before: null, after: "a@b.example" } };
  expect(changedValues({ content: JSON.stringify(written) }, ROW)).toEqual(written);
  expect(changedValues({ content: "{}" }, ROW)).toEqual({});
});

test.each([
  "",
  "nothing",
  "5",
  "null",
  "[]",
  '{"name":null}',
  '{"name":"Ada"}',
  '{"name":{"before":"Ada"}}',
  '{"name":{"after":"Ada"}}',
  '{"name":{"before":1,"after":"Ada"}}',
])("what the service never writes, such as %j, is refused, and its row is named", (content) => {
  expect(() => changedValues({ content }, ROW)).toThrow(
    `The values that the audit trail of acme keeps beside row 7, of customer ${ROW.customerId}, are damaged.`,
  );
});
