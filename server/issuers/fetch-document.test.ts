import { afterAll, describe, expect, test } from "bun:test";
import { fetchDocument } from "./fetch-document.ts";

const LIMITS = { timeoutMs: 60_000, bytesMax: 1_000 };

let respond: () => Response | Promise<Response>;
let asked = 0;
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 0,
  fetch: () => {
    asked += 1;
    return respond();
  },
});
afterAll(() => server.stop(true));

const faultOf = (limits = LIMITS): Promise<string> =>
  fetchDocument(server.url.href, limits).then(
    () => "none",
    (error: Error) => `${error.name}: ${error.message.replace(server.url.href, "URL")}`,
  );

test("a JSON object is fetched, up to its last byte", async () => {
  respond = () => new Response('{"keys":[]}'.padEnd(1_000));
  expect(await fetchDocument(server.url.href, LIMITS)).toEqual({ keys: [] });
});

describe("an answer that takes longer than the limit is given up", () => {
  test("before its head", async () => {
    const { promise, resolve } = Promise.withResolvers<Response>();
    respond = () => promise;
    expect(await faultOf({ ...LIMITS, timeoutMs: 50 })).toBe(
      "DocumentRefused: URL did not answer within 50 ms",
    );
    resolve(new Response());
  });

  test("within its body", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    respond = () =>
      new Response(
        new ReadableStream({
          async start(controller) {
            controller.enqueue(new TextEncoder().encode("{"));
            await promise;
            controller.close();
          },
        }),
      );
    expect(await faultOf({ ...LIMITS, timeoutMs: 50 })).toBe(
      "DocumentRefused: URL did not answer within 50 ms",
    );
    resolve();
  });
});

describe("an answer that is longer than the limit is refused", () => {
  test("by one byte", async () => {
    respond = () => new Response("{}".padEnd(1_001));
    expect(await faultOf()).toBe("DocumentRefused: URL answered with more than 1000 bytes");
  });

  test("without an end", async () => {
    const { promise: over, resolve } = Promise.withResolvers<void>();
    respond = () =>
      new Response(
        new ReadableStream({
          pull: (controller) => controller.enqueue(new Uint8Array(500)),
          cancel: () => resolve(),
        }),
      );
    expect(await faultOf()).toBe("DocumentRefused: URL answered with more than 1000 bytes");
    await over;
  });

  test("once it is unpacked", async () => {
    respond = () =>
      new Response(Bun.gzipSync(Buffer.alloc(10_000_000, " ")), { headers: { "content-encoding": "gzip" } });
    expect(await faultOf()).toBe("DocumentRefused: URL answered with more than 1000 bytes");
  });
});

test("a redirect is not followed", async () => {
  respond = () => Response.redirect("/elsewhere");
  asked = 0;
  expect([await faultOf(), asked]).toEqual(["DocumentRefused: URL answered 302, not 200", 1]);
});

test.each(["s3cret", '{"keys": s3cret}', "<!doctype html>s3cret"])(
  "what is not JSON is refused without a word of it: %s",
  async (text) => {
    respond = () => new Response(text);
    expect(await faultOf()).toBe("DocumentRefused: URL answered with what is not JSON");
  },
);

test("text that is not UTF-8 is refused", async () => {
  respond = () => new Response(new Uint8Array([0x7b, 0xff, 0x7d]));
  expect(await faultOf()).toStartWith("DocumentRefused: URL");
});

test.each([
  "http://example.com/",
  "file:///etc/passwd",
  "data:application/json,{}",
  "http://127.0.0.1.example/",
])("%s is not asked", async (url) => {
  expect(await fetchDocument(url, LIMITS).catch((error: Error) => error.message)).toBe(
    `${url} is not an https address`,
  );
});
