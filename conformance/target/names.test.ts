import { expect, test } from "bun:test";
import { idBeside, idInAnswer, namesIn, usualGuid } from "./names.ts";

const id = "0b0f4d0c-8d4c-4f0e-9a43-0d5f4b7a1c22";

test.each([
  [{ id, name: "a", email: "b" }, "id,name,email,status"],
  [{ Id: id, Name: "a", Email: "b" }, "Id,Name,Email,Status"],
  [{ ID: id, NAME: "a", EMAIL: "b" }, "ID,NAME,EMAIL,STATUS"],
  [{ Name: "a" }, "Id,Name,Email,Status"],
  [{}, "id,name,email,status"],
])("of %j the member names are %s", (object, expected) => {
  const { id, name, email, status } = namesIn(object, {});
  expect([id, name, email, status].join()).toBe(expected);
});

test("the profile's names win", () => {
  expect(namesIn({ name: "a" }, { email: "Mail" })).toMatchObject({ name: "name", email: "Mail" });
});

test.each([
  ["in the body", { Id: id }, "", undefined],
  ["in the body, one level down", { data: { customerId: id } }, "", undefined],
  ["at the end of Location", undefined, "", `/api/customers/${id}`],
  ["at the end of an absolute Location with a query", undefined, "", `https://x/customers/${id}/?v=1`],
  ["as the whole body", undefined, `"${id}"\n`, undefined],
])("the id of a new customer is found %s", (_, object, text, location) => {
  expect(idInAnswer(object, text, location)).toBe(id);
});

test.each([`urn:uuid:${id}`, `{${id.toUpperCase()}}`, id.replaceAll("-", "")])(
  "of two textual forms of one GUID the one in Location is that of the address (%s)",
  (form) => {
    expect(idInAnswer({ id: form }, "", `/customers/${id}`)).toBe(id);
    // Such as the address of a job that creates the customer.
    expect(idInAnswer({ id: form }, "", "/jobs/17")).toBe(form);
  },
);

test("the end of a Location that is no percent-encoding is taken as it stands", () => {
  expect(idInAnswer(undefined, "", "/customers/100%zz")).toBe("100%zz");
});

test("an answer without an id has none", () => {
  expect(idInAnswer({ ok: true }, '{"ok":true}', undefined)).toBeUndefined();
});

test("the customer of an email is found in whatever list holds it", () => {
  const text = JSON.stringify({
    items: [
      { etag: "x", customer: { id: "other", email: "a@example.com" } },
      { customer: { id, email: "b@example.com" } },
    ],
  });
  expect(idBeside(text, "b@example.com")).toBe(id);
  expect(idBeside(text, "c@example.com")).toBeUndefined();
  expect(idBeside("<html>", "b@example.com")).toBeUndefined();
});

test.each([id, id.toUpperCase(), id.replaceAll("-", ""), `{${id}}`, `urn:uuid:${id}`])(
  "the usual form of the GUID %s is that with dashes",
  (form) => expect(usualGuid(form)).toBe(id),
);

test.each(["17", "kit-customer", ""])("%p is no GUID", (text) => expect(usualGuid(text)).toBeUndefined());
