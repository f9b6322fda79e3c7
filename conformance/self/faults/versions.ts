/** ETG: when the token changes, and which one a write answers (2.4.6, 3, 4.2). */
import { createHash } from "node:crypto";
import { customerOf, deciding, type Fault, isRead, replying } from "../fault.ts";
import { getHeader, setHeader } from "../service/http-socket.ts";
import { isWrite } from "../service/seams.ts";

const digest = (text: string, algorithm = "sha1") => createHash(algorithm).update(text).digest("hex");
const etagOf = (reply: Parameters<typeof getHeader>[0]) => getHeader(reply, "etag") ?? "";
const wrote = (method: string) => (reply: { status: number }, request: { method: string }) =>
  request.method === method && reply.status < 300;

export const VERSION_FAULTS: Fault[] = [
  {
    id: "etag-ignores-identical-put",
    rule: "ETG-09",
    does: "keeps the tag when a PUT writes the values that are there",
    plant: deciding("mint", (sound, ran) => (version, before, after) => {
      if (before === undefined || before.name !== after.name || before.email !== after.email)
        return sound(version, before, after);
      if (before.status !== after.status || before.removed !== after.removed)
        return sound(version, before, after);
      ran();
      return before.tag;
    }),
  },
  {
    id: "etag-of-content",
    rule: "ETG-10",
    does: "hashes name and email, so that old values bring the old tag back",
    plant: deciding("mint", (_sound, ran) => (_version, before, after) => {
      const tag = `"${digest(`${after.id} ${after.name} ${after.email} ${after.status} ${after.removed}`)}"`;
      if (before !== undefined && (before.tag === tag || before.formerTags.includes(tag))) ran();
      return tag;
    }),
  },
  {
    id: "etag-wraps-around",
    rule: "ETG-15",
    does: "counts versions modulo 4, so that the tag of four writes ago is current again",
    plant: deciding("mint", (_sound, ran) => (_version, before, after) => {
      const writes = (before?.formerTags.length ?? -1) + 1;
      if (writes >= 4) ran();
      return `"${after.id.slice(0, 8)}-${writes % 4}"`;
    }),
  },
  {
    id: "etag-of-hours",
    rule: "ETG-08",
    does: "makes the tag from updated_at in whole hours: any clock is too coarse for two writes within one of its ticks",
    plant: deciding("mint", (_sound, ran) => (_version, before) => {
      const tag = `"${Math.floor(Date.now() / 3_600_000)}"`;
      if (before?.tag === tag) ran();
      return tag;
    }),
  },
  {
    id: "etag-constant",
    rule: "ETG-08",
    does: "sends one tag for ever",
    plant: deciding("mint", (_sound, ran) => (_version, before) => {
      if (before !== undefined) ran();
      return '"1"';
    }),
  },
  {
    id: "patch-keeps-etag",
    rule: "ETG-11",
    does: "does not bump the version on PATCH",
    plant: (ran) => (service) => {
      let method = "";
      return {
        async commit({ request, bodyRead, decide, apply }) {
          await bodyRead();
          const refusal = decide();
          method = request.method;
          return refusal ?? apply();
        },
        mint(version, before, after) {
          if (method !== "PATCH" || before === undefined) return service.deployment.tag(version, after.id);
          ran();
          return before.tag;
        },
      };
    },
  },
  {
    id: "etag-changed-by-reads",
    rule: "ETG-04",
    does: "bumps the tag on every read, through a last-read column",
    plant: (ran) => (service) => ({
      shownTag(customer, _fields, _caller, request) {
        if (request.method !== "GET") return customer.tag;
        ran();
        customer.formerTags.push(customer.tag);
        customer.tag = service.deployment.tag(service.nextVersion(), customer.id);
        return customer.tag;
      },
    }),
  },
  {
    id: "refused-write-changes-etag",
    rule: "IFM-03",
    does: "bumps the version on a refused write: the trigger runs before the check",
    plant: replying(
      (reply, request, service) => isWrite(request) && reply.status === 412 && service.customers.size > 0,
      (reply, request, service) => {
        const customer = service.customers.get(request.path.slice(-36).toLowerCase());
        if (customer !== undefined) customer.tag = service.deployment.tag(service.nextVersion(), customer.id);
        return reply;
      },
    ),
  },
  ...(["PUT", "PATCH"] as const).flatMap((method): Fault[] => [
    {
      id: `${method.toLowerCase()}-answers-without-etag`,
      rule: method === "PUT" ? "ETG-07" : "ETG-11",
      does: `answers an accepted ${method} without ETag`,
      plant: replying(wrote(method), (reply) => setHeader(reply, "ETag", undefined)),
    },
    {
      id: `${method.toLowerCase()}-answers-old-etag`,
      rule: method === "PUT" ? "ETG-07" : "ETG-11",
      does: `answers an accepted ${method} with the tag of before it`,
      plant: replying(wrote(method), (reply, request, service) => {
        const customer = service.customers.get(request.path.slice(-36).toLowerCase());
        return setHeader(reply, "ETag", customer?.formerTags.at(-1));
      }),
    },
  ]),
  {
    id: "put-answers-other-etag",
    rule: "ETG-07",
    does: "answers a PUT with the tag as it was before a trigger changed it again",
    plant: (ran) => (service) => ({
      async around(request, next) {
        const reply = await next(request);
        const customer = service.customers.get(request.path.slice(-36).toLowerCase());
        if (request.method !== "PUT" || reply.status >= 300 || customer === undefined) return reply;
        ran();
        customer.formerTags.push(customer.tag);
        customer.tag = service.deployment.tag(service.nextVersion(), customer.id);
        return reply;
      },
    }),
  },
  {
    id: "put-answers-weak-etag",
    rule: "ETG-07",
    does: "answers a PUT with a weak form of the tag",
    plant: replying(wrote("PUT"), (reply) => setHeader(reply, "ETag", `W/${etagOf(reply)}`)),
  },
  {
    id: "etag-ignores-identical-patch",
    rule: "ETG-12",
    does: "keeps the tag when a PATCH writes the value that is there",
    plant: (ran) => (service) => {
      const before = new Map<string, string>();
      return {
        store(customer, change, request) {
          const same = Object.entries(change).every(([field, value]) => customer[field as "name"] === value);
          if (request.method === "PATCH" && same) before.set(customer.id, customer.tag);
          Object.assign(customer, change);
        },
        mint(version, _before, after) {
          const kept = before.get(after.id);
          before.delete(after.id);
          if (kept === undefined) return service.deployment.tag(version, after.id);
          ran();
          return kept;
        },
      };
    },
  },
  {
    id: "flushed-writes-share-a-tag",
    rule: "ETG-15",
    does: "bumps the version when it flushes, and flushes before a read: writes in a row share one",
    plant: (ran) => (service) => {
      const unflushed = new Set<string>();
      return {
        around(request, next) {
          const read = isRead(request) ? customerOf(request, service) : undefined;
          if (read !== undefined) unflushed.delete(read.id);
          return next(request);
        },
        mint(version, before, after) {
          if (before !== undefined && !after.removed && unflushed.has(after.id)) {
            ran();
            return before.tag;
          }
          if (before !== undefined) unflushed.add(after.id);
          return service.deployment.tag(version, after.id);
        },
      };
    },
  },
  {
    id: "refusal-leaves-a-dirty-session",
    rule: "IFM-04",
    does: "leaves its session dirty after a 412: the next PUT of the customer gets a new tag and stores nothing",
    plant: (ran) => (service) => {
      const dirty = new Set<string>();
      return {
        async around(request, next) {
          const customer = customerOf(request, service);
          if (request.method !== "PUT" || customer === undefined) return await next(request);
          const { name, email } = customer;
          const reply = await next(request);
          if (reply.status === 412) dirty.add(customer.id);
          if (reply.status < 300 && dirty.delete(customer.id)) {
            ran();
            Object.assign(customer, { name, email });
          }
          return reply;
        },
      };
    },
  },
  {
    id: "some-writes-keep-tag",
    comesAndGoes: true,
    rule: "ETG-08",
    does: "takes versions from a pool that hands one out twice every seventh time",
    plant: deciding("mint", (sound, ran) => {
      let writes = 0;
      return (version, before, after) => {
        if (before === undefined) return sound(version, before, after);
        writes += 1;
        if (writes % 7 !== 0) return sound(version, before, after);
        ran();
        return before.tag;
      };
    }),
  },
];
