/** One path alone: what happens when writes meet, and what is counted. */
import { customerOf, type Fault } from "../fault.ts";
import { Crowd, planted } from "../narrow.ts";
import { headerLines, type Reply, type Request } from "../service/http-socket.ts";
import type { Attempt, Counter, Customer } from "../service/seams.ts";
import { soundSeams, turn } from "../service/seams.ts";
import type { Service } from "../service/service.ts";

/** Ends the connection without a word. */
export const DROP: Reply = { status: 0, headers: [], raw: Buffer.alloc(0), hangUp: true };

/** Writes of one customer whose bodies are here at the same time. */
type Meeting = { attempt: Attempt; customer: Customer | undefined; met: () => boolean };

/** Only the customer of the whole run has a past; those of the races with DELETE are new. */
export const old = (customer: Customer | undefined): boolean => (customer?.formerTags.length ?? 0) > 3;

/** Waits until all whose bodies came together are here, then lets `commit` decide, one after the other. */
export function meeting(
  commit: (meeting: Meeting, service: Service) => Reply | Promise<Reply>,
): Fault["plant"] {
  return () => (service) => {
    const here = new Map<string, { contended: boolean }[]>();
    return {
      async commit(attempt) {
        await attempt.bodyRead();
        const { path } = attempt.request;
        const mine = { contended: false };
        const all = here.get(path) ?? [];
        here.set(path, [...all, mine]);
        if (all.length > 0) for (const each of [...all, mine]) each.contended = true;
        await turn();
        await Bun.sleep(2);
        try {
          return await commit(
            { attempt, customer: customerOf(attempt.request, service), met: () => mine.contended },
            service,
          );
        } finally {
          here.set(
            path,
            (here.get(path) ?? []).filter((each) => each !== mine),
          );
        }
      },
    };
  };
}

/** A race of one method over the old customer; the rest is sound. */
function inRace(
  cause: string,
  does: string,
  method: string,
  of: (customer: Customer | undefined) => boolean,
  err: (meeting: Meeting, service: Service, ran: () => void) => Reply | Promise<Reply>,
): Fault {
  return planted(cause, does, (ran) =>
    meeting((met, service) => {
      const { attempt, customer } = met;
      const sound = () => attempt.decide() ?? attempt.apply();
      return attempt.request.method === method && met.met() && of(customer)
        ? err(met, service, ran)
        : sound();
    })(ran),
  );
}

/** Carries a write out behind the service's back: the values of the loser, the tag as it was. */
function slipIn(attempt: Attempt, customer: Customer | undefined): void {
  const kept =
    customer === undefined
      ? undefined
      : { tag: customer.tag, formerTags: [...customer.formerTags], version: customer.version };
  attempt.apply();
  if (customer !== undefined) Object.assign(customer, kept);
}

/** Counts otherwise; `crowded` tells that other requests for the same customer were under way meanwhile. */
export const counting = (
  cause: string,
  does: string,
  wrong: (right: Counter[], status: number, request: Request, crowded: boolean) => Counter[],
): Fault =>
  planted(cause, does, (ran) => (service) => {
    const sound = soundSeams(service.deployment);
    const crowd = new Crowd();
    const crowded = new WeakSet<Request>();
    return {
      async around(request, next) {
        const mine = crowd.enter(request.path);
        const reply = await next(request);
        mine.leave();
        if (mine.contended) crowded.add(request);
        return reply;
      },
      counted(reply, request) {
        const right = sound.counted(reply, request);
        const moved = wrong(right, reply.status, request, crowded.has(request));
        if (moved.join() !== right.join()) ran();
        return moved;
      },
    };
  });

export const never = (right: Counter[], counter: Counter) => right.filter((each) => each !== counter);

/** Leaves one family out of the exposition once: from the first refusal of this method after a scrape to the next accepted write. */
export function hidden(cause: string, counter: Counter, status: number, method: string): Fault {
  return planted(
    cause,
    `shows no counter of ${status} for a while after the first of ${method}`,
    (ran) => () => {
      let phase: "before" | "ready" | "hidden" | "over" = "before";
      return {
        counted(reply, request) {
          if (phase === "ready" && reply.status === status && request.method === method) phase = "hidden";
          if (phase === "hidden" && request.method === "PUT" && reply.status < 300) phase = "over";
          if (reply.status === 428) return ["required"];
          return reply.status === 412 ? ["failed"] : [];
        },
        scrape(text) {
          if (phase === "before") phase = "ready";
          if (phase !== "hidden") return text;
          ran();
          return text
            .split("\n")
            .filter((line) => !line.includes(`http_precondition_${counter}`))
            .join("\n");
        },
      };
    },
  );
}

