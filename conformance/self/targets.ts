/** What is not the service at all, and must not be taken for one that conforms. */
import type { Socket } from "node:net";
import { type Listening, listen, listenRaw, type Reply, type Request } from "./service/http-socket.ts";

export type Target = {
  id: string;
  does: string;
  /** It serves something like a customer, so single rules may hold; the run as a whole may not. */
  likeACustomer?: boolean;
  /** The run is given an id of a customer, as one that may make none is. */
  given?: string;
  /** The exit code that the run must end with; any but 0 where none is told. */
  exit?: number;
  /** What the headline must say. */
  says?: RegExp;
  start: () => Promise<Listening>;
};

const JSON_TYPE: [string, string] = ["Content-Type", "application/json"];
const HTML: [string, string] = ["Content-Type", "text/html"];
const ID = "0b9f2c52-6f0e-4f0d-9c0e-6f4a53a1d001";
const CUSTOMER = JSON.stringify({ Id: ID, Name: "Ada", Email: "ada@example.org", Status: "Active" });

function answering(id: string, does: string, reply: Reply | ((request: Request) => Reply)): Target {
  return {
    id,
    does,
    start: () => listen(async (request) => (typeof reply === "function" ? reply(request) : reply)),
  };
}

/** The same with the id of a customer: it is the base URL that is wrong, and no rule may be blamed for that. */
const given = (target: Target): Target => ({
  ...target,
  id: `${target.id}-given`,
  does: `${target.does}; a customer is given by id`,
  given: ID,
  exit: 4,
  says: /base URL/,
});

const likeACustomer = (...target: Parameters<typeof answering>): Target => ({
  ...answering(...target),
  likeACustomer: true,
});

function onSocket(id: string, does: string, onConnection: (socket: Socket) => void): Target {
  return { id, does, start: () => listenRaw(onConnection) };
}

/** No server has this port. One that was taken and given back may be another server's a moment later. */
const NOTHING: Listening = { port: 1, connections: () => 0, close: async () => undefined };

/** Writes forever, as fast as the peer reads, until it leaves. */
function pour(socket: Socket, head: string): void {
  const chunk = Buffer.alloc(16 * 1024, "[1,");
  const more = () => {
    while (!socket.destroyed && socket.write(chunk));
    if (!socket.destroyed) socket.once("drain", more);
  };
  socket.once("data", () => {
    socket.write(head);
    more();
  });
}

/** Answer in one way, whatever they are asked. */
const ALIKE: Target[] = [
  answering("login-page", "answers everything with 200 and a login page", {
    status: 200,
    headers: [HTML],
    body: "<!doctype html><title>Sign in</title><form method=post><input name=password></form>",
  }),
  answering("login-redirect", "redirects everything to a login page", {
    status: 302,
    headers: [["Location", "/login"]],
    body: "",
  }),
  answering("redirect-loop", "redirects everything to itself", (request) => ({
    status: 307,
    headers: [["Location", request.path]],
    body: "",
  })),
  ...([401, 403, 404, 405, 429, 500, 502, 503] as const)
    .map((status) =>
      answering(`all-${status}`, `answers everything with ${status}`, {
        status,
        headers: [
          JSON_TYPE,
          ...(status === 503 || status === 429 ? ([["Retry-After", "1"]] as [string, string][]) : []),
        ],
        body: JSON.stringify({ title: "no" }),
      }),
    )
    .map((target) =>
      target.id === "all-404" ? { ...target, says: /base URL.*--customer-id.*\[customers\]/ } : target,
    ),
  answering("empty-200", "answers everything with 200 and nothing", { status: 200, headers: [], body: "" }),
  answering("all-204", "answers everything with 204", { status: 204, headers: [] }),
  answering("empty-object", "answers everything with 200 and {}", {
    status: 200,
    headers: [JSON_TYPE],
    body: "{}",
  }),
  answering("html-404", "answers everything with an HTML error page", {
    status: 404,
    headers: [HTML],
    body: "<html><body><h1>Not Found</h1></body></html>",
  }),
  answering("echo-http", "answers with what was sent, and the If-Match as ETag", (request) => {
    const sent = request.headers.find(([name]) => /^if-match$/i.test(name))?.[1];
    return {
      status: 200,
      headers: [
        ["Content-Type", "text/plain"],
        ...(sent === undefined ? [] : [["ETag", sent] as [string, string]]),
      ],
      body: `${request.method} ${request.path}`,
    };
  }),
];

/** Those of them that are not told by a redirect or a refusal of credentials already. */
const MISTAKABLE = /^(login-page|empty-200|all-(204|404|405|500|502)|html-404|echo-http)$/;

export const TARGETS: Target[] = [
  { id: "nothing-listens", does: "no server at all", start: async () => NOTHING },
  onSocket("hangs", "accepts the connection and never answers", () => undefined),
  onSocket("hangs-after-head", "sends the head of a reply and not its body", (socket) => {
    socket.on("data", () =>
      socket.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"),
    );
  }),
  onSocket("closes-at-once", "closes each connection", (socket) => socket.destroy()),
  onSocket(
    "closes-after-request",
    "reads the request and closes",
    (socket) => void socket.on("data", () => socket.end()),
  ),
  onSocket("garbage", "answers with bytes that are no HTTP", (socket) => {
    socket.on("data", () => socket.end(Buffer.from([0x15, 0x03, 0x01, 0, 2, 2, 0x46, 0xff, 0xfe, 0])));
  }),
  onSocket(
    "echo",
    "sends back what it gets",
    (socket) => void socket.on("data", (bytes) => socket.write(bytes)),
  ),
  onSocket("endless-body", "answers with a body that never ends", (socket) =>
    pour(socket, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"),
  ),
  onSocket("endless-head", "answers with a head that never ends", (socket) =>
    pour(socket, "HTTP/1.1 200 OK\r\n"),
  ),
  onSocket(
    "another-protocol",
    "greets like a mail server",
    (socket) => void socket.write("220 mail.example.org ESMTP\r\n"),
  ),
  ...ALIKE,
  ...ALIKE.filter(({ id }) => MISTAKABLE.test(id)).map(given),
  likeACustomer("mock", "answers everything with one customer and one tag, as a mock does", {
    status: 200,
    headers: [["ETag", '"1"'], JSON_TYPE, ["Location", `/customers/${ID}`]],
    body: CUSTOMER,
  }),
  likeACustomer("other-resource", "serves orders, not customers", (request) =>
    request.method === "POST"
      ? { status: 201, headers: [JSON_TYPE, ["Location", "/orders/7"]], body: '{"orderNumber":7,"lines":[]}' }
      : {
          status: request.method === "GET" ? 200 : 405,
          headers: [JSON_TYPE],
          body: '{"orderNumber":7,"lines":[]}',
        },
  ),
  likeACustomer("body-back", "answers with the body that was sent, as request inspectors do", (request) => ({
    status: 200,
    headers: [JSON_TYPE, ["ETag", `"${request.path.length}"`]],
    body: JSON.stringify({
      method: request.method,
      path: request.path,
      headers: Object.fromEntries(request.headers),
    }),
  })),
];
