import { expect } from "bun:test";
import type { RawReply } from "../support/http/raw-exchange.ts";
import { type Method, type ModelCustomer, STATUS } from "./customer-model.ts";

export function expectRefusal(
  reply: RawReply,
  code: string,
  method: string,
  customer: ModelCustomer | null,
): void {
  const { status, headers, body } = reply;
  expect([status, headers.get("content-type"), headers.get("cache-control")]).toEqual([
    STATUS[code] ?? 0,
    "application/problem+json",
    "no-store",
  ]);
  expect(headers.get("etag")).toBe(code === "precondition-failed" ? customer?.tag : undefined);
  if (method === "HEAD") {
    expect(body).toBe("");
    return;
  }
  const problem = JSON.parse(body) as Record<string, unknown>;
  expect(problem).toMatchObject({ code, status, type: `/problems/${code}` });
  expect(problem["instance"]).toMatch(/^urn:uuid:[0-9a-f-]{36}$/);
  if (code === "precondition-failed")
    expect(problem).toMatchObject({ receivedIfMatch: expect.any(String), diagnosis: expect.any(String) });
}

export function expectRead(
  reply: RawReply,
  method: Method,
  customer: ModelCustomer,
  fields: Record<string, string>,
  isUnchanged: boolean,
): void {
  const { status, headers, body } = reply;
  expect([status, headers.get("etag")]).toEqual([isUnchanged ? 304 : 200, customer.tag]);
  expect(headers.get("cache-control")).toBe("private, no-cache, no-transform");
  expect(headers.get("vary")).toBe("Authorization");
  if (isUnchanged || method === "HEAD") expect(body).toBe("");
  else expect(JSON.parse(body)).toStrictEqual(fields);
}

export function expectCreated(
  reply: RawReply,
  customer: ModelCustomer,
  fields: Record<string, string>,
): void {
  expect([reply.headers.get("etag"), reply.headers.get("location")]).toEqual([
    customer.tag,
    `/customers/${customer.id}`,
  ]);
  expect(JSON.parse(reply.body)).toStrictEqual(fields);
}
