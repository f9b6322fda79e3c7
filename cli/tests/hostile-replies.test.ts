/**
 * Whatever answers the first write, and whether or not it was applied: the client never says "done" of a
 * write that was not, nor "not done" of one that was, and never creates two customers. Over fetch and over
 * the command line's transport.
 */
import { expect, test } from "bun:test";
import { CustomersError, openCustomers } from "customers/client";
import type { Transport } from "../client/wire/reply.ts";
import { emptyProfileFile } from "../config/profile/profile-file.ts";
import { readSettings } from "../config/settings.ts";
import { openCustomersApi } from "../http/customers-api.ts";
import { CONTINUE, INTERIM, type RawReply, response, startRawServer } from "./support/raw-server.ts";

const ID = "0193aaaa-0000-7000-8000-000000000001";
const OTHER = ID.replace(/1$/, "2");
const JSON_BODY = "Content-Type: application/json";
const PAGE = response(200, ["Content-Type: text/html"], "<!doctype html><title>Sign on</title>");
const CUT = 'HTTP/1.1 200 OK\r\nETag: "2"\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n';

const whole = (bytes: string): RawReply => ({ bytes });
const broken = (bytes: string): RawReply => ({ bytes, end: true });

/** What comes in place of the service's own answer; undefined cuts the connection. */
const REPLIES: readonly (readonly [string, RawReply])[] = [
  ["nothing", undefined],
  ["half a status line", broken("HTTP/1.1 20")],
  ["another protocol", broken("SSH-2.0-server\r\n")],
  ["a switch of protocols", whole(response(101, ["Upgrade: x", "Connection: upgrade"]))],
  ["a body that breaks off", broken(`${CUT}{"name":"Mi`)],
  ["a body that does not begin", broken(CUT)],
  ["chunks that break off", broken('HTTP/1.1 200 OK\r\nETag: "2"\r\nTransfer-Encoding: chunked\r\n\r\n')],
  ["a body that is no gzip", whole(response(200, [JSON_BODY, "Content-Encoding: gzip"], "no gzip"))],
  ["a body in no known charset", whole(response(200, ["Content-Type: application/json; charset=x-y"], "{}"))],
  ["202", whole(response(202, [JSON_BODY], "{}"))],
  ["200 with a page", whole(PAGE)],
  [
    "200 with a notice under a weak tag",
    whole(response(200, [JSON_BODY, 'ETag: W/"1"'], '{"error":"closed"}')),
  ],
  ["200 with a problem", whole(response(200, ["Content-Type: application/problem+json", 'ETag: "9"'], "{}"))],
  ["200 with another customer", whole(response(200, [JSON_BODY, 'ETag: "9"'], `{"id":"${OTHER}"}`))],
  [
    "200 with the customer under the tag that was sent",
    whole(response(200, [JSON_BODY, 'ETag: "1"'], `{"id":"${ID}","name":"Ada","email":"a@b"}`)),
  ],
  ["204 under the tag that was sent", whole(response(204, ['ETag: "1"']))],
  ["204 under the tag that was sent, made weak", whole(response(204, ['ETag: W/"1"']))],
  ["302", whole(response(302, [`Location: /customers/${ID}`]))],
  ["303", whole(response(303, [`Location: /customers/${ID}`]))],
  ...[301, 304, 307, 408, 499, 500, 501, 502, 503, 505].map(
    (status) => [String(status), whole(response(status))] as const,
  ),
  ["503 that says when", whole(response(503, ["Retry-After: 0"]))],
  ["600", whole(response(600))],
  ["999", whole(response(999))],
];

/** Successes under the tag that the write sent: an accepted change has a new one. */
const COPIES: readonly (readonly [string, RawReply])[] = [
  ["204", whole(response(204, ['ETag: "1"']))],
  [
    "200 with the old customer",
    whole(response(200, [JSON_BODY, 'ETag: "1"'], `{"id":"${ID}","name":"Ada"}`)),
  ],
];

/** Refusals, which a service gives without applying anything. */
const REFUSALS: readonly (readonly [string, RawReply])[] = [
  ...[400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 425, 428, 429].map(
    (status) => [String(status), whole(response(status))] as const,
  ),
  ["412 without a tag", whole(response(412))],
  ["412 with two tags", whole(response(412, ['ETag: "7"', 'ETag: "8"']))],
];

/** Successes of services that say more, or less, than ours does. */
const SUCCESSES: readonly (readonly [string, string])[] = [
  ["early hints first", `HTTP/1.1 103 -\r\nLink: </x>\r\n\r\n${response(204, ['ETag: "2"'])}`],
  ["100 Continue first", `${CONTINUE}${response(204, ['ETag: "2"'])}`],
  ["several interim responses first", `${INTERIM}${response(204, ['ETag: "2"'])}`],
  ["a note in place of the customer", response(200, [JSON_BODY, 'eTaG: "2"'], '{"ok":true}')],
  ["two tags", response(204, ['ETag: "2"', 'ETag: "3"'])],
];

const OPERATIONS = ["update", "claim", "delete", "create", "repeatable creation"] as const;
type Operation = (typeof OPERATIONS)[number];

/**
 * One customer behind something that answers the first write by `first`, once `applies` has decided on it.
 */
