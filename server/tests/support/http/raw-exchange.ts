import { connect } from "node:net";

export type RawReply = {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
};

/**
 * Writes bytes to a socket and reads until the other side closes: for what no client library sends. The
 * request should carry `Connection: close`. Strings are written as Latin-1, a byte a character.
 *
 * @returns all that came back; "" when the connection was closed without an answer
 */
export function rawExchange(port: number, bytes: string | Uint8Array): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, "127.0.0.1", () => {
      socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
    });
    socket.on("data", (chunk) => chunks.push(Buffer.from(chunk)));
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ECONNRESET" || error.code === "EPIPE")
        resolve(Buffer.concat(chunks).toString("latin1"));
      else reject(error);
    });
    socket.on("close", () => resolve(Buffer.concat(chunks).toString("latin1")));
  });
}

/** @returns the first response in what came back, or null where there is none */
export function parseRawReply(text: string): RawReply | null {
  const end = text.indexOf("\r\n\r\n");
  if (end === -1) return null;
  return { ...parseHead(text.slice(0, end)), body: text.slice(end + 4) };
}

/** @param head the status line and the header lines, without the empty line that ends them */
export function parseHead(head: string): Pick<RawReply, "status" | "headers"> {
  const [statusLine = "", ...lines] = head.split("\r\n");
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1] ?? "0");
  const headers = new Map(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  return { status, headers };
}
