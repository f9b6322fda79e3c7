/** ATM: check and update as two steps (4.2, last rule). Each opens a gap that only other writers can show. */
import { customerOf, deciding, type Fault, isRead, membersOf, type Plant } from "../fault.ts";
import { headerLines, type Reply, type Request } from "../service/http-socket.ts";
import { etag } from "../service/reading.ts";
import { type Attempt, type Customer, turn } from "../service/seams.ts";
import type { Service } from "../service/service.ts";

/** Awaits between check and update, as any ORM's find-then-save does. */
export async function gap(turns: number): Promise<void> {
  for (let n = 0; n < turns; n += 1) await turn();
  await Bun.sleep(2);
}

type Late = (refusal: Reply, attempt: Attempt, service: Service) => Reply | undefined;

/**
 * Checks when a write comes and, a moment later, when it is to be applied. What only the second check refuses has lost a
 * race, and is answered as `late` says; undefined passes the refusal on.
 */
const checkedTwice = (late: Late, methods = /./): Plant =>
  deciding("commit", (sound, ran, service) => async (attempt) => {
    if (!methods.test(attempt.request.method)) return await sound(attempt);
    await attempt.bodyRead();
    const early = attempt.decide();
    if (early !== undefined) return early;
    await gap(2);
    const refusal = attempt.decide();
    if (refusal === undefined) return attempt.apply();
    const answer = late(refusal, attempt, service);
    if (answer !== undefined) ran();
    return answer ?? refusal;
  });

/** @param status of the refusals that are spoiled; others are passed on */
export const refusedLate = (status: number, answer: Late, methods?: RegExp): Plant =>
  checkedTwice(
    (refusal, ...rest) => (refusal.status === status ? answer(refusal, ...rest) : undefined),
    methods,
  );

/** Compares, lets others pass, and writes whatever has become of the customer. */
const findThenSave = (
  methods?: RegExp,
  when: (request: Request, service: Service) => boolean = () => true,
): Plant =>
  checkedTwice(
    (_refusal, attempt, service) => (when(attempt.request, service) ? attempt.apply() : undefined),
    methods,
  );

/** Compares and saves under a lock, which is another for each key. */
const lockPer =
  (key: (request: Request, service: Service) => string): Plant =>
  (ran) =>
  (service) => {
    const tails = new Map<string, Promise<unknown>>();
    return {
      async commit(attempt) {
        await attempt.bodyRead();
        const lock = key(attempt.request, service);
        const before = tails.get(lock) ?? Promise.resolve();
        const mine = before.then(async () => {
          const refusal = attempt.decide();
          if (refusal !== undefined) return refusal;
          await gap(2);
          if (attempt.decide() !== undefined) ran();
          return attempt.apply();
        });
        tails.set(
          lock,
          mine.catch(() => undefined),
        );
        return await mine;
      },
    };
  };

/** Saves over a customer that was deleted meanwhile. */
const resurrecting = (methods: RegExp): Plant =>
  refusedLate(404, (_refusal, attempt) => attempt.apply(), methods);

/** Takes two writes at once, whichever customers they are for. */
const poolOfTwo: Plant = (ran) => () => {
  let busy = 0;
  return {
    async commit(attempt) {
      await attempt.bodyRead();
      if (busy >= 2) {
        ran();
        return { status: 503, headers: [], body: "no connection available" };
      }
      busy += 1;
      try {
        await gap(2);
        return attempt.decide() ?? attempt.apply();
      } finally {
        busy -= 1;
      }
    },
  };
};

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

/** Compares, lets others pass, and writes whatever has become of the customer, where its body is such a one. */
const unlocked = (
  methods: RegExp,
  when: (sent: unknown[], customer: Customer, members: object) => boolean,
): Plant =>
  deciding("commit", (sound, ran, service) => async (attempt) => {
    await attempt.bodyRead();
    const customer = customerOf(attempt.request, service);
    const members = await membersOf(attempt.request);
    const sent = Object.values(members);
    if (!methods.test(attempt.request.method) || customer === undefined || !when(sent, customer, members))
      return await sound(attempt);
    const refusal = attempt.decide();
    if (refusal !== undefined) return refusal;
    await gap(2);
    if (attempt.decide() !== undefined) ran();
    return attempt.apply();
  });

/** Gives the answer to a request to all that are like it and come while it is under way. */
const joined =
  (like: (request: Request) => Promise<string | undefined> | string | undefined): Plant =>
  (ran) =>
  () => {
    const under = new Map<string, Promise<Reply>>();
    return {
      async around(request, next) {
        const key = await like(request);
        if (key === undefined) return await next(request);
        const other = under.get(key);
        if (other !== undefined) {
          ran();
          return await other;
        }
        const mine = gap(2).then(() => next(request));
        under.set(key, mine);
        try {
          return await mine;
        } finally {
          under.delete(key);
        }
      },
    };
  };

