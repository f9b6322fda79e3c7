/** ATM and its neighbours: what others see of a write while it happens (2.4.1, 3, 4.2). */
import { customerOf, type Fault, isRead, membersOf, type Plant } from "../../fault.ts";
import { headerLines, type Reply, type Request, setHeader } from "../../service/http-socket.ts";
import { type Change, isWrite } from "../../service/seams.ts";
import { Service } from "../../service/service.ts";
import { by, byHead, isThere, object, on, spoiling, write } from "../../turn.ts";
import { gap, refusedLate } from "../../two-steps.ts";

/** Reads the tag, and the fields a moment later. */
const torn =
  (when: (caller: ReturnType<Service["caller"]>) => boolean): Plant =>
  (ran) =>
  (service) => ({
    async around(request, next) {
      const before = customerOf(request, service)?.tag;
      if (request.method !== "GET" || before === undefined || !when(service.caller(request)))
        return await next(request);
      await gap(2);
      const reply = await next(request);
      if (reply.status !== 200 || customerOf(request, service)?.tag === before) return reply;
      ran();
      return setHeader(reply, "ETag", before);
    },
  });

const READS_IN_QUEUE = 2;

const ofStatus = ({ method, query }: Request): boolean => method === "GET" && query === "fields=status";

/** Answers some reads for a second as it answered the first of them. */
const copied =
  (when: (request: Request, service: Service) => boolean): Plant =>
  (ran) =>
  (service) => {
    const kept = new Map<string, { readonly reply: Reply; readonly until: number }>();
    return {
      async around(request, next) {
        const reply = await next(request);
        if (!isRead(request) || !when(request, service) || reply.status !== 200) return reply;
        const key = [service.caller(request), request.method, request.path, request.query].join(" ");
        const copy = kept.get(key);
        if (copy === undefined || copy.until < performance.now()) {
          kept.set(key, { reply, until: performance.now() + 1000 });
          return reply;
        }
        if (!Bun.deepEquals(copy.reply, reply)) ran();
        return copy.reply;
      },
    };
  };

