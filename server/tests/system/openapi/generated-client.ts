/** Compiled by the test against types that openapi-typescript wrote; then run against the service. */
import createClient from "openapi-fetch";
import type { paths } from "./openapi.d.ts";

const { BASE_URL: baseUrl = "", TOKEN: token = "", ID: id = "" } = process.env;
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });
const path = { id };

const read = await client.GET("/customers/{id}", { params: { path, query: { fields: ["name", "email"] } } });
if (read.data === undefined) throw new Error(read.error.detail);
// A misspelt field does not compile:
// @ts-expect-error
void (() => client.GET("/customers/{id}", { params: { path, query: { fields: ["mail"] } } }));
// Neither does a write without If-Match:
// @ts-expect-error
void (() => client.PUT("/customers/{id}", { params: { path }, body: { name: "A", email: "a@b.example" } }));

const etag = read.response.headers.get("etag") ?? "";
const body = { name: "Ada King", email: "ada@typed.example" };
const write = await client.PUT("/customers/{id}", { params: { path, header: { "If-Match": etag } }, body });
const stale = await client.PUT("/customers/{id}", { params: { path, header: { "If-Match": etag } }, body });
const blank = await client.PUT("/customers/{id}", { params: { path, header: { "If-Match": "" } }, body });
// The code of a problem tells its members apart.
const diagnosis = stale.error?.code === "precondition-failed" ? stale.error.diagnosis : "none";
console.log(
  JSON.stringify([
    write.response.status,
    stale.response.status,
    diagnosis,
    blank.response.status,
    blank.error?.code,
  ]),
);
