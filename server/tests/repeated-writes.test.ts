import { afterAll, describe, expect, test } from "bun:test";
import { STORAGE_WAYS, TWO_WAYS } from "./support/database/storage-ways.ts";
import { type ServerProcess, temporaryDirectory, Workplace } from "./support/service/server-process.ts";
import { type Reply, replyOf, TestService } from "./support/service/test-service.ts";

// A write whose answer was lost is sent again as it was.
// With an Idempotency-Key it has the outcome that it had.
const DAY_MS = 86_400_000;
const RACERS = 12;
const ADA = { name: "Ada", email: "ada@example.com" };
const GRACE = { name: "Grace", email: "grace@example.com" };
const METHODS = ["POST", "PUT", "PATCH", "DELETE"] as const;
type Method = (typeof METHODS)[number];
const BODIES = { POST: GRACE, PUT: GRACE, PATCH: { status: "closed" }, DELETE: undefined } as const;
const ACCEPTED = { POST: 201, PUT: 204, PATCH: 204, DELETE: 204 } as const;

/** A request that can be sent again. */
type Write = {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: object | string | undefined;
};

let keys = 0;
const newKey = (): string => {
  keys += 1;
  return `key-${keys}`;
};

const ROLE = 'operations = ["get", "list", "create", "replace", "patch", "delete"]\n';
const policy = (clerkReads: string): string =>
  `[roles.admin]\nread = ["id", "name", "email", "status"]\n${ROLE}[roles.clerk]\nread = ${clerkReads}\n${ROLE}[roles.viewer]\nread = ["id"]\noperations = ["get"]\n`;
const ALL = '["id", "name", "email", "status"]';

let nowMs = Date.UTC(2027, 0, 1);
const service = await TestService.start({ policy: policy(ALL), now: () => nowMs });
afterAll(() => service.stop());

/** A write under a new key, on a customer that exists. */
async function prepare(method: Method, headers: Record<string, string> = {}): Promise<Write> {
  const { path, etag } = await service.customer(ADA);
  return {
    method,
    path: method === "POST" ? "/customers" : path,
    headers: { "if-match": etag, "idempotency-key": newKey(), ...headers },
    body: BODIES[method],
  };
}

const send = ({ method, path, ...options }: Write, caller = {}): Promise<Reply> =>
  service.send(method, path, { ...options, caller });
const outcome = ({ status, etag, text, headers }: Reply) => [status, etag, text, headers.get("location")];
const isReplayed = ({ headers }: Reply): boolean => headers.get("idempotency-replayed") === "true";

describe.each(METHODS)("a %s under a key", (method) => {
  test.each(["return=minimal", "return=representation"])(
    "with Prefer: %s answers its first outcome again",
    async (prefer) => {
      const write = await prepare(method, { prefer });
      const first = await send(write);
      const hasBody = prefer === "return=representation" && (method === "PUT" || method === "PATCH");
      expect([first.status, isReplayed(first)]).toEqual([hasBody ? 200 : ACCEPTED[method], false]);
      const again = await send(write);
      expect([...outcome(again), isReplayed(again)]).toEqual([...outcome(first), true]);
    },
  );

  test("answers it too after the customer was changed and after it was deleted", async () => {
    const write = await prepare(method);
    const first = await send(write);
    const path = first.headers.get("location") ?? write.path;
    if (method !== "DELETE") {
      const changed = await service.send("PATCH", path, {
        body: { name: "Eve" },
        headers: { "if-match": first.etag },
      });
      const again = await send(write);
      expect([outcome(again), isReplayed(again)]).toEqual([outcome(first), true]);
      expect((await service.send("GET", path)).etag).toBe(changed.etag);
      await service.send("DELETE", path, { headers: { "if-match": changed.etag } });
    }
    expect(outcome(await send(write))).toEqual(outcome(first));
    expect((await service.send("GET", path)).status).toBe(404);
  });

  test("is judged anew after 24 hours", async () => {
    const write = await prepare(method);
    const first = await send(write);
    nowMs += DAY_MS - 1;
    expect(isReplayed(await send(write))).toBe(true);
    nowMs += 1;
    const anew = await send(write);
    expect([anew.status, isReplayed(anew)]).toEqual([
      method === "POST" ? 201 : method === "DELETE" ? 404 : 412,
      false,
    ]);
    if (method === "POST") expect(anew.headers.get("location")).not.toBe(first.headers.get("location"));
  });

  test("that was refused does not use its key up", async () => {
    const write = await prepare(method);
    const isCreate = method === "POST";
    const refused = await send(
      isCreate
        ? { ...write, body: { name: "Ada" } }
        : { ...write, headers: { ...write.headers, "if-match": '"AAAAAAAAAAAAAAAA"' } },
    );
    expect(refused.status).toBe(isCreate ? 422 : 412);
    const accepted = await send(write);
    expect([accepted.status, isReplayed(accepted)]).toEqual([ACCEPTED[method], false]);
  });

  test("of one token says nothing to another token of the same client", async () => {
    const write = await prepare(method);
    await send(write, { role: "admin" });
    const other = await send(write, { role: "clerk" });
    expect(isReplayed(other)).toBe(false);
    expect(other.status).toBe(method === "POST" ? 201 : method === "DELETE" ? 404 : 412);
  });
});