async function outcomeOf(
  operation: Operation,
  overFetch: boolean,
  { first, applies }: { first: RawReply; applies: boolean },
): Promise<{ kind: string; customer: unknown; applied: number }> {
  let version = 1;
  let members: Record<string, unknown> | undefined = { id: ID, name: "Ada", email: "a@b" };
  let isFirst = true;
  let applied = 0;
  const keys = new Set<string>();
  const apply = (method: string, body: string, condition: string | undefined, key = ""): string => {
    if (method === "POST") {
      if (operation === "create" || !keys.has(key)) applied += 1;
      keys.add(key);
      return response(201, [JSON_BODY, 'ETag: "1"'], `{"id":"${ID}"}`);
    }
    if (members === undefined) return response(404);
    if (condition !== `"${version}"`) return response(412, [`ETag: "${version}"`]);
    applied += 1;
    version += 1;
    members = method === "DELETE" ? undefined : { ...members, ...JSON.parse(body) };
    return response(204, [`ETag: "${version}"`]);
  };
  const server = await startRawServer(({ method, path, headers, body }) => {
    if (method === "GET") {
      if (path.includes("no-such-field")) return whole(response(400));
      return members === undefined
        ? whole(response(404))
        : whole(response(200, [JSON_BODY, `ETag: "${version}"`], JSON.stringify(members)));
    }
    const write = () => apply(method, body, headers["if-match"], headers["idempotency-key"]);
    if (!isFirst) return whole(write());
    isFirst = false;
    if (applies) write();
    return first;
  });
  const settings = await readSettings({
    flags: { url: server.url },
    env: {},
    file: emptyProfileFile("/none"),
    readStdin: async () => "",
  });
  const api = openCustomersApi(settings, { verbose() {} });
  const transport: { transport?: Transport } = overFetch ? {} : { transport: api };
  const customers = openCustomers({
    url: server.url,
    timeoutMs: 10_000,
    idempotencyKeysHonoured: operation === "repeatable creation",
    ...transport,
  });
  const change = { name: "Mine" };
  const call = {
    update: () => customers.update(ID, change),
    claim: () => customers.update(ID, change, { expect: { name: "Ada" } }),
    delete: () => customers.delete(ID),
    create: () => customers.create({ name: "Mine", email: "m@m" }),
    "repeatable creation": () => customers.create({ name: "Mine", email: "m@m" }),
  }[operation];
  try {
    const done = await call();
    return { kind: done.kind, customer: done.customer?.data, applied };
  } catch (error) {
    if (!(error instanceof CustomersError)) throw error;
    return { kind: `not done: ${error.failure.kind}`, customer: undefined, applied };
  } finally {
    await api.close();
    server.stop();
  }
}

const DONE = ["written", "created"];

describeBoth("an unclear reply to the first", REPLIES, async (operation, overFetch, first) => {
  for (const applies of [true, false]) {
    const { kind, applied } = await outcomeOf(operation, overFetch, { first, applies });
    const said = { operation, applies, kind, applied };
    if (DONE.includes(kind) && !excused(operation, first)) expect(said).toMatchObject({ applied: 1 });
    if (kind.startsWith("not done") && kind !== "not done: unknown-outcome")
      expect(said).toMatchObject({ applied: 0 });
    expect(applied).toBeLessThanOrEqual(1);
  }
});

describeBoth("a copy in place of the reply to the first", COPIES, async (operation, overFetch, first) => {
  if (operation !== "update" && operation !== "claim") return;
  for (const applies of [true, false]) {
    const { kind, applied } = await outcomeOf(operation, overFetch, { first, applies });
    const isUnknown = kind === "not done: unknown-outcome";
    expect({ operation, applies, kind, applied }).toMatchObject({ applied: isUnknown ? applied : 1 });
    expect(kind).not.toBe(applies ? "written" : "as-wanted");
    if (operation === "update") expect(isUnknown).toBe(false);
  }
});

describeBoth("a refusal of the first", REFUSALS, async (operation, overFetch, first) => {
  const { kind, applied } = await outcomeOf(operation, overFetch, { first, applies: false });
  expect({ operation, kind, applied }).toMatchObject({ applied: DONE.includes(kind) ? 1 : 0 });
  expect(kind).not.toBe("not done: unknown-outcome");
});

describeBoth(
  "a success of the first",
  SUCCESSES.map(([name, bytes]) => [name, whole(bytes)] as const),
  async (operation, overFetch, first) => {
    const { kind, customer, applied } = await outcomeOf(operation, overFetch, { first, applies: true });
    const creates = operation === "create" || operation === "repeatable creation";
    // A note names no customer, and no reading could confirm a creation.
    const unnamed = operation === "create" && first?.bytes.includes('"ok"');
    const done = unnamed ? "not done: unknown-outcome" : creates ? "created" : "written";
    expect({ operation, kind, applied }).toEqual({ operation, kind: done, applied: 1 });
    // A note is not passed on as if it were the customer; the reading that confirms it, and the reply to a
    // repetition, may show it.
    const isRead = operation === "update" || operation === "claim";
    if (isRead && customer !== undefined) expect(customer).toMatchObject({ name: "Mine" });
    else if (operation !== "repeatable creation") expect(customer).toBeUndefined();
  },
);

/** To a creation, 204 and whatever customer a reply shows look like sound answers of some service. */
function excused(operation: Operation, first: RawReply): boolean {
  const text = first?.bytes ?? "";
  const looksSound = text.includes(" 204 ") || text.includes('{"id":');
  return (operation === "create" || operation === "repeatable creation") && looksSound;
}

function describeBoth(
  title: string,
  replies: readonly (readonly [string, RawReply])[],
  check: (operation: Operation, overFetch: boolean, first: RawReply) => Promise<void>,
): void {
  test.each(replies)(`${title}: %s`, async (_, first) => {
    const runs = OPERATIONS.flatMap((operation) =>
      [true, false].map((overFetch) => check(operation, overFetch, first)),
    );
    await Promise.all(runs);
  });
}