export const VISIBILITY_FAULTS: Fault[] = [
  {
    id: "refused-delete-hides-projections",
    rule: "IFM-42",
    does: "takes a customer out of the index of its projections before it checks a DELETE, and puts it back with the next read",
    plant: (ran) => (service) => {
      const out = new Set<string>();
      return {
        async around(request, next) {
          const customer = customerOf(request, service);
          if (customer !== undefined && isRead(request) && request.query !== "" && out.delete(customer.id)) {
            ran();
            return service.refuse(404, "not_found");
          }
          const reply = await next(request);
          if (customer !== undefined && request.method === "DELETE" && reply.status === 428)
            out.add(customer.id);
          return reply;
        },
      };
    },
  },
  {
    id: "deleted-customer-answers-head",
    rule: "ORD-05",
    does: "answers HEAD from the table of versions, in which a deleted customer keeps its row",
    plant: on(byHead, ({ customer }) => customer?.removed === true).answers(({ customer }) => ({
      status: 200,
      headers: [["ETag", customer?.tag ?? ""]],
      body: "",
    })),
  },
  {
    id: "deleted-customer-has-a-status",
    rule: "ORD-05",
    does: "reads the status alone from a service of its own, to which a DELETE says nothing",
    plant: on(({ request, before }) => ofStatus(request) && before?.removed === true).answers(
      ({ customer }) => object({ Status: customer?.status }, customer?.tag),
    ),
  },
  {
    id: "status-read-from-a-cache",
    rule: "ENV-04",
    does: "keeps each read of the status alone for a second",
    plant: copied(ofStatus),
  },
  {
    id: "deleted-customer-read-for-a-moment",
    rule: "ENV-04",
    alsoRun: ["IFM-40"],
    does: "hands a DELETE to a queue, and shows the customer until it is worked off",
    plant: (ran) => (service) => {
      const reads = new Map<string, number>();
      return {
        async around(request, next) {
          const customer = customerOf(request, service);
          const left = (customer && reads.get(customer.id)) ?? 0;
          if (customer !== undefined && left > 0 && isRead(request) && service.caller(request) === "main") {
            ran();
            reads.set(customer.id, left - 1);
            const { id, name, email } = service.deployment.members;
            const body = { [id]: customer.id, [name]: customer.name, [email]: customer.email };
            return object(body, customer.formerTags.at(-1) ?? customer.tag);
          }
          const reply = await next(request);
          if (customer !== undefined && request.method === "DELETE" && reply.status < 300)
            reads.set(customer.id, READS_IN_QUEUE);
          return reply;
        },
      };
    },
  },
  {
    id: "write-behind",
    rule: "IFM-01",
    does: "answers before the new values are stored; the first read that follows sees the old ones",
    plant: (ran) => (service) => {
      const late = new Map<string, { before: Change; now: Change }>();
      return {
        store(customer, change) {
          late.set(customer.id, { before: { name: customer.name, email: customer.email }, now: change });
          Object.assign(customer, change);
        },
        async around(request, next) {
          const customer = customerOf(request, service);
          const step = late.get(customer?.id ?? "");
          if (request.method !== "GET" || customer === undefined || step === undefined)
            return await next(request);
          late.delete(customer.id);
          ran();
          Object.assign(customer, step.before);
          const reply = await next(request);
          Object.assign(customer, step.now);
          return reply;
        },
      };
    },
  },
  {
    id: "reads-from-a-replica",
    rule: "ENV-04",
    does: "sends reads to a replica that sees each write 1.2 s later",
    plant: (ran) => (service) => {
      const replica = new Service(service.deployment);
      return {
        async around(request, next) {
          const customer = customerOf(request, service);
          const copy = replica.customers.get(customer?.id ?? "");
          if (isRead(request) && copy !== undefined && copy.tag !== customer?.tag) {
            ran();
            return await replica.handle(request);
          }
          if (customer !== undefined && copy === undefined)
            replica.customers.set(customer.id, { ...customer });
          const reply = await next(request);
          if (customer !== undefined && !isRead(request)) {
            const now = { ...customer };
            setTimeout(() => replica.customers.set(now.id, now), 1200).unref();
          }
          return reply;
        },
      };
    },
  },
  {
    id: "other-tenant-reads-a-replica",
    rule: "ENV-04",
    does: "sends reads of tenants that were moved to another region to a replica, which sees each write a second later",
    plant: copied((request, service) => service.caller(request) === "other"),
  },
  {
    id: "patch-of-status-leaves-cached-reads",
    rule: "ETG-18",
    does: "keeps reads in a cache, which a PATCH of the status alone does not empty",
    plant: (ran) => (service) => {
      const kept = new Map<string, { reply: Reply; tag: string | undefined }>();
      return {
        async around(request, next) {
          const key = [service.caller(request), request.method, request.path, request.query].join(" ");
          const tag = customerOf(request, service)?.tag;
          const hit = kept.get(key);
          if (isRead(request) && hit !== undefined) {
            if (hit.tag !== tag) ran();
            return hit.reply;
          }
          const reply = await next(request);
          if (isRead(request)) kept.set(key, { reply, tag });
          else if (Object.keys(await membersOf(request)).join() !== "Status") kept.clear();
          return reply;
        },
      };
    },
  },
  {
    id: "session-keeps-its-tag",
    rule: "AUT-14",
    does: "keeps the tag of each caller's last write in its session, and compares with that too",
    plant: (ran) => (service) => {
      const told = new Map<string, string>();
      const key = (request: Request, id: string) => `${service.caller(request)} ${id}`;
      return {
        isCurrent(sent, customer, request) {
          if (sent === customer.tag) return true;
          if (sent !== told.get(key(request, customer.id))) return false;
          ran();
          return true;
        },
        async around(request, next) {
          const reply = await next(request);
          const customer = customerOf(request, service);
          if (customer !== undefined && isWrite(request) && reply.status < 300)
            told.set(key(request, customer.id), customer.tag);
          return reply;
        },
      };
    },
  },
  {
    id: "limited-patch-wipes-what-it-cannot-see",
    rule: "AUT-14",
    does: "saves the whole row from what the limited caller is shown: a PATCH of the name empties the email",
    plant: on(write("PATCH"), by("limited"), isThere).answers(spoiling(() => ({ email: "" }))),
  },
  {
    id: "limited-caller-reads-a-copy",
    rule: "AUT-14",
    does: "keeps what the limited caller has read until that caller writes",
    plant: (ran) => (service) => {
      const kept = new Map<string, Reply>();
      return {
        async around(request, next) {
          const id = customerOf(request, service)?.id ?? "";
          const key = `${id} ${request.query}`;
          if (service.caller(request) !== "limited" || id === "") return await next(request);
          if (!isRead(request)) {
            for (const each of kept.keys()) if (each.startsWith(id)) kept.delete(each);
            return await next(request);
          }
          const reply = await next(request);
          const old = kept.get(key);
          if (reply.status !== 200) return reply;
          kept.set(key, old ?? reply);
          if (old === undefined || Bun.deepEquals(old, reply)) return reply;
          ran();
          return old;
        },
      };
    },
  },
  {
    id: "proxy-repeats-writes",
    rule: "IFM-01",
    does: "stands behind a proxy that sends each PUT twice and passes on the second answer",
    plant: (ran) => () => ({
      async around(request, next) {
        const first = await next(request);
        if (request.method !== "PUT" || first.status >= 300) return first;
        ran();
        return await next(request);
      },
    }),
  },
  {
    id: "reads-are-torn",
    rule: "ATM-06",
    does: "reads the tag, then the fields, in two queries",
    plant: torn(() => true),
  },
  {
    id: "limited-reads-are-torn",
    rule: "ATM-06",
    does: "joins what a role may read to the tag in a second query",
    plant: torn((caller) => caller === "limited"),
  },
  {
    id: "writes-in-two-steps",
    rule: "ATM-06",
    does: "bumps the version first and stores the fields in a second statement",
    plant: (ran) => () => ({
      async commit({ bodyRead, decide, apply }) {
        await bodyRead();
        return decide() ?? apply();
      },
      store(customer, change) {
        ran();
        setTimeout(() => Object.assign(customer, change), 3);
      },
      async around(request, next) {
        const reply = await next(request);
        if (/PUT|PATCH/.test(request.method) && reply.status < 300) await Bun.sleep(6);
        return reply;
      },
    }),
  },
  {
    id: "deletes-all-succeed",
    rule: "ATM-07",
    does: "answers DELETE with 204 also when somebody else has just deleted",
    plant: refusedLate(404, () => ({ status: 204, headers: [] }), /DELETE/),
  },
  {
    id: "losers-get-their-own-tag",
    rule: "ATM-02",
    does: "answers the losers of a race with the tag that they sent",
    plant: refusedLate(412, (refusal, { request }) =>
      setHeader(refusal, "ETag", headerLines(request, "if-match")[0]?.trim()),
    ),
  },
];
