import { expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { bodyText, headerValues, parseReply } from "./http-reply.ts";

const bytes = (text: string) => Buffer.from(text, "latin1");

test.each([
  ["a length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", false, 200, "{}"],
  [
    "chunks",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1;x=y\r\n}\r\n0\r\n\r\n",
    false,
    200,
    "{}",
  ],
  [
    "chunks and a trailer",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: 1\r\n\r\n",
    false,
    200,
    "{}",
  ],
  ["the end of the connection", "HTTP/1.0 200 OK\r\n\r\n{}", true, 200, "{}"],
  [
    "an interim response before it",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 412 X\r\nContent-Length: 0\r\n\r\n",
    false,
    412,
    "",
  ],
  ["204 and nothing", "HTTP/1.1 204 No Content\r\n\r\n", false, 204, ""],
  [
    "204 and bytes behind it, which a rule must see",
    "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n{}",
    false,
    204,
    "{}",
  ],
  ["a status line without a reason", "HTTP/1.1 428\r\nContent-Length: 0\r\n\r\n", false, 428, ""],
] as const)("a reply is read that is delimited by %s", (_, text, ended, status, body) => {
  const parsed = parseReply(bytes(text), "PUT", ended);
  expect(parsed).toMatchObject({ kind: "complete", reply: { status } });
  if (parsed.kind === "complete") expect(parsed.reply.body.toString()).toBe(body);
});

test.each([
  ["no status line", "SSH-2.0-OpenSSH\r\n\r\n", false],
  ["a header line without a colon", "HTTP/1.1 200 OK\r\nbroken\r\n\r\n", false],
  ["a length that is no number", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", false],
  ["a body cut short", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", true],
  ["a chunk without a size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", false],
  ["chunks cut short", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}", true],
  ["an end before the header section", "HTTP/1.1 200 OK\r\n", true],
] as const)("%s is malformed", (_, text, ended) => {
  expect(parseReply(bytes(text), "GET", ended).kind).toBe("malformed");
});

test("law: a reply cut anywhere is incomplete, never another reply", () => {
  const chunked =
    'HTTP/1.1 200 OK\r\nETag: "\xe9, W/"\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n';
  const sized = 'HTTP/1.1 412 X\r\netag: "a"\r\nContent-Length: 12\r\n\r\n{"a":"\\u00"}';
  fc.assert(
    fc.property(
      fc.constantFrom(chunked, sized),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      (text, share) => {
        expect(parseReply(bytes(text.slice(0, Math.floor(text.length * share))), "GET", false).kind).toBe(
          "incomplete",
        );
      },
    ),
  );
});

test("header values are kept byte for byte, in every letter case of the name and in order", () => {
  const parsed = parseReply(
    bytes('HTTP/1.1 200 OK\r\nETAG:  "\xe9, W/" \r\netag: "b"\r\nContent-Length: 0\r\n\r\n'),
    "GET",
    false,
  );
  if (parsed.kind !== "complete") throw new Error(parsed.kind);
  expect(headerValues(parsed.reply.headers, "etag")).toEqual(['"\xe9, W/"', '"b"']);
});

test("content codings are undone; one that fails is shown as it came", () => {
  const headers = [["Content-Encoding", "gzip"]] as const;
  expect(bodyText({ status: 200, headers, body: gzipSync("{}") })).toBe("{}");
  expect(bodyText({ status: 200, headers, body: Buffer.from("{}") })).toBe("{}");
});
