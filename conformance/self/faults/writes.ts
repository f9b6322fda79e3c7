/** What an accepted write does (1.3, 2.1, 2.3, 4.2, 4.3). */
import { customerOf, deciding, type Fault, isCustomer, replying } from "../fault.ts";

export const WRITE_FAULTS: Fault[] = [
  {
    id: "applied-then-500",
    rule: "IFM-01",
    does: "applies a PUT, then fails on the way out",
    plant: replying(
      (reply, request) => request.method === "PUT" && reply.status < 300,
      () => ({ status: 500, headers: [], body: "" }),
    ),
  },
  {
    id: "put-changes-nothing",
    rule: "IFM-01",
    does: "answers a PUT with 204 and a new tag but stores nothing",
    plant: deciding("store", (sound, ran) => (customer, change, request) => {
      if (request.method === "PUT") ran();
      else sound(customer, change, request);
    }),
  },
  {
    id: "put-loses-email",
    rule: "IFM-01",
    does: "stores the name of a PUT and forgets the email",
    plant: deciding("store", (sound, ran) => (customer, change, request) => {
      if (request.method !== "PUT") return sound(customer, change, request);
      ran();
      if (change.name !== undefined) sound(customer, { name: change.name }, request);
    }),
  },
  {
    id: "patch-replaces",
    rule: "IFM-30",
    does: "takes a PATCH for a PUT: members that are not in it are emptied",
    plant: deciding("store", (sound, ran) => (customer, change, request) => {
      if (request.method !== "PATCH") return sound(customer, change, request);
      ran();
      sound(customer, { name: "", email: "", ...change }, request);
    }),
  },
  {
    id: "delete-does-nothing",
    rule: "IFM-40",
    does: "answers DELETE with 204 and leaves customer and tag as they are",
    plant: deciding("commit", (sound, ran) => async (attempt) => {
      if (attempt.request.method !== "DELETE") return await sound(attempt);
      await attempt.bodyRead();
      const refusal = attempt.decide();
      if (refusal === undefined) ran();
      return refusal ?? { status: 204, headers: [] };
    }),
  },
  {
    id: "put-changes-id",
    rule: "FLD-15",
    does: "binds the whole body to the row: an Id in a PUT changes the id",
    plant: (ran) => (service) => ({
      writable: (request) => (request.method === "PATCH" ? ["name", "email", "status"] : ["name", "email"]),
      async around(request, next) {
        const reply = await next(request);
        const customer = customerOf(request, service);
        if (
          !isCustomer(request) ||
          !/PUT|PATCH/.test(request.method) ||
          reply.status >= 300 ||
          customer === undefined
        )
          return reply;
        const body = JSON.parse((await request.body()).toString("utf8")) as Record<string, unknown>;
        const id = body[service.deployment.members.id];
        if (typeof id !== "string" || id === customer.id) return reply;
        ran();
        customer.id = id; // the key of the map stays: the row is found by its address and shows another id
        return reply;
      },
    }),
  },
];
