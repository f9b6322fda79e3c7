import { expect, test } from "bun:test";
import { completeReply } from "./reply.ts";

const latin = Uint8Array.from([0x22, 0x4d, 0xfc, 0x6c, 0x6c, 0x65, 0x72, 0x22]);

test.each<[string, number, string, string]>([
  ["named by its charset", 200, 'application/json; charset="ISO-8859-1"', '"Müller"'],
  ["of a refusal, whatever it is", 502, "text/html", '"M\uFFFDller"'],
  ["of a refusal in a charset nobody knows", 502, "text/html; charset=x", '"M\uFFFDller"'],
])("a body in another encoding than UTF-8, %s, is decoded", (_, status, type, text) => {
  expect(completeReply(status, new Map([["content-type", type]]), latin)).toMatchObject({ status, text });
});

test.each([["application/json"], ["application/json; charset=utf-8"], ["application/json; charset=x"]])(
  "a success that is not what %s says is unreadable, and never text with replacement characters",
  (type) => {
    const reply = completeReply(200, new Map([["content-type", type]]), latin);
    expect(reply).toMatchObject({ kind: "no-complete-reply", sent: true, cause: "unreadable" });
  },
);