export const NARROW_RACE_FAULTS: Fault[] = [
  inRace("ATM-01.no-fork", "lets every PUT of a race through", "PUT", old, ({ attempt }, _service, ran) => {
    if (attempt.decide() !== undefined) ran();
    return attempt.apply();
  }),
  inRace("ATM-01.a-winner", "refuses every PUT of a race", "PUT", old, ({ customer }, service, ran) => {
    ran();
    return service.refuse(412, "precondition-failed", [["ETag", customer?.tag ?? ""]]);
  }),
  inRace(
    "ATM-01.winner-stays",
    "refuses the losers of a race and stores their values",
    "PUT",
    old,
    ({ attempt, customer }, _service, ran) => {
      const refusal = attempt.decide();
      if (refusal === undefined) return attempt.apply();
      ran();
      slipIn(attempt, customer);
      return refusal;
    },
  ),
  inRace(
    "ATM-01.final-tag",
    "bumps the version with every refused PUT of a race",
    "PUT",
    old,
    ({ attempt, customer }, service, ran) => {
      const refusal = attempt.decide();
      if (refusal === undefined) return attempt.apply();
      ran();
      if (customer !== undefined) customer.tag = service.deployment.tag(service.nextVersion(), customer.id);
      return refusal;
    },
  ),
  planted(
    "ATM-01.no-lost-write",
    "refuses a PUT of a race, carries it out, and drops the connection of the next",
    (ran) => (service) => {
      let place = 0;
      return meeting(({ attempt, customer, met }) => {
        if (attempt.request.method !== "PUT" || !met() || !old(customer))
          return attempt.decide() ?? attempt.apply();
        const current = attempt.decide() === undefined;
        place = current ? 0 : place + 1;
        if (place === 1) return DROP;
        if (current) {
          ran();
          attempt.apply();
        }
        return service.refuse(412, "precondition-failed", [["ETag", customer?.tag ?? ""]]);
      })(ran)(service);
    },
  ),
  planted("ATM-01.no-tag-twice", "gives the winners of races two tags in turn", (ran) => (service) => {
    let races = 0;
    return meeting(({ attempt, customer, met }) => {
      const refusal = attempt.decide();
      if (refusal !== undefined) return refusal;
      const reply = attempt.apply();
      if (attempt.request.method !== "PUT" || !met() || !old(customer) || customer === undefined)
        return reply;
      races += 1;
      if (races > 2) ran();
      customer.tag = `"race-${races % 2}"`;
      return { ...reply, headers: [["ETag", customer.tag]] };
    })(ran)(service);
  }),
  inRace(
    "ATM-03.only-winner",
    "refuses the losers of a race of PATCHes and stores their field",
    "PATCH",
    old,
    ({ attempt, customer }, _service, ran) => {
      const refusal = attempt.decide();
      if (refusal === undefined) return attempt.apply();
      ran();
      slipIn(attempt, customer);
      return refusal;
    },
  ),
  inRace(
    "ATM-04.put-stays",
    "refuses a DELETE that lost to a PUT and deletes all the same",
    "DELETE",
    (customer) => !old(customer),
    ({ attempt, customer }, _service, ran) => {
      const refusal = attempt.decide();
      if (refusal?.status !== 412) return refusal ?? attempt.apply();
      ran();
      if (customer !== undefined) customer.removed = true;
      return refusal;
    },
  ),
  inRace(
    "ATM-04.delete-stays",
    "refuses a PUT that lost to a DELETE and brings the customer back with its values",
    "PUT",
    (customer) => !old(customer),
    async ({ attempt, customer }, _service, ran) => {
      await Bun.sleep(4); // after the DELETEs of the race
      const refusal = attempt.decide();
      if (refusal?.status !== 404 || customer === undefined) return refusal ?? attempt.apply();
      ran();
      slipIn(attempt, customer);
      customer.removed = false;
      return refusal;
    },
  ),
  planted(
    "ATM-05.not-locked",
    "locks a customer from the head of a PUT to the end of its body",
    (ran) => (service) => {
      const open = new Map<string, number>();
      return {
        async commit(attempt) {
          const { path } = attempt.request;
          open.set(path, (open.get(path) ?? 0) + 1);
          await attempt.bodyRead();
          open.set(path, (open.get(path) ?? 1) - 1);
          // Whoever came together has its body a moment later; a slow one has not.
          if ((open.get(path) ?? 0) > 0) await Bun.sleep(30);
          if ((open.get(path) ?? 0) > 0) {
            ran();
            return service.refuse(423, "locked");
          }
          return attempt.decide() ?? attempt.apply();
        },
      };
    },
  ),
  ...(["refused", "unchanged"] as const).map((assertion) =>
    planted(
      `ATM-05.${assertion}`,
      assertion === "refused"
        ? "answers a PUT whose tag went stale while its body came with 204, and drops it"
        : "refuses a PUT whose tag went stale while its body came, and carries it out",
      (ran) => (service) => ({
        async commit({ request, bodyRead, decide, apply }) {
          const atHead = customerOf(request, service)?.tag;
          await bodyRead();
          const overtaken =
            customerOf(request, service)?.tag !== atHead &&
            headerLines(request, "if-match")[0]?.trim() === atHead;
          await turn();
          const refusal = decide();
          if (refusal === undefined) return apply();
          if (!overtaken || refusal.status !== 412 || request.method !== "PUT") return refusal;
          ran();
          if (assertion === "refused")
            return { status: 204, headers: [["ETag", customerOf(request, service)?.tag ?? ""]] };
          apply();
          return refusal;
        },
      }),
    ),
  ),
];
