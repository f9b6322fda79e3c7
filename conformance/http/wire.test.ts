import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Value } from "@sinclair/typebox/value";
import { Exchange, Report } from "../report/schema.ts";
import { defaultOptions } from "../target/options.ts";
import { readProfile } from "../target/profile.ts";
import { CouldNotRun, Interrupted, NoReply, Unreachable } from "./outcome-signal.ts";
import { type Ask, Wire } from "./wire.ts";

let server: ReturnType<typeof Bun.serve>;
let answer: () => Response = () => new Response();
let received = 0;
let onRequest: ((request: Request) => void) | undefined;
beforeAll(() => {
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      received += 1;
      onRequest?.(request);
      return answer();
    },
  });
});
afterAll(() => server.stop(true));
beforeEach(() => {
  received = 0;
});

const SECRET = "sesame-open-0c2b66e1";
const profile = () => readProfile({ baseUrl: String(server.url), header: [`X-Api-Key: ${SECRET}`] }, {});
const ask = (change: Partial<Ask> = {}): Ask => ({
  rule: "IFM-01",
  purpose: "probe",
  caller: "main",
  method: "GET",
  url: `${server.url}customers/a`,
  headers: [],
  ...change,
});

test("429 is obeyed and asked again; so is 503 with Retry-After", async () => {
  const replies = [
    new Response("", { status: 429, headers: { "retry-after": "0" } }),
    new Response("", { status: 503, headers: { "retry-after": "0" } }),
  ];
  answer = () => replies.shift() ?? new Response("{}");
  const wire = new Wire(profile(), defaultOptions);
  expect((await wire.send(ask())).status).toBe(200);
  expect(wire.ledger.map(({ status }) => status)).toEqual([429, 503, 200]);
  await wire.close();
});

test("503 without Retry-After is an answer", async () => {
  answer = () => new Response("", { status: 503 });
  const wire = new Wire(profile(), defaultOptions);
  expect((await wire.send(ask())).status).toBe(503);
  await wire.close();
});

test("endless 429 ends the rule, not the run", async () => {
  answer = () => new Response("", { status: 429, headers: { "retry-after": "0" } });
  const wire = new Wire(profile(), defaultOptions);
  expect(wire.send(ask())).rejects.toBeInstanceOf(CouldNotRun);
  await wire.send(ask()).catch(() => undefined);
  await wire.close();
});

test("the budget holds, and what clean-up needs is kept back", async () => {
  answer = () => new Response("{}");
  const wire = new Wire(profile(), { ...defaultOptions, budget: 8 });
  const outcomes = [];
  for (let n = 0; n < 8; n += 1)
    outcomes.push(
      await wire.send(ask()).then(
        () => "sent",
        (error: unknown) => (error instanceof CouldNotRun ? "refused" : error),
      ),
    );
  expect(outcomes).toEqual([...Array(6).fill("sent"), "refused", "refused"]);
  wire.beginCleaning();
  await wire.send(ask());
  await wire.send(ask());
  expect(wire.send(ask())).rejects.toBeInstanceOf(CouldNotRun);
  expect(received).toBe(8);
  await wire.close();
});

test("no secret reaches what is kept: sent, echoed in body, header or URL", async () => {
  answer = () =>
    new Response(JSON.stringify({ echo: SECRET, encoded: btoa(SECRET) }), {
      headers: { "x-echo": SECRET, etag: '"a"' },
    });
  const wire = new Wire(profile(), defaultOptions);
  const seen = await wire.send(
    ask({ url: `${server.url}customers/a?key=${SECRET}`, body: SECRET, method: "PUT" }),
  );
  const kept = JSON.stringify([seen.exchange, wire.ledger]);
  expect(kept).not.toContain(SECRET);
  expect(kept).not.toContain(btoa(SECRET));
  expect(seen.exchange.request.headers).toContainEqual(["X-Api-Key", "$X_API_KEY"]);
  // The check itself still sees the reply as it was.
  expect(seen.object?.["echo"]).toBe(SECRET);
  await wire.close();
});

test("after an interruption nothing is sent but the clean-up", async () => {
  answer = () => new Response("{}");
  const abort = new AbortController();
  const wire = new Wire(profile(), { ...defaultOptions, signal: abort.signal });
  abort.abort();
  expect(wire.send(ask())).rejects.toBeInstanceOf(Interrupted);
  wire.beginCleaning();
  expect((await wire.send(ask())).status).toBe(200);
  await wire.close();
});

test("no reply is thrown with its exchange", async () => {
  const wire = new Wire(profile(), defaultOptions);
  const error = await wire.send(ask({ url: "http://127.0.0.1:1/x" })).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(NoReply);
  expect((error as NoReply).exchange.failure).toContain("ECONNREFUSED");
  await wire.close();
});

test("a pause of hours ends the run at once and names the quota; the clean-up tries once and gives up", async () => {
  answer = () => new Response("", { status: 429, headers: { "retry-after": "86400" } });
  const wire = new Wire(profile(), defaultOptions);
  const error = await wire.send(ask()).catch((each: unknown) => each);
  expect(error).toBeInstanceOf(Unreachable);
  expect(String(error)).toContain("86400 s");
  wire.beginCleaning();
  for (let n = 0; n < 5; n += 1)
    expect(await wire.send(ask()).catch((each) => each)).toBeInstanceOf(CouldNotRun);
  expect(received).toBe(2);
  await wire.close();
});

