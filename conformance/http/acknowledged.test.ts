import { expect, test } from "bun:test";
import { Acknowledged } from "./acknowledged.ts";

const object = (name: string) => ({ Name: name, Email: "a@example.com" });

function looking() {
  const acknowledged = new Acknowledged();
  const write = (method = "PUT", status = 204) => {
    acknowledged.writeBegins("/1");
    acknowledged.wrote("/1", method, status);
  };
  const read = (tag: string, name: string) => acknowledged.readBegins("/1")(200, tag, object(name));
  const left = () => acknowledged.of("/1");
  return { acknowledged, write, read, left };
}

test("the first read after a write is the state in which it left the customer, and a later one is not", () => {
  const { write, read, left } = looking();
  read('"1"', "one");
  write();
  read('"2"', "two");
  read('"1"', "one");
  expect(left()?.state?.tag).toBe('"2"');
  expect(left()?.formerTags.has('"1"')).toBe(true);
});

test("a refused write leaves the state as it was", () => {
  const { write, read, left } = looking();
  read('"1"', "one");
  write("PUT", 412);
  expect(left()?.mayHaveChanged).toBe(false);
});

test.each([500, 503, 204])("after a write that was answered %p the next read decides", (status) => {
  const { write, read, left } = looking();
  read('"1"', "one");
  write("PUT", status);
  expect(left()?.mayHaveChanged).toBe(true);
});

test("a read that a write overlaps says nothing", () => {
  const { acknowledged, write, left } = looking();
  const answered = acknowledged.readBegins("/1");
  write();
  answered(200, '"1"', object("one"));
  expect(left()?.state).toBeUndefined();
});

test.each(["?fields=name", "?FIELDS=email", "?select=name"])("what %s shows is not all", (query) => {
  const { acknowledged, write, read, left } = looking();
  write();
  acknowledged.readBegins("/1", query)(200, '"1"', { ...object("one"), Email: "" });
  expect(left()?.state).toEqual({ tag: '"1"', values: undefined });
  read('"1"', "one");
  expect(left()?.state?.values).toBe(JSON.stringify(["one", "a@example.com"]));
});

test("a customer is gone once a read says so after an accepted DELETE", () => {
  const { acknowledged, write, read, left } = looking();
  read('"1"', "one");
  acknowledged.readBegins("/1")(404, undefined, undefined);
  expect(left()?.gone).toBe(false);
  write("DELETE");
  acknowledged.readBegins("/1")(404, undefined, undefined);
  expect(left()?.gone).toBe(true);
});

test("a write at another spelling of the address, in capitals or with a slash at its end, counts", () => {
  const acknowledged = new Acknowledged();
  acknowledged.readBegins("/customers/a")(200, '"1"', object("one"));
  acknowledged.writeBegins("/customers/A/");
  acknowledged.wrote("/customers/A/", "DELETE", 204);
  expect(acknowledged.of("/customers/a").deleted).toBe(true);
});