describe("what makes another request of it: 422, and nothing is written", () => {
  const quoted = (write: Write) => ({
    ...write,
    headers: { ...write.headers, prefer: "return=representation" },
  });
  const rows: [string, Method, (write: Write, other: { path: string; etag: string }) => Write][] = [
    ["another method", "PUT", (write) => ({ ...write, method: "PATCH" })],
    ["another method without a body", "PUT", (write) => ({ ...write, method: "DELETE", body: undefined })],
    ["a creation", "PUT", (write) => ({ ...write, method: "POST", path: "/customers" })],
    ["another customer", "PUT", (write, { path }) => ({ ...write, path })],
    [
      "another customer, with its tag",
      "DELETE",
      (write, { path, etag }) => ({ ...write, path, headers: { ...write.headers, "if-match": etag } }),
    ],
    [
      "a customer that does not exist",
      "PUT",
      (write) => ({ ...write, path: "/customers/01a00000-0000-7000-8000-000000000000" }),
    ],
    [
      "another If-Match",
      "PUT",
      (write, { etag }) => ({ ...write, headers: { ...write.headers, "if-match": etag } }),
    ],
    [
      "a weakened If-Match",
      "PATCH",
      (write) => ({ ...write, headers: { ...write.headers, "if-match": `W/${write.headers["if-match"]}` } }),
    ],
    ["If-Match of any", "DELETE", (write) => ({ ...write, headers: { ...write.headers, "if-match": "*" } })],
    [
      "If-None-Match",
      "PUT",
      (write) => ({ ...write, headers: { ...write.headers, "if-none-match": '"AAAAAAAAAAAAAAAA"' } }),
    ],
    ["another value", "PUT", (write) => ({ ...write, body: { ...GRACE, name: "Eve" } })],
    ["another value in other letters", "PUT", (write) => ({ ...write, body: { ...GRACE, name: "grace" } })],
    ["a further value", "PATCH", (write) => ({ ...write, body: { status: "closed", name: "Eve" } })],
    ["no value", "PATCH", (write) => ({ ...write, body: {} })],
    ["another body of a creation", "POST", (write) => ({ ...write, body: { ...GRACE, status: "closed" } })],
    ["a body that is wanted", "PUT", quoted],
    ["other fields of a creation", "POST", (write) => ({ ...write, path: `${write.path}?fields=status` })],
  ];
  test.each(rows)("%s (%s)", async (_, method, change) => {
    const other = await service.customer(ADA);
    const write = await prepare(method);
    const first = await send(write);
    const reply = await send(change(write, other));
    expect([reply.status, reply.json.code]).toEqual([422, "idempotency-key-reused"]);
    expect((await service.send("GET", other.path)).etag).toBe(other.etag);
    expect(outcome(await send(write))).toEqual(outcome(first));
  });

  test("other fields of a body that is wanted (PUT)", async () => {
    const write = quoted(await prepare("PUT"));
    await send(write);
    const reply = await send({ ...write, path: `${write.path}?fields=status` });
    expect([reply.status, reply.json.code]).toEqual([422, "idempotency-key-reused"]);
  });
});

