import { connect } from "node:net";
import { parseRawReply, type RawReply } from "./raw-exchange.ts";

/** Sends a request up to its body, does something, and sends the body. @param lines of the head, the request line first */
export async function bodyLater(
  port: number,
  lines: readonly string[],
  body: object,
  meanwhile: () => unknown,
): Promise<RawReply> {
  const text = JSON.stringify(body);
  const head = [
    ...lines,
    "Host: localhost",
    "Connection: close",
    "Content-Type: application/json",
    `Content-Length: ${text.length}`,
    "Expect: 100-continue",
  ];
  const received = await new Promise<string>((resolve, reject) => {
    let answer = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(`${head.join("\r\n")}\r\n\r\n`));
    // "100 Continue" says that the service waits for the body.
    socket.once("data", async () => {
      await meanwhile();
      socket.on("data", (chunk) => {
        answer += chunk.toString("latin1");
      });
      socket.write(text);
    });
    socket.once("close", () => resolve(answer));
    socket.once("error", reject);
  });
  const reply = parseRawReply(received);
  if (reply === null) throw new Error(`no answer: ${received}`);
  return reply;
}
