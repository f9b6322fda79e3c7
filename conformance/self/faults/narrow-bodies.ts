/** One path alone: bodies that are not what a PUT needs. */
import { customerOf, type Fault } from "../fault.ts";
import { answered, onPath, type Turn } from "../narrow.ts";
import { type Reply, setHeader } from "../service/http-socket.ts";
import { isJson } from "../service/write-body.ts";
import { badBody, emptied, NAME, onListBody, overwritten, REQUIRED } from "./narrow-writes.ts";

/** Judges the bodies that are JSON, or those that are not. */
const judged =
  (json: boolean) =>
  async (turn: Turn): Promise<Reply> =>
    isJson(await turn.request.body()) === json ? answered(400)(turn) : turn.reply;

export const NARROW_BODY_FAULTS: Fault[] = [
  onPath({
    cause: "ORD-10.status",
    does: "judges a body that is JSON before it misses If-Match",
    when: badBody("none"),
    act: judged(true),
  }),
  onPath({
    cause: "ORD-10.no-json",
    does: "refuses what is no JSON before it misses If-Match",
    when: badBody("none"),
    act: judged(false),
  }),
  onPath({
    cause: "ORD-10.unchanged",
    does: "misses If-Match of a bad PUT and empties the name",
    when: badBody("none"),
    act: emptied,
  }),
  onPath({
    cause: "ORD-11.status",
    does: "judges the body before it compares a stale tag",
    when: badBody("previous"),
    act: answered(400),
  }),
  onPath({
    cause: "ORD-11.unchanged",
    does: "refuses a bad, stale PUT and empties the name",
    when: badBody("previous"),
    act: emptied,
  }),
  onListBody(
    "ORD-13.refused",
    "answers a PUT of a JSON list with 204 and stores nothing",
    ({ customer }) => ({
      status: 204,
      headers: [["ETag", customer.tag]],
    }),
  ),
  onListBody(
    "ORD-13.unchanged",
    "refuses a PUT of a JSON list and empties the name",
    ({ reply, customer, service }) => {
      overwritten(customer, service, { name: "" });
      return reply;
    },
  ),
  ...REQUIRED,
  onPath({
    cause: "FLD-15.answer",
    does: "redirects a PUT that names another id to that id",
    when: ({ request, body, before }) =>
      request.method === "PUT" && typeof body["Id"] === "string" && body["Id"] !== before?.id,
    act: ({ body }) => ({ status: 303, headers: [["Location", `/customers/${body["Id"]}`]], body: "" }),
  }),
  onPath({
    cause: "FLD-15.not-moved",
    does: "copies the customer to the id that a PUT names",
    when: ({ request, body, before }) =>
      request.method === "PUT" && typeof body["Id"] === "string" && body["Id"] !== before?.id,
    act: ({ request, reply, body, service }) => {
      const customer = customerOf(request, service);
      if (customer !== undefined)
        service.customers.set(String(body["Id"]), { ...customer, id: String(body["Id"]) });
      return reply;
    },
  }),
  onPath({
    cause: "FLD-18.no-5xx",
    does: "is not available when the name is a number",
    when: ({ request, body }) => request.method === "PUT" && typeof body[NAME] === "number",
    act: answered(503),
  }),
  ...(["not-set", "not-reset"] as const).map((assertion) =>
    onPath({
      cause: `FLD-19.${assertion}`,
      does:
        assertion === "not-set"
          ? "takes RowVersion of a body for the new token"
          : "takes a RowVersion that it once gave for the new token",
      when: ({ request, body, reply, before }) => {
        const sent = body["RowVersion"];
        if (request.method !== "PUT" || reply.status !== 204 || typeof sent !== "string") return false;
        const former = before?.formerTags.includes(`"${sent}"`) === true;
        return assertion === "not-reset" ? former : !former;
      },
      act: ({ request, reply, body, service }) => {
        const customer = customerOf(request, service);
        if (customer !== undefined) customer.tag = `"${String(body["RowVersion"])}"`;
        return setHeader(reply, "ETag", customer?.tag);
      },
    }),
  ),
];