describe("what leaves it the same request", () => {
  const rows: [string, Method, (write: Write) => Write][] = [
    [
      "the key in quotes",
      "PUT",
      (write) => ({
        ...write,
        headers: { ...write.headers, "idempotency-key": `"${write.headers["idempotency-key"]}"` },
      }),
    ],
    [
      "blanks around key and tag",
      "PATCH",
      (write) => ({
        ...write,
        headers: {
          ...write.headers,
          "idempotency-key": ` ${write.headers["idempotency-key"]}\t`,
          "if-match": `\t${write.headers["if-match"]} `,
        },
      }),
    ],
    [
      "the id in capitals",
      "DELETE",
      (write) => ({ ...write, path: `/customers/${write.path.slice(11).toUpperCase()}` }),
    ],
    ["the id in the body", "PUT", (write) => ({ ...write, body: { id: write.path.slice(11), ...GRACE } })],
    [
      "the body in another order",
      "PUT",
      (write) => ({ ...write, body: { email: GRACE.email, name: GRACE.name } }),
    ],
    [
      "the body in other bytes",
      "POST",
      (write) => ({
        ...write,
        headers: { ...write.headers, "content-type": "application/json;x=y" },
        body: '{ "email": "grace@example.com",\n"name": "\\u0047race" }',
      }),
    ],
    ["the default status, named", "POST", (write) => ({ ...write, body: { ...GRACE, status: "active" } })],
    [
      "fields, where no body is wanted",
      "PUT",
      (write) => ({ ...write, path: `${write.path}?fields=status` }),
    ],
    [
      "another request id and user agent",
      "PATCH",
      (write) => ({
        ...write,
        headers: { ...write.headers, "x-request-id": "again", "user-agent": "other/1" },
      }),
    ],
  ];
  test.each(rows)("%s (%s)", async (_, method, change) => {
    const write = await prepare(method);
    const first = await send(write);
    const again = await send(change(write));
    expect([outcome(again), isReplayed(again)]).toEqual([outcome(first), true]);
  });
});

describe("a key is looked at after the checks 1 to 6 and before those of the customer", () => {
  const bare = ({ headers: { "if-match": _, ...headers }, ...write }: Write): Write => ({
    ...write,
    headers,
  });
  const rows: [string, Method, (write: Write) => Write, object, number, string][] = [
    [
      "2 the token",
      "PUT",
      (write) => ({ ...write, headers: { ...write.headers, authorization: "Bearer nobody" } }),
      {},
      401,
      "unauthenticated",
    ],
    ["3 the role", "PUT", (write) => write, { role: "viewer" }, 403, "forbidden-operation"],
    ["4 If-Match", "PUT", bare, {}, 428, "precondition-required"],
    ["4 If-Match", "DELETE", bare, {}, 428, "precondition-required"],
    [
      "5 the query",
      "PATCH",
      (write) => ({ ...write, path: `${write.path}?field=id` }),
      {},
      400,
      "unknown-parameter",
    ],
    ["7 the id", "PUT", (write) => ({ ...write, path: "/customers/42" }), {}, 404, "customer-not-found"],
    ...(["POST", "PUT", "PATCH"] as const).flatMap((method) =>
      ["{", { name: "" }].map((body): (typeof rows)[number] => [
        `the key, before the body ${JSON.stringify(body)} and the stale tag`,
        method,
        (write) => ({ ...write, body }),
        {},
        422,
        "idempotency-key-reused",
      ]),
    ),
  ];
  test.each(rows)("%s (%s)", async (_, method, change, caller, status, code) => {
    const write = await prepare(method);
    await send(write);
    const reply = await send(change(write), caller);
    expect([reply.status, reply.json.code]).toEqual([status, code]);
  });
});

