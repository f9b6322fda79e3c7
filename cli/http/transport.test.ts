/** Replies that do not arrive whole, called what they are. */
import { expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { emptyProfileFile } from "../config/profile/profile-file.ts";
import { readSettings } from "../config/settings.ts";
import { type RawReply, response, startRawServer } from "../tests/support/raw-server.ts";
import { openTransport } from "./transport.ts";

const MIB = 1024 * 1024;
const LARGE = "a".repeat(MIB + 1);
const zipped = (text: string) => response(200, ["Content-Encoding: gzip"], gzipSync(text).toString("latin1"));

async function replyTo(first: RawReply) {
  const server = await startRawServer(() => first);
  const settings = await readSettings({
    flags: { url: server.url },
    env: {},
    file: emptyProfileFile("/none"),
    readStdin: async () => "",
  });
  const transport = await openTransport(settings, server.url, MIB);
  const request = { origin: server.url, path: "/", method: "GET" } as const;
  const reply = await transport.exchange(request, 20_000, new AbortController().signal);
  await transport.close();
  server.stop();
  return reply;
}

test.each([
  ["as it is", response(200, [], LARGE)],
  ["compressed", zipped(LARGE)],
])(
  "a reply that is larger than the limit, %s: not a broken connection, and not asked for again",
  async (_, bytes) => {
    expect(await replyTo({ bytes })).toMatchObject({
      kind: "no-complete-reply",
      sent: true,
      cause: "unreadable",
      detail: "the reply is larger than 1 MiB",
      hint: expect.stringContaining("Ask for less"),
    });
  },
);

test.each([
  ["as it is", response(200, [], "a".repeat(MIB))],
  ["compressed", zipped("a".repeat(MIB))],
])("a reply of the limit is whole, %s", async (_, bytes) => {
  expect(await replyTo({ bytes })).toMatchObject({ kind: "complete", status: 200 });
});

test("a connection that breaks off behind the head of a reply is no matter of TLS; one that breaks off before may be", async () => {
  const cut = await replyTo({ bytes: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", end: true });
  expect(cut).toMatchObject({ kind: "no-complete-reply", cause: "reset" });
  expect("hint" in cut).toBe(false);
  expect(await replyTo(undefined)).toMatchObject({ cause: "reset", hint: expect.stringContaining("TLS") });
});
