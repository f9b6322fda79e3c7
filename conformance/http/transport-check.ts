/**
 * Before anything is believed: do awkward headers leave this process as written? A loopback socket takes down
 * the bytes of both ways onto the wire.
 */
import { createServer } from "node:net";
import { KitFault } from "./outcome-signal.ts";
import { Transport } from "./transport.ts";

/** Each must stand in the request byte for byte, as a line of its own. */
const AWKWARD: readonly (readonly [string, string])[] = [
  ["If-Match", "   "],
  ["If-Match", ""],
  ["If-Match", '  "padded"\t'],
  ["iF-mAtCh", 'W/"a,b"'],
  ["If-Match", '"\xe9"'],
];

/** @throws KitFault when a byte differs. */
export async function checkTransport(): Promise<void> {
  const received: Buffer[] = [];
  const server = createServer((socket) => {
    let bytes: Buffer = Buffer.alloc(0);
    socket.on("error", () => socket.destroy());
    socket.on("data", (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      if (!bytes.toString("latin1").endsWith("\r\n\r\n{}")) return;
      received.push(bytes);
      socket.end(
        'HTTP/1.1 412 Precondition Failed\r\nETAG: "\xe9, W/"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n',
        "latin1",
      );
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const transport = new Transport({
    timeoutMs: 5000,
    tls: { ca: undefined, insecure: false },
    proxy: undefined,
  });
  try {
    const outgoing = {
      method: "PUT",
      url: `http://127.0.0.1:${port}/a%2Cb?fields=id,name`,
      headers: AWKWARD,
      body: "{}",
    };
    for (const [way, send] of [
      ["undici", () => transport.send(outgoing)],
      ["a socket", () => transport.sockets.send(outgoing)],
    ] as const) {
      const { reply, failure } = await send();
      const text = received.pop()?.toString("latin1") ?? "";
      const missing = AWKWARD.find(([name, value]) => !text.includes(`\r\n${name}: ${value}\r\n`));
      if (missing !== undefined)
        throw new KitFault(
          `${way} altered the header ${missing[0]}: ${JSON.stringify(missing[1])} on its way out`,
        );
      if (!text.startsWith("PUT /a%2Cb?fields=id,name HTTP/1.1\r\n"))
        throw new KitFault(`${way} altered the request target`);
      if (reply?.status !== 412 || reply.headers[0]?.[1] !== '"\xe9, W/"')
        throw new KitFault(`${way} altered the answer: ${failure ?? JSON.stringify(reply?.headers)}`);
    }
  } finally {
    await transport.close();
    server.close();
  }
}
