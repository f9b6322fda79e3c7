import { readFileSync, rmSync } from "node:fs";
import type { SeededDatabase } from "./seeded-database.ts";
import type { Target } from "./targets.ts";

type Expected = {
  readonly what: string;
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly status: number;
  /** Of the body, in the order of their names. */
  readonly members?: readonly string[];
};

/**
 * Makes sure that a server does the work of the service before it is measured: caller, projection, entity-tag,
 * precondition, problem documents, request ids, and a log line for each request.
 *
 * @param start starts it with stderr in this file
 */
export async function requireSameWork(
  start: (stderr: string) => Promise<Target>,
  { path, ids }: SeededDatabase,
): Promise<void> {
  const stderr = `${path}.stderr`;
  const target = await start(stderr);
  const { name, url, token } = target;
  const [id = ""] = ids;
  const customer = `/customers/${id}`;
  const caller = { authorization: `Bearer ${token}` };
  const put = { method: "PUT", path: customer, body: '{"name":"Checked","email":"checked@example.com"}' };
  const sent = { ...caller, "content-type": "application/json" };
  let requests = 0;
  const send = async (expected: Expected): Promise<Response> => {
    requests += 1;
    const { method = "GET", headers = {}, body, status, members } = expected;
    const reply = await fetch(`${url}${expected.path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
    });
    const text = await reply.text();
    const fail = (fault: string): never => {
      throw new Error(`${name}, ${expected.what}: ${fault}: ${text}`);
    };
    if (reply.status !== status) fail(`${reply.status} instead of ${status}`);
    if (!reply.headers.has("x-request-id")) fail("no X-Request-Id");
    const isProblem = reply.headers.get("content-type")?.startsWith("application/problem+json") === true;
    if (status >= 400 && !isProblem) fail("no problem document");
    if (members !== undefined && Object.keys(JSON.parse(text)).sort().join() !== members.join()) {
      fail(`not the members ${members.join()}`);
    }
    return reply;
  };
  try {
    await send({ what: "no token", path: customer, status: 401 });
    const unknown = { authorization: `Bearer cst_${"x".repeat(40)}` };
    await send({ what: "an unknown token", path: customer, headers: unknown, status: 401 });
    await send({ what: "an unknown field", path: `${customer}?fields=nope`, headers: caller, status: 400 });
    const missing = "/customers/00000000-0000-7000-8000-000000000000";
    await send({ what: "a missing customer", path: missing, headers: caller, status: 404 });
    const fields = `${customer}?fields=name,email`;
    await send({
      what: "one field",
      path: `${customer}?fields=name`,
      headers: caller,
      status: 200,
      members: ["name"],
    });
    const read = await send({
      ...{ what: "two fields", path: fields, headers: caller },
      ...{ status: 200, members: ["email", "name"] },
    });
    const tag = read.headers.get("etag") ?? "";
    if (!/^"[\w-]{16}"$/.test(tag)) throw new Error(`${name}: ${tag} is no strong entity-tag`);
    const known = { ...caller, "if-none-match": tag };
    await send({ what: "a known entity-tag", path: fields, headers: known, status: 304 });
    await send({ what: "a PUT without If-Match", ...put, headers: sent, status: 428 });
    const stale = { ...sent, "if-match": '"AAAAAAAAAAAAAAAA"' };
    await send({ what: "a stale PUT", ...put, headers: stale, status: 412 });
    await send({ what: "a PUT", ...put, headers: { ...sent, "if-match": tag }, status: 204 });
    await send({
      what: "a second PUT with the same tag",
      ...put,
      headers: { ...sent, "if-match": tag },
      status: 412,
    });
  } finally {
    await target.stop();
  }
  const lines = readFileSync(stderr, "utf8").split("\n");
  const logged = lines.filter((line) => line.includes('"status":')).length;
  rmSync(stderr);
  if (logged !== requests) throw new Error(`${name} logged ${logged} lines for ${requests} requests`);
}