describe("an Idempotency-Key that is none is refused before anything is written", () => {
  test.each(
    METHODS.flatMap((method) =>
      ["", '""', '"', '"a', '"a"b', '"a", "b"', '"a b"', "a b", "ü", "x".repeat(256)].map((key) => ({
        method,
        key,
      })),
    ),
  )("$method: $key", async ({ method, key }) => {
    const write = await prepare(method, { "idempotency-key": key });
    const reply = await send(write);
    expect([reply.status, reply.json.code]).toEqual([400, "invalid-idempotency-key"]);
    if (method !== "POST")
      expect((await service.send("GET", write.path)).etag).toBe(write.headers["if-match"] ?? "");
  });

  test.each(["a", '"a"', '"a\\"b\\\\c"', 'a"b', "x".repeat(255), `"${"x".repeat(255)}"`, "!~"])(
    "but %s is one",
    async (key) => {
      const write = await prepare("PUT", { "idempotency-key": key });
      const caller = { client: newKey() };
      expect((await send(write, caller)).status).toBe(204);
      expect(isReplayed(await send(write, caller))).toBe(true);
    },
  );
});

test.each(["PUT", "PATCH"] as const)(
  "a repeated %s that asks for the body of a customer that was deleted has everything else of its outcome",
  async (method) => {
    const write = await prepare(method, { prefer: "return=representation" });
    const first = await send(write);
    await service.send("DELETE", write.path, { headers: { "if-match": first.etag } });
    const again = await send(write);
    expect([again.status, again.etag, again.text, isReplayed(again)]).toEqual([204, first.etag, "", true]);
    expect(again.headers.get("preference-applied")).toBeNull();
  },
);

test("a repeated answer holds no field that the policy has hidden since", async () => {
  const write = await prepare("PUT", { prefer: "return=representation" });
  const create = await prepare("POST");
  const clerk = { role: "clerk" };
  const first = [await send(write, clerk), await send(create, clerk)];
  expect(first.map(({ json }) => Object.keys(json))).toEqual([
    ["id", "name", "email"],
    ["id", "name", "email"],
  ]);
  service.reload(policy('["id", "name"]'));
  const again = [await send(write, clerk), await send(create, clerk)];
  service.reload(policy(ALL));
  expect(again.map(({ json }) => Object.keys(json))).toEqual([
    ["id", "name"],
    ["id", "name"],
  ]);
  expect(again.map(isReplayed)).toEqual([true, true]);
  expect(again.map(({ etag }) => etag)).toEqual(first.map(({ etag }) => etag));
});

/** Sends the same write many times at once, to each of the services in turn. */
async function race(urls: readonly string[], token: string, write: Write): Promise<Reply[]> {
  return await Promise.all(
    Array.from({ length: RACERS }, async (_, index) => {
      const response = await fetch(`${urls[index % urls.length]}${write.path}`, {
        method: write.method,
        keepalive: false,
        headers: { ...write.headers, authorization: `Bearer ${token}`, "content-type": "application/json" },
        ...(write.body === undefined ? {} : { body: JSON.stringify(write.body) }),
      });
      return replyOf(response);
    }),
  );
}

/** What is raced over: services on one database, and a token of an administrator. */
type Ground = {
  readonly urls: readonly string[];
  readonly token: string;
  readonly send: (
    method: string,
    path: string,
    options?: { headers?: Record<string, string>; body?: unknown },
  ) => Promise<Reply>;
};

/** Twelve equal requests of each method under one key: one outcome, and one write. */
async function expectOneOutcome({ urls, token, send }: Ground): Promise<void> {
  for (const method of METHODS) {
    for (let round = 0; round < 3; round += 1) {
      const made = await send("POST", "/customers?fields=id", { body: ADA });
      const path = `/customers/${made.json.id}`;
      const replies = await race(urls, token, {
        method,
        path: method === "POST" ? "/customers?fields=id,name" : path,
        headers: { "if-match": made.etag, "idempotency-key": `race-${method}-${round}` },
        body: BODIES[method],
      });
      const [first] = replies;
      if (first === undefined) throw new Error("nobody raced");
      expect(replies.map(outcome)).toEqual(replies.map(() => outcome(first)));
      expect([method, first.status]).toEqual([method, ACCEPTED[method]]);
      expect(replies.filter((reply) => !isReplayed(reply))).toHaveLength(1);
      const changed = await send("GET", first.headers.get("location") ?? path);
      expect([changed.status, changed.etag]).toEqual(method === "DELETE" ? [404, ""] : [200, first.etag]);
    }
  }
  const { items } = (await send("GET", "/customers?limit=500")).json;
  // Three rounds of four methods made a customer each to race
  // for; three creations stayed, and three customers went.
  expect(items).toHaveLength(12 + 3 - 3);
}

