/** PRB: what refusals look like (7). Problem documents are optional, so a fault needs one that is there and wrong. */
import { type Fault, isRead, requesting } from "../fault.ts";
import { headerLines, type Request } from "../service/http-socket.ts";
import type { Customer } from "../service/seams.ts";
import type { Service } from "../service/service.ts";
import { as, empty, on, read, showing, write } from "../turn.ts";

const stale = write(undefined, 412);

/** The customer whose id begins like that of the request, where none has the very id. */
function likeIt({ path }: Request, service: Service): Customer | undefined {
  const id = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
  if (service.customers.has(id)) return undefined;
  return [...service.customers.values()].find((customer) => customer.id.slice(0, 8) === id.slice(0, 8));
}

export const ERROR_FAULTS: Fault[] = [
  {
    id: "id-by-its-beginning",
    rule: "PRB-01",
    does: "finds a customer by the first eight characters of an id, as many as the index holds",
    plant: requesting(
      (request, service) => isRead(request) && likeIt(request, service) !== undefined,
      (request, service) => ({
        ...request,
        path: `${service.deployment.basePath}/customers/${likeIt(request, service)?.id}`,
      }),
    ),
  },
  {
    id: "412-as-200",
    rule: "IFM-03",
    does: "answers a stale write with 200 and an error in the body",
    plant: on(stale).answers(as(200, '{"errors":[{"code":"PRECONDITION_FAILED"}]}')),
  },
  {
    id: "428-as-200",
    rule: "IFM-04",
    does: "answers a write without If-Match with 200 and an error in the body",
    plant: on(write(undefined, 428)).answers(as(200, '{"errors":[{"code":"PRECONDITION_REQUIRED"}]}')),
  },
  {
    id: "problem-is-no-json",
    rule: "PRB-03",
    does: "labels plain text application/problem+json",
    plant: on(stale).answers(as(412, "Precondition Failed")),
  },
  {
    id: "problem-is-a-string",
    rule: "PRB-03",
    does: "sends a JSON string as problem document",
    plant: on(stale).answers(as(412, '"Precondition Failed"')),
  },
  {
    id: "problem-status-differs",
    rule: "PRB-03",
    does: "says 500 in the status member of a 412 document",
    plant: on(stale).answers(showing((body) => ({ ...body, status: 500 }))),
  },
  {
    id: "problem-without-code",
    rule: "PRB-04",
    does: "sends a 412 document that names no error: about:blank and nothing else",
    plant: on(stale).answers(showing(() => ({ type: "about:blank", status: 412 }))),
  },
  {
    id: "problem-carries-stack",
    rule: "PRB-04",
    does: "sends a stack trace with every 412 of PUT",
    plant: on(write("PUT", 412)).answers(
      showing((body) => ({
        ...body,
        detail: "System.Exception: stale\n   at Customers.Update(Guid id) in /src/Customers.cs:line 42",
      })),
    ),
  },
  {
    id: "204-with-body",
    rule: "IFM-02",
    does: "sends a body with 204, which spoils the connection for the next reply",
    plant: on(write("PUT", 204)).answers(({ reply }) => {
      const head = reply.headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
      const content = 'Content-Type: application/json\r\nContent-Length: 11\r\n\r\n{"ok":true}';
      return { ...reply, raw: Buffer.from(`HTTP/1.1 204 .\r\n${head}${content}`) };
    }),
  },
  {
    id: "put-answers-202",
    rule: "IFM-02",
    does: "answers an accepted PUT with 202",
    plant: on(write("PUT", 204)).answers(as(202, "")),
  },
  {
    id: "put-answers-302",
    rule: "IFM-01",
    does: "answers an accepted PUT with a redirect to the customer",
    plant: on(write("PUT", 204)).answers(({ reply, request }) => ({
      ...reply,
      status: 302,
      headers: [...reply.headers, ["Location", request.path]],
      body: "",
    })),
  },
  {
    id: "get-answers-no-json",
    rule: "ETG-01",
    does: "answers reads with single-quoted, JSON-like text",
    plant: on(read()).answers(({ reply }) => ({ ...reply, body: String(reply.body).replaceAll('"', "'") })),
  },
  {
    id: "odd-if-match-500",
    rule: "PRB-05",
    alsoRun: ["IFM-12"],
    does: "throws where If-Match is no well-formed entity-tag",
    plant: on(
      stale,
      ({ request }) => !/^ *"[^"]*" *$/.test(headerLines(request, "if-match").join(",")),
    ).answers(empty(500)),
  },
  {
    id: "problem-title-is-a-number",
    rule: "PRB-03",
    does: "sends a number as the title of a 412 document",
    plant: on(write("PUT", 412)).answers(showing((body) => ({ ...body, title: 412 }))),
  },
  {
    id: "412-and-428-share-a-code",
    rule: "PRB-04",
    does: "answers every failed precondition with one document",
    plant: on(
      ({ request, reply }) => request.method === "PUT" && /412|428/.test(String(reply.status)),
    ).answers(
      showing((body) => ({ ...body, type: "about:blank", title: "Precondition", code: "PRECONDITION" })),
    ),
  },
];
