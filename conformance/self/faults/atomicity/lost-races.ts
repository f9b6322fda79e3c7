/** ATM: what becomes of a write that meets another one and loses (4.2, last rule). */

import { customerOf, type Fault, type Plant } from "../../fault.ts";
import { headerLines, type Reply } from "../../service/http-socket.ts";
import { etag } from "../../service/reading.ts";
import type { Attempt } from "../../service/seams.ts";
import type { Service } from "../../service/service.ts";
import { checkedTwice, gap, refusedLate } from "../../two-steps.ts";

/** Saves over a customer that was deleted meanwhile. */
const resurrecting = (methods: RegExp): Plant =>
  refusedLate(404, (_refusal, attempt) => attempt.apply(), methods);

/** Lets writes of one customer meet. @param met what is answered while others are under way; undefined: what is sound */
const amongOthers =
  (met: (refusal: Reply | undefined, attempt: Attempt, service: Service) => Reply | undefined): Plant =>
  (ran) =>
  (service) => {
    const busy = new Map<string, number>();
    return {
      async commit(attempt) {
        const { path } = attempt.request;
        busy.set(path, (busy.get(path) ?? 0) + 1);
        try {
          await attempt.bodyRead();
          await gap(2);
          const refusal = attempt.decide();
          const answer = (busy.get(path) ?? 0) > 1 ? met(refusal, attempt, service) : undefined;
          if (answer !== undefined) ran();
          return answer ?? refusal ?? attempt.apply();
        } finally {
          busy.set(path, (busy.get(path) ?? 1) - 1);
        }
      },
    };
  };

export const LOST_RACE_FAULTS: Fault[] = [
  {
    id: "loser-applied",
    rule: "ATM-01",
    does: "answers the losers of a race with 412 but lets their values through",
    plant: amongOthers((refusal, attempt) => {
      if (refusal?.status === 412) attempt.apply();
      return refusal?.status === 412 ? refusal : undefined;
    }),
  },
  {
    id: "losers-answered-500",
    rule: "ATM-02",
    does: "lets the serialization failure of a lost race out as 500",
    plant: amongOthers((refusal) =>
      refusal?.status === 412 ? { status: 500, headers: [], body: "could not serialize access" } : undefined,
    ),
  },
  {
    id: "race-losers-answered-503",
    rule: "ATM-02",
    does: "gives up on a row that another write holds, and answers 503",
    plant: refusedLate(412, () => ({ status: 503, headers: [] })),
  },
  {
    id: "deletes-that-meet-answered-500",
    rule: "ATM-04",
    does: "lets the deadlock of a DELETE with other writes out as 500",
    plant: amongOthers((_refusal, { request }) =>
      request.method === "DELETE" ? { status: 500, headers: [], body: "deadlock detected" } : undefined,
    ),
  },
  {
    id: "writes-that-meet-all-refused",
    rule: "ATM-02",
    does: "aborts writes while others are under way, with the tag that they sent",
    plant: amongOthers((refusal, { request }, service) => {
      if (refusal !== undefined || request.method !== "PUT") return undefined;
      const tag = etag(service.deployment, customerOf(request, service)?.tag);
      return service.refuse(412, "precondition-failed", tag);
    }),
  },
  {
    id: "losers-dropped",
    rule: "ATM-02",
    does: "ends the connection of the victim of a deadlock without an answer",
    plant: refusedLate(412, () => ({ status: 0, headers: [], raw: Buffer.alloc(0), hangUp: true })),
  },
  {
    id: "patch-resurrects-deleted",
    rule: "ATM-04",
    does: "merges a PATCH into a customer that was deleted meanwhile, and saves it",
    plant: resurrecting(/PATCH/),
  },
  {
    id: "losers-answered-409",
    rule: "ATM-02",
    does: "answers those who lose in the database, not in the check, with 409",
    plant: refusedLate(412, (refusal) => ({ ...refusal, status: 409 })),
  },
  {
    id: "losers-answered-404",
    rule: "ATM-02",
    does: "takes an UPDATE that changed no row for a customer that is not there",
    plant: refusedLate(412, (refusal) => ({ ...refusal, status: 404 })),
  },
  {
    id: "deletes-that-lose-answered-409",
    rule: "ATM-07",
    does: "answers a DELETE whose row another DELETE took with 409",
    plant: refusedLate(404, (refusal) => ({ ...refusal, status: 409 }), /DELETE/),
  },
  {
    id: "deletes-that-lose-told-no-tag",
    rule: "ATM-04",
    does: "answers a DELETE that loses in the database with 412 and no ETag",
    plant: refusedLate(
      412,
      (refusal) => ({ ...refusal, headers: refusal.headers.filter(([name]) => name !== "ETag") }),
      /DELETE/,
    ),
  },
  {
    id: "cache-keeps-what-lost-to-a-delete",
    rule: "ATM-04",
    does: "fills its cache before the database decides, so that an update that lost to a DELETE is read back",
    plant: refusedLate(
      404,
      (refusal, attempt, service) => {
        attempt.apply();
        Object.assign(customerOf(attempt.request, service) ?? {}, { removed: false });
        return refusal;
      },
      /PUT|PATCH/,
    ),
  },
  {
    id: "rollback-restores-the-version",
    rule: "ATM-01",
    does: "writes the version that it read back when it loses",
    plant: refusedLate(412, (refusal, { request }, service) => {
      const tag = headerLines(request, "if-match")[0]?.trim();
      Object.assign(customerOf(request, service) ?? {}, { tag });
      return refusal;
    }),
  },
  {
    id: "loser-of-race-gets-204",
    rule: "ATM-01",
    does: "ignores that the UPDATE changed no row and answers 204 with the tag of the winner",
    plant: checkedTwice((_refusal, { request }, service) => ({
      status: 204,
      headers: etag(service.deployment, customerOf(request, service)?.tag),
    })),
  },
  {
    id: "limited-delete-finds-then-deletes",
    rule: "ATM-07",
    mode: "full",
    does: "has a second DELETE for another role, without a transaction",
    plant: refusedLate(
      404,
      (refusal, { request }, service) =>
        service.caller(request) === "limited" ? { status: 204, headers: [], body: "" } : refusal,
      /DELETE/,
    ),
  },
  {
    id: "delete-resurrected-by-put",
    rule: "ATM-04",
    does: "saves a PUT over a customer that was deleted meanwhile",
    plant: resurrecting(/PUT|PATCH/),
  },
];