/** Reads the customers of a moment in one statement, and hands its rows out in the order in which they came. */
const batchedInAnyOrder: Plant = (ran) => () => {
  let batch: string[] = [];
  return {
    async around(request, next) {
      if (!isRead(request)) return await next(request);
      const mine = batch;
      const at = mine.push(request.path) - 1;
      await gap(1);
      if (batch === mine) batch = [];
      const path = mine.toSorted()[at] ?? request.path;
      if (path !== request.path) ran();
      return await next({ ...request, path });
    },
  };
};

export const ATOMICITY_FAULTS: Fault[] = [
  {
    id: "equal-values-saved-without-the-check",
    mode: "full",
    rule: "ATM-01",
    does: "compares the version where it finds changed columns, and finds none in a PUT of the stored values",
    plant: unlocked(/PUT/, (sent, { name, email }) => Bun.deepEquals(sent, [name, email])),
  },
  {
    id: "equal-writes-joined",
    mode: "full",
    rule: "ATM-01",
    does: "takes a PUT that comes while its like is under way for the same one sent again, and gives both its answer",
    plant: joined(async (request) =>
      request.method === "PUT"
        ? `${request.path} ${await request.body()} ${headerLines(request, "if-match")}`
        : undefined,
    ),
  },
  {
    id: "reads-joined-by-customer",
    rule: "AUT-18",
    does: "reads a customer once for all who ask for it meanwhile, whatever fields they asked for",
    plant: joined((request) =>
      isRead(request) ? `${request.path} ${headerLines(request, "authorization")}` : undefined,
    ),
  },
  {
    id: "reads-joined-by-address",
    rule: "AUT-18",
    does: "asks once for all who read one address meanwhile, whoever they are",
    plant: joined((request) => (isRead(request) ? request.target : undefined)),
  },
  {
    id: "batch-in-any-order",
    rule: "AUT-18",
    does: "reads the customers of a moment in one statement, and takes the order of its rows for that of the requests",
    plant: batchedInAnyOrder,
  },
  {
    id: "request-kept-in-a-variable",
    rule: "AUT-18",
    does: "keeps the read that it answers in a variable of the module while it waits for the database",
    plant: (ran) => () => {
      let current: Request | undefined;
      return {
        async around(request, next) {
          if (!isRead(request)) return await next(request);
          current = request;
          await gap(1);
          if (current !== request) ran();
          return await next(current);
        },
      };
    },
  },
  {
    id: "put-finds-then-saves",
    rule: "ATM-01",
    does: "reads the row, compares, and saves it a moment later",
    plant: findThenSave(/PUT/),
  },
  {
    id: "patch-finds-then-saves",
    rule: "ATM-03",
    does: "merges a PATCH in memory and saves it a moment later",
    plant: findThenSave(/PATCH/),
  },
  {
    id: "delete-finds-then-deletes",
    rule: "ATM-04",
    does: "compares, then deletes whatever version is there",
    plant: findThenSave(/DELETE/),
  },
  {
    id: "all-find-then-save",
    rule: "ATM-01",
    does: "separates check and update on every method",
    plant: findThenSave(),
  },
  {
    id: "checks-before-body",
    rule: "ATM-05",
    does: "compares when the head of a request is here and applies when its body is",
    plant: deciding("commit", (_sound, ran) => async (attempt) => {
      const early = attempt.decide();
      await attempt.bodyRead();
      if (early !== undefined) return early;
      const late = attempt.decide();
      if (late !== undefined && late.status !== 412) return late;
      if (late !== undefined) ran();
      return attempt.apply();
    }),
  },
  {
    id: "two-winners-one-tag",
    rule: "ATM-01",
    does: "computes the next version from the one it read, so that two winners share a tag",
    plant: (ran) => (service) => {
      let read = 0;
      return {
        async commit(attempt) {
          await attempt.bodyRead();
          const refusal = attempt.decide();
          if (refusal !== undefined) return refusal;
          const version = customerOf(attempt.request, service)?.formerTags.length ?? 0;
          await gap(2);
          if (attempt.decide() !== undefined) ran();
          read = version + 1;
          return attempt.apply();
        },
        mint: (_version, before, after) => `"${after.id.slice(0, 8)}.${before === undefined ? 0 : read}"`,
      };
    },
  },
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
    id: "locked-while-a-body-comes",
    rule: "ATM-05",
    does: "locks a customer from the head of a PUT to the end of its body",
    plant: (ran) => (service) => {
      const open = new Map<string, number>();
      return {
        async commit(attempt) {
          const { path } = attempt.request;
          open.set(path, (open.get(path) ?? 0) + 1);
          await attempt.bodyRead();
          open.set(path, (open.get(path) ?? 1) - 1);
          // Those of a race have their bodies a moment later; a slow one has not.
          if ((open.get(path) ?? 0) > 0) await Bun.sleep(30);
          if ((open.get(path) ?? 0) === 0) return attempt.decide() ?? attempt.apply();
          ran();
          return service.refuse(423, "locked");
        },
      };
    },
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
    id: "pool-of-two-connections",
    rule: "ATM-01",
    does: "has two connections to its database and answers 503 where a third is needed",
    plant: poolOfTwo,
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
    id: "lock-per-method",
    rule: "ATM-04",
    does: "serializes PUT with PUT and PATCH with PATCH, but not one with the other",
    plant: lockPer(({ method }) => method),
  },
  {
    id: "lock-per-caller",
    rule: "ATM-01",
    mode: "full",
    does: "serializes the writes of a session, but not those of two callers",
    plant: lockPer((request, service) => String(service.caller(request))),
  },
  {
    id: "lock-per-address",
    rule: "ATM-01",
    mode: "full",
    does: "locks by the address as it is spelled: an id in capitals is another lock",
    plant: lockPer(({ path }) => path),
  },
  {
    id: "long-bodies-found-then-saved",
    rule: "ATM-01",
    mode: "full",
    does: "reads a body above a kilobyte after it compared, and saves whatever has become of the customer",
    plant: findThenSave(/PUT/, (request) => Number(headerLines(request, "content-length")[0]) > 1000),
  },
  {
    id: "limited-finds-then-saves",
    rule: "ATM-01",
    mode: "full",
    does: "has a second endpoint for another role, without a transaction",
    plant: findThenSave(/PUT/, (request, service) => service.caller(request) === "limited"),
  },
  {
    id: "new-tenant-finds-then-saves",
    mode: "full",
    rule: "ATM-01",
    does: "has moved one tenant to a database of its own, whose driver opens no transaction",
    plant: findThenSave(/PUT/, (request, service) => service.caller(request) === "other"),
  },
  {
    id: "limited-patch-finds-then-saves",
    rule: "ATM-03",
    mode: "full",
    does: "has a second PATCH for another role, without a transaction",
    plant: findThenSave(/PATCH/, (request, service) => service.caller(request) === "limited"),
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
    id: "chunked-bodies-found-then-saved",
    rule: "ATM-01",
    mode: "full",
    does: "streams a body in chunks into the row after it compared",
    plant: findThenSave(/PUT/, (request) => headerLines(request, "transfer-encoding").length > 0),
  },
  {
    id: "limited-checked-before-body",
    rule: "ATM-05",
    mode: "full",
    does: "compares the version of a limited caller's write in the filter of its role, before the body comes",
    plant: deciding("commit", (sound, ran, service) => async (attempt) => {
      if (service.caller(attempt.request) !== "limited") return await sound(attempt);
      const early = attempt.decide();
      await attempt.bodyRead();
      if (early !== undefined) return early;
      if (attempt.decide()?.status === 412) ran();
      return attempt.apply();
    }),
  },
  {
    id: "delete-checked-before-body",
    rule: "ATM-05",
    mode: "full",
    does: "compares the version of a DELETE in a filter, and deletes by id once the body that a client sends has come",
    plant: deciding("commit", (sound, ran) => async (attempt) => {
      if (attempt.request.method !== "DELETE") return await sound(attempt);
      const early = attempt.decide();
      await attempt.bodyRead();
      if (early !== undefined) return early;
      if (attempt.decide()?.status === 412) ran();
      return attempt.apply();
    }),
  },
  {
    id: "unchanged-email-finds-then-saves",
    rule: "ATM-01",
    mode: "full",
    does: "checks under the unique index of the email, and saves a PUT that keeps the email without it",
    plant: unlocked(/PUT/, (sent, customer) => sent.some((value) => value === customer.email)),
  },
  {
    id: "accents-find-then-save",
    rule: "ATM-01",
    mode: "full",
    does: "sends names beyond ASCII through another driver call, which has no transaction",
    plant: unlocked(/PUT/, (sent) => sent.some((value) => /[^ -~]/.test(String(value)))),
  },
  {
    id: "patch-of-two-fields-finds-then-saves",
    rule: "ATM-03",
    mode: "full",
    does: "updates one field with one guarded statement, and several by reading and saving the row",
    plant: unlocked(/PATCH/, (sent) => sent.length > 1),
  },
  {
    id: "patch-of-status-finds-then-saves",
    rule: "ATM-03",
    mode: "full",
    does: "moves the status on in code of its own, which reads the row and saves it",
    plant: unlocked(/PATCH/, (_sent, _customer, members) => Object.keys(members).join() === "Status"),
  },
  {
    id: "delete-resurrected-by-put",
    rule: "ATM-04",
    does: "saves a PUT over a customer that was deleted meanwhile",
    plant: resurrecting(/PUT|PATCH/),
  },
];
