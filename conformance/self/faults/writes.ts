/** What an accepted write does (1.3, 2.1, 2.3, 4.2, 4.3). */
import { deciding, type Fault, type Plant } from "../fault.ts";
import type { Change } from "../service/seams.ts";
import { empty, replying, spoiling, write } from "../turn.ts";

/** Stores something else than what one method carries. */
export const storing = (method: string | undefined, wrong: (change: Change) => Change): Plant =>
  deciding("store", (sound, ran) => (customer, change, request) => {
    const stored = method === undefined || request.method === method ? wrong(change) : change;
    if (!Bun.deepEquals(stored, change)) ran();
    sound(customer, stored, request);
  });

export const WRITE_FAULTS: Fault[] = [
  {
    id: "applied-then-500",
    rule: "IFM-01",
    does: "applies a PUT, then fails on the way out",
    plant: replying(write("PUT"), empty(500)),
  },
  {
    id: "put-changes-nothing",
    rule: "IFM-01",
    does: "answers a PUT with 204 and a new tag but stores nothing",
    plant: storing("PUT", () => ({})),
  },
  {
    id: "put-loses-email",
    rule: "IFM-01",
    does: "stores the name of a PUT and forgets the email",
    plant: storing("PUT", ({ name }) => (name === undefined ? {} : { name })),
  },
  {
    id: "patch-replaces",
    rule: "IFM-30",
    does: "takes a PATCH for a PUT: members that are not in it are emptied",
    plant: storing("PATCH", (change) => ({ name: "", email: "", ...change })),
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
    // The key of the map stays: the row is found by its address and shows another id.
    plant: replying(
      (turn) => /PUT|PATCH/.test(turn.request.method) && turn.reply.status < 300 && "Id" in turn.body,
      spoiling((_customer, { body }) => ({ id: String(body["Id"]) })),
    ),
  },
];