test("the header command is run again on 401, at most once in its interval, and its secrets are masked", async () => {
  const folder = mkdtempSync(join(tmpdir(), "kit-renew-"));
  const file = join(folder, "count");
  writeFileSync(file, "");
  // Each run prints another token.
  const command = `printf x >> ${file}; echo "Authorization: Bearer token-number-$(wc -c < ${file})"`;
  const renewing = readProfile(
    { baseUrl: String(server.url), headerCommand: command },
    { PATH: Bun.env["PATH"] },
  );
  const seen: string[] = [];
  answer = () => new Response("", { status: 401 });
  const look = (request: Request) => seen.push(request.headers.get("authorization") ?? "");
  onRequest = look;
  for (const [renewalMs, tokens] of [
    [0, ["1", "2", "2"]],
    [60_000, ["1"]],
  ] as const) {
    seen.length = 0;
    answer = () =>
      seen.at(-1)?.endsWith(renewalMs === 0 ? "2" : "never")
        ? new Response("{}")
        : new Response("", { status: 401 });
    const wire = new Wire(renewing, { ...defaultOptions, renewalMs });
    const first = await wire.send(ask());
    if (first.status === 200) await wire.send(ask());
    expect(seen).toEqual(tokens.map((n) => `Bearer token-number-${n}`));
    expect(JSON.stringify(first.exchange)).not.toContain("token-number");
    expect(wire.mask("echo token-number-1")).not.toContain("token-number");
    if (renewalMs === 0) expect(wire.mask("echo token-number-2")).not.toContain("token-number");
    await wire.close();
  }
  onRequest = undefined;
  rmSync(folder, { recursive: true });
});

test("a wrong credential replaces every cookie, since any of them may be the one that counts", () => {
  const header = ["Cookie: session=sesame-open; theme=dark"];
  const wire = new Wire(readProfile({ baseUrl: String(server.url), header }, {}), defaultOptions);
  const wrong = "session=kit-wrong-credential; theme=kit-wrong-credential";
  for (const caller of ["garbled", "lengthened"] as const)
    expect(wire.callerHeaders(caller).map(({ value }) => value)).toEqual([wrong]);
});

test("a lengthened credential is shown as its variable; one whose end a decoder may ignore is replaced", () => {
  const header = ["Authorization: Bearer sesame-open", "X-Basic: c2VzYW1lOm9wZW4="];
  const wire = new Wire(readProfile({ baseUrl: String(server.url), header }, {}), defaultOptions);
  expect(wire.callerHeaders("lengthened").map(({ value, shown }) => [value, shown])).toEqual([
    ["Bearer sesame-open-kit", "$AUTHORIZATION-kit"],
    ["kit-wrong-credential", "kit-wrong-credential"],
  ]);
});

test("a read that shows the tag which an accepted write of ours replaced lags behind it", async () => {
  const wire = new Wire(profile(), defaultOptions);
  const put = (tag: string) => wire.send(ask({ method: "PUT", headers: [["If-Match", tag]] }));
  answer = () => new Response(null, { status: 204, headers: { etag: '"2"' } });
  await put('"1"');
  answer = () => new Response(null, { status: 412, headers: { etag: '"2"' } });
  await put('"0"');
  const lags = (tag: string) => wire.onlooker.lags("/customers/a", tag);
  expect(['"0"', '"1"', '"2"'].map(lags)).toEqual([false, true, false]);
  await wire.close();
});

test("a header of a probe is shown as it was sent, although a credential has its name", async () => {
  answer = () => new Response("{}");
  const wire = new Wire(
    readProfile({ baseUrl: String(server.url), header: [`Cookie: ${SECRET}`] }, {}),
    defaultOptions,
  );
  const { exchange } = await wire.send(ask({ headers: [["Cookie", "etag=1"]] }));
  const cookies = exchange.request.headers.filter(([name]) => name === "Cookie").map(([, value]) => value);
  expect(cookies).toEqual(["$COOKIE", "etag=1"]);
  await wire.close();
});

test("a reply that comes before its release took no negative time, in the exchange and in the ledger", async () => {
  const left = Promise.withResolvers<void>();
  const early = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.on("close", () => left.resolve());
    socket.resume();
    socket.write("HTTP/1.1 204 No Content\r\n\r\n");
  });
  await new Promise<void>((resolve) => early.listen(0, "127.0.0.1", resolve));
  const address = early.address();
  const port = typeof address === "object" ? address?.port : 0;
  const wire = new Wire(profile(), defaultOptions);
  const held = await wire.hold(
    ask({ method: "PUT", url: `http://127.0.0.1:${port}/customers/a`, body: "{}" }),
  );
  await left.promise;
  const released = await held.release();
  expect(released).toMatchObject({ seen: { status: 204 }, early: true });
  expect([...Value.Errors(Exchange, released.exchange)]).toEqual([]);
  expect([...Value.Errors(Report.properties.ledger, wire.ledger)]).toEqual([]);
  await wire.close();
  early.close();
});
