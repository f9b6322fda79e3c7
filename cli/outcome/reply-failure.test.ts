import { expect, test } from "bun:test";
import { type ReadRefusal, type Refusal, refusalOf } from "../client/refusal.ts";
import { readFailure, unclearReply, writeFailure } from "./reply-failure.ts";

const reply = (status: number, body?: object): Refusal =>
  refusalOf(
    {
      kind: "complete",
      status,
      fields: new Map([["content-type", "application/problem+json"]]),
      text: body === undefined ? "" : JSON.stringify(body),
    },
    "reading",
  );
const url = "https://customers.example.com";
const customer = { what: "customer 1", url };
const list = { what: "the list of customers", url, collection: true };

test.each(["GET", "POST"])(
  "no list or search (%s): says nothing of a customer, and is no exit 4",
  (method) => {
    for (const status of [404, 405, 501]) {
      const { exit, message, hint } = readFailure(reply(status), { ...list, method });
      expect({ exit, message }).toMatchObject({
        exit: "failure",
        message: expect.stringContaining("does not know this operation"),
      });
      expect(hint).toContain("does not offer it");
    }
    expect(readFailure(reply(500), list).exit).toBe("unreachable");
  },
);

test.each([
  ["PUT", "Every deployment of the specification takes this PUT"],
  ["PATCH", "does not offer PATCH"],
  ["DELETE", "does not offer deletions"],
  ["POST", "does not offer it"],
])("501 to %s: the hint is about this method", (method, words) => {
  const { hint = "" } = writeFailure(reply(501), "updated", { ...customer, method });
  expect(hint).toContain(words);
  expect(hint.includes("PATCH")).toBe(method === "PATCH");
});

test("a server can't write lines of its own into a log", () => {
  const problem = {
    code: "a\nb",
    title: "x",
    detail: "no\r\ncustomer 1 updated: 1 attempt",
    diagnosis: "a\u2028b",
    errors: [{ pointer: "/name\n/x", detail: "too\nlong" }],
    didYouMean: "na\nme",
  };
  const failure = writeFailure(reply(422, problem), "updated", customer);
  for (const text of [failure.code, failure.message, failure.hint ?? "", ...(failure.details ?? [])]) {
    expect(text).not.toMatch(/[\r\n\u2028]/);
  }
});

test("the words for a success that is not believed name the kind of page", () => {
  const page = { kind: "complete", status: 200, text: "<html>" } as const;
  const html = new Map([["content-type", "text/html; charset=utf-8"]]);
  expect(unclearReply({ ...page, fields: html })).toContain("200 with text/html");
  expect(unclearReply({ ...page, status: 502, fields: html })).toContain("502");
});

test("who may not write is not told to ask for fewer fields", () => {
  expect(writeFailure(reply(403), "updated", customer).hint).not.toContain("--fields");
  expect(readFailure(reply(403), { ...customer, fields: ["email"] }).hint).toContain("--fields");
});

test("what the lines of errors say is not said twice, and what they do not say is said", () => {
  const errors = [{ pointer: "/name", detail: "must not be blank" }];
  const twice = writeFailure(
    reply(422, { detail: "`name` must not be blank.", errors }),
    "updated",
    customer,
  );
  expect(twice.message).toEndWith("the server does not accept the values (422)");
  expect(twice.details).toEqual(["  /name: must not be blank"]);
  const other = writeFailure(reply(422, { detail: "Too many.", errors }), "updated", customer);
  expect(other.message).toEndWith("(422): Too many.");
});

test.each<[number, string, object | undefined, string, string]>([
  [304, "PUT", undefined, "answered 304, which no write may be", "mixes up replies"],
  [409, "DELETE", { detail: "It has orders." }, "refuses it now (409): It has orders.", "stands in the way"],
])("%d to %s says what it means, and what to do", (status, method, body, words, advice) => {
  const { message, hint = "" } = writeFailure(reply(status, body), "written", { ...customer, method });
  expect(message).toContain(words);
  expect(hint).toContain(advice);
  expect(`${message} ${hint}`).not.toMatch(/redirect|points to|Correct the request/);
});

test("304 to a reading without a condition is no redirect", () => {
  const { message, hint } = readFailure(reply(304), customer);
  expect(message).toEndWith("and this one names none (304)");
  expect(hint).toContain("mixes up replies");
});

test.each([404, 410])("%d, also to a field that does not exist, is no missing customer", (status) => {
  const refusal = { ...reply(status), kind: "not-a-service" } as ReadRefusal;
  const { exit, message, hint } = readFailure(refusal, customer);
  expect({ exit, message }).toEqual({
    exit: "failure",
    message: `customer 1 could not be read: ${status}, also to a field that does not exist`,
  });
  expect(hint).toContain("is the base URL of a customer service");
});

test("a success that was not one says what the reading after it showed", () => {
  const { message } = writeFailure(reply(200), "updated", customer);
  expect(message).toContain("a reading after it shows the version that was to change");
});

test.each<[number, string, boolean]>([
  [200, '{"name":"Ada"}', true],
  [204, "", true],
  [200, "<html>", false],
])("%d with %s to a write that it contradicts: shows another version %p", (status, text, isVersion) => {
  const fields = new Map([["content-type", "application/json"]]);
  const words = unclearReply({ kind: "complete", status, fields, text });
  expect(words.includes("that this write did not make")).toBe(isVersion);
});