const directory = temporaryDirectory();
afterAll(() => directory.remove());
const deaths: string[] = [];
const onFault = (reason: string): unknown => deaths.push(reason);

describe(`of ${RACERS} equal requests that race under one key one is applied, and all have its outcome`, () => {
  test.each([
    ...STORAGE_WAYS.map((way) => ({ title: way.title, ways: [way] })),
    { title: "on two services over one database", ways: TWO_WAYS },
  ])("$title", async ({ title, ways }) => {
    const tokens = new Map<string, Promise<string>>();
    const services: TestService[] = [];
    for (const { open } of ways) {
      const storage = await open(`${directory.path}/${title}`, { onFault });
      services.push(await TestService.start({ storage, tokens }));
    }
    const [one] = services;
    if (one === undefined) throw new Error("no service");
    await expectOneOutcome({
      urls: services.map(({ url }) => url),
      token: await one.token(),
      send: (...request) => one.send(...request),
    });
    for (const each of services) await each.stop();
    expect(deaths).toEqual([]);
  });

  describe("on two plain services on one port", () => {
    const place = new Workplace();
    afterAll(() => place.clear());
    test("as processes", async () => {
      const services = await place.start({ services: 2, args: ["--no-samples"] });
      const { adminToken } = place;
      await expectOneOutcome({
        urls: [services.url],
        token: adminToken,
        send: (...request) => services.send(adminToken, ...request),
      });
    });
  });
});

/** A client that alone writes a customer, each write under a key of its own. */
class LoneWriter {
  readonly #path: string;
  readonly #number: number;
  #etag: string;
  #writes = 0;
  #last: { headers: Record<string, string>; body: { name: string } } | null = null;

  constructor(number: number, path: string, etag: string) {
    this.#number = number;
    this.#path = path;
    this.#etag = etag;
  }

  /** Writes until the service is gone. */
  async writeOn(service: ServerProcess, token: string, onAnswer: () => void): Promise<void> {
    for (;;) {
      this.#writes += 1;
      const name = `writer ${this.#number}, write ${this.#writes}`;
      this.#last = {
        headers: { "if-match": this.#etag, "idempotency-key": name.replaceAll(" ", "-") },
        body: { name },
      };
      const reply = await service.send(token, "PATCH", this.#path, this.#last).catch(() => null);
      if (reply === null) return;
      this.#take(reply);
      onAnswer();
    }
  }

  /** Repeats the write that had no answer. */
  async repeat(service: ServerProcess, token: string): Promise<void> {
    if (this.#last === null) throw new Error("nothing was written");
    this.#take(await service.send(token, "PATCH", this.#path, this.#last));
    const { json, etag } = await service.send(token, "GET", this.#path);
    expect([json.name, etag]).toEqual([this.#last.body.name, this.#etag]);
  }

  #take(reply: Reply): void {
    // Nobody else writes this customer: 412 would be about a write of its own.
    expect(reply.status).toBe(204);
    this.#etag = reply.etag;
  }
}

describe("a service that is killed amid writes", () => {
  const place = new Workplace();
  afterAll(() => place.clear());

  test("has the first outcome of each write that is repeated under its key, or applies it now", async () => {
    let service = await place.start({ args: ["--no-samples"] });
    const token = place.adminToken;
    const writers: LoneWriter[] = [];
    for (let number = 0; number < 8; number += 1) {
      const { json, etag } = await service.send(token, "POST", "/customers?fields=id", { body: ADA });
      writers.push(new LoneWriter(number, `/customers/${json.id}`, etag));
    }
    for (let round = 0; round < 2; round += 1) {
      const { promise: enough, resolve } = Promise.withResolvers<void>();
      let answers = 0;
      const writing = writers.map((writer) =>
        writer.writeOn(service, token, () => {
          answers += 1;
          if (answers === 20 + round * 7) resolve();
        }),
      );
      await enough;
      await service.end("SIGKILL");
      await Promise.all(writing);
      service = await place.start({ args: ["--no-samples"] });
      for (const writer of writers) await writer.repeat(service, token);
    }
  });
});
