/** The sound server keeps the specification: its rules, checked without the kit, which is a mind of its own. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect } from "node:net";
import { CREDENTIALS } from "./service.ts";
import { PLAIN } from "./sound-options.ts";
import { type SoundServer, startSoundServer } from "./sound-server.ts";

let server: SoundServer;
beforeAll(async () => {
  server = await startSoundServer(PLAIN);
});
afterAll(() => server.close());

type Caller = keyof typeof CREDENTIALS;

function call(
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: unknown,
  caller: Caller = "main",
): Promise<Response> {
  return fetch(server.url + path, {
    method,
    headers: {
      authorization: `Bearer ${CREDENTIALS[caller]}`,
      "content-type": "application/json",
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

async function make(): Promise<{ path: string; tag: string }> {
  const reply = await call("POST", "/customers", {}, { Name: "Ada", Email: "ada@example.org" });
  return { path: reply.headers.get("location") ?? "", tag: reply.headers.get("etag") ?? "" };
}

const tagOf = async (path: string) => (await call("GET", path)).headers.get("etag") ?? "";
const CHANGE = { Name: "Bo", Email: "bo@example.org" };
const NOWHERE = "/customers/00000000-0000-4000-8000-000000000000";

test.each(["PUT", "PATCH", "DELETE"])(
  "%s: no If-Match 428, stale 412 with the current tag, current accepted once",
  async (method) => {
    const { path, tag } = await make();
    const body = method === "DELETE" ? undefined : CHANGE;
    expect((await call(method, path, {}, body)).status).toBe(428);
    expect((await call(method, NOWHERE, {}, body)).status).toBe(428);
    expect((await call(method, NOWHERE, { "if-match": tag }, body)).status).toBe(404);
    const stale = await call(method, path, { "if-match": '"never"' }, body);
    expect([stale.status, stale.headers.get("etag")]).toEqual([412, tag]);
    expect(await tagOf(path)).toBe(tag);
    expect((await call(method, path, { "if-match": tag }, body)).status).toBe(204);
    const again = await call(method, path, { "if-match": tag }, body);
    expect(again.status).toBe(method === "DELETE" ? 404 : 412);
  },
);

test("of many writers on one tag one wins, and the state is the winner's", async () => {
  const { path, tag } = await make();
  const replies = await Promise.all(
    Array.from({ length: 24 }, async (_, n) => {
      const { status } = await call(
        "PUT",
        path,
        { "if-match": tag },
        { Name: `writer ${n}`, Email: "w@example.org" },
      );
      return { n, status };
    }),
  );
  const winners = replies.filter(({ status }) => status === 204);
  expect(winners).toHaveLength(1);
  expect(replies.filter(({ status }) => status === 412)).toHaveLength(23);
  expect(((await (await call("GET", path)).json()) as { Name: string }).Name).toBe(`writer ${winners[0]?.n}`);
});

test.each([
  ["fields=id", ["Id"]],
  ["fields=NAME,email", ["Name", "Email"]],
  ["fields=status%2Cname", ["Status", "Name"]],
  ["", ["Id", "Name", "Email"]],
])("GET ?%s shows %j and no more", async (query, members) => {
  const { path } = await make();
  expect(Object.keys((await (await call("GET", `${path}?${query}`)).json()) as object)).toEqual(members);
});

test("unknown fields are 400 before anything is looked up; a forbidden one is refused; another tenant finds nothing", async () => {
  const { path, tag } = await make();
  for (const name of ["nope", "createdAt", "rowVersion", "constructor"]) {
    expect((await call("GET", `${NOWHERE}?fields=name,${name}`)).status).toBe(400);
  }
  const refused = await call("GET", `${path}?fields=EMAIL`, {}, undefined, "limited");
  expect([refused.status, (await refused.text()).includes("ada@")]).toEqual([403, false]);
  expect(await (await call("GET", path, {}, undefined, "limited")).text()).not.toContain("ada@");
  expect((await call("GET", path, {}, undefined, "other")).status).toBe(404);
  const foreign = await call("PUT", path, { "if-match": tag }, CHANGE, "other");
  expect([foreign.status, foreign.headers.get("etag")]).toEqual([404, null]);
});

/** Sends bytes as they are; answers the status of the reply. */
function raw(lines: string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
    socket.once("error", reject);
    socket.once("data", (bytes: Buffer) => {
      resolve(Number(bytes.toString("latin1").split(" ")[1]));
      socket.destroy();
    });
    socket.write(lines.join("\r\n"));
  });
}

test.each([
  ["blanks are missing", () => ["If-Match: \t  "], 428],
  ["an empty value is missing", () => ["If-Match:"], 428],
  ["padding is cut", (tag: string) => [`If-Match: \t ${tag} \t`], 204],
  ["two lines are a list", (tag: string) => [`If-Match: ${tag}`, 'If-Match: "x"'], 412],
  ["weak is another", (tag: string) => [`If-Match: W/${tag}`], 412],
  ["unquoted is another", (tag: string) => [`If-Match: ${tag.slice(1, -1)}`], 412],
  ["* equals nothing", () => ["If-Match: *"], 412],
] as const)("%s", async (_title, lines, status) => {
  const { path, tag } = await make();
  const body = JSON.stringify(CHANGE);
  const head = [
    `PUT ${path} HTTP/1.1`,
    "Host: x",
    `Authorization: Bearer ${CREDENTIALS.main}`,
    "Content-Type: application/json",
  ];
  expect(await raw([...head, ...lines(tag), `Content-Length: ${body.length}`, "", body])).toBe(status);
});

test("the counters count 428 and 412, each its own", async () => {
  const scrape = async () => {
    const text = await (
      await fetch(server.metricsUrls[0] ?? "", {
        headers: { authorization: `Bearer ${CREDENTIALS.metrics}` },
      })
    ).text();
    return ["required", "failed"].map((name) =>
      Number(new RegExp(`^http_precondition_${name}_total (\\d+)$`, "m").exec(text)?.[1]),
    );
  };
  const { path } = await make();
  const [required = 0, failed = 0] = await scrape();
  await call("PUT", path, {}, CHANGE);
  await call("PUT", path, { "if-match": '"never"' }, CHANGE);
  await call("DELETE", path, { "if-match": '"never"' });
  expect(await scrape()).toEqual([required + 1, failed + 2]);
});

test("a comma inside an entity-tag ends no member of a list, and a star there is no star", async () => {
  const own = await startSoundServer({
    ...PLAIN,
    conditionalReads: true,
    tag: (version) => `"a,*,${version}"`,
    seeded: 1,
  });
  try {
    const read = async (headers: Record<string, string>) =>
      await fetch(`${own.url}/customers/${own.seeded[0]}`, {
        headers: { authorization: `Bearer ${CREDENTIALS.main}`, ...headers },
      });
    const tag = (await read({})).headers.get("etag") ?? "";
    const status = async (value: string) => (await read({ "if-none-match": value })).status;
    expect(await status('"a,*,0"')).toBe(200);
    expect(await status(tag)).toBe(304);
    expect(await status(`"a,*,0" , W/${tag}`)).toBe(304);
    expect(await status("*")).toBe(304);
  } finally {
    await own.close();
  }
});
