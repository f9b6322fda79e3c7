/** ETG: when the token changes, and which one a write answers (2.4.6, 3, 4.2). */
import { customerOf, type Fault, instead, isRead, type Plant } from "../../fault.ts";
import { headerLines, setHeader } from "../../service/http-socket.ts";
import { type Customer, isWrite } from "../../service/seams.ts";
import {
  type Act,
  by,
  every,
  isThere,
  newTag,
  on,
  overwriting,
  spoiling,
  tagged,
  untagged,
  type When,
  weakened,
  write,
} from "../../turn.ts";
import { digest } from "./entity-tag.ts";

/** Keeps the tag of some accepted writes. */
export const keeping = (when: (before: Customer, after: Customer) => boolean): Plant =>
  instead("mint", (sound, _version, before, after) =>
    before !== undefined && when(before, after) ? before.tag : sound,
  );

const writesBefore = (before: Customer | undefined) => (before?.formerTags.length ?? -1) + 1;

/** Refuses the current tag from an answer of some status until a read comes. */
const knownAfterARead =
  (forgets: (status: number) => boolean): Plant =>
  (ran) =>
  (service) => {
    const unread = new Set<string>();
    return {
      async around(request, next) {
        const customer = customerOf(request, service);
        if (customer === undefined) return await next(request);
        const current = headerLines(request, "if-match").join().trim() === customer.tag;
        if (isWrite(request) && current && unread.has(customer.id)) {
          ran();
          return service.refuse(412, "precondition-failed", [["ETag", customer.tag]]);
        }
        const reply = await next(request);
        if (isRead(request)) unread.delete(customer.id);
        else if (forgets(reply.status)) unread.add(customer.id);
        return reply;
      },
    };
  };

/** What is stored is what the write brought. */
const changesNothing: When = ({ before, customer }) =>
  before !== undefined && (["name", "email"] as const).every((field) => before[field] === customer?.[field]);
const tagLine = (customer: Customer | undefined): [string, string][] =>
  customer === undefined ? [] : [["ETag", customer.tag]];
/** The customer is as it was before the write. */
const restoring =
  (answer: Act): Act =>
  (turn) => {
    if (turn.before !== undefined && turn.customer !== undefined) Object.assign(turn.customer, turn.before);
    return answer(turn);
  };

/** The write is stored under the tag of before it. */
const keptTag: Act = spoiling((customer, { before }) => ({ tag: before?.tag ?? customer.tag }));

export const VERSION_FAULTS: Fault[] = [
  {
    id: "etag-ignores-identical-put",
    rule: "ETG-09",
    does: "keeps the tag when a PUT writes the values that are there",
    plant: keeping((before, after) =>
      (["name", "email", "status", "removed"] as const).every((field) => before[field] === after[field]),
    ),
  },
  {
    id: "identical-put-not-modified",
    rule: "ETG-09",
    does: "answers a PUT of the stored values 304, since it would change nothing",
    plant: on(write("PUT"), isThere, changesNothing).answers(
      restoring(({ service, before }) => ({
        ...service.refuse(304, "same"),
        headers: tagLine(before),
        body: "",
      })),
    ),
  },
  {
    id: "identical-put-not-found",
    rule: "ETG-09",
    does: "answers 404 where the database says that no row was changed",
    plant: on(write("PUT"), isThere, changesNothing).answers(
      restoring(({ service }) => service.refuse(404, "not-found")),
    ),
  },
  {
    id: "etag-ignores-other-letters",
    rule: "ETG-08",
    does: "compares what is stored and what is sent in ASCII, and keeps the tag where the rest alone differs",
    plant: keeping((before, after) => {
      const ascii = ({ name, email }: Customer) => `${name} ${email}`.replace(/[^\x20-\x7e]/g, "");
      return before.name !== after.name && ascii(before) === ascii(after);
    }),
  },
  {
    id: "etag-ignores-other-status",
    rule: "ETG-11",
    does: "takes another status in a PATCH for a step of its workflow, which keeps the tag",
    plant: (ran) => (service) => ({
      ...keeping((before, after) => before.status !== after.status)(ran)(service),
      writable: ({ method }) => (method === "PATCH" ? ["name", "email", "status"] : ["name", "email"]),
    }),
  },
  {
    id: "etag-ignores-emptied-name",
    rule: "ETG-08",
    does: "takes an empty name for none, and keeps the tag of a write that brings none",
    plant: keeping((before, after) => before.name !== after.name && after.name === ""),
  },
  {
    id: "etag-ignores-case-of-email",
    rule: "ETG-08",
    does: "takes emails that differ in letter case for the same, and keeps the tag where they alone differ",
    plant: keeping(
      (before, after) =>
        before.name === after.name &&
        before.email !== after.email &&
        before.email.toLowerCase() === after.email.toLowerCase(),
    ),
  },
  {
    id: "etag-of-content",
    rule: "ETG-10",
    does: "hashes name and email, so that old values bring the old tag back",
    plant: instead(
      "mint",
      (_sound, _version, _before, { id, name, email, status, removed }) =>
        `"${digest(`${id} ${name} ${email} ${status} ${removed}`)}"`,
    ),
  },
  {
    id: "etag-wraps-around",
    rule: "ETG-15",
    does: "counts versions modulo 4, so that the tag of four writes ago is current again",
    plant: instead(
      "mint",
      (_sound, _version, before, { id }) => `"${id.slice(0, 8)}-${writesBefore(before) % 4}"`,
    ),
  },
  {
    id: "etag-of-hours",
    rule: "ETG-08",
    does: "makes the tag from updated_at in whole hours: any clock is too coarse for two writes within one of its ticks",
    plant: instead("mint", () => `"${Math.floor(Date.now() / 3_600_000)}"`),
  },
  {
    id: "etag-constant",
    rule: "ETG-08",
    does: "sends one tag forever",
    plant: instead("mint", () => '"1"'),
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
    plant: on(write(undefined, 412)).answers(spoiling((customer, turn) => ({ tag: newTag(customer, turn) }))),
  },
  ...(["PUT", "PATCH"] as const).flatMap((method): Fault[] => [
    {
      id: `${method.toLowerCase()}-answers-without-etag`,
      rule: method === "PUT" ? "ETG-07" : "ETG-11",
      does: `answers an accepted ${method} without ETag`,
      plant: on(write(method)).answers(untagged),
    },
    {
      id: `${method.toLowerCase()}-answers-old-etag`,
      rule: method === "PUT" ? "ETG-07" : "ETG-11",
      does: `answers an accepted ${method} with the tag of before it`,
      plant: on(write(method)).answers(tagged(({ before }) => before?.tag)),
    },
  ]),
  {
    id: "put-answers-other-etag",
    rule: "ETG-07",
    does: "answers a PUT with the tag as it was before a trigger changed it again",
    plant: on(write("PUT")).answers(overwriting(() => ({}))),
  },
  {
    id: "put-answers-weak-etag",
    rule: "ETG-07",
    does: "answers a PUT with a weak form of the tag",
    plant: on(write("PUT")).answers(weakened),
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
    alsoRun: ["IFM-03"],
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
    plant: (ran) => keeping(every(7))(ran),
  },
  {
    id: "unicode-form-keeps-tag",
    rule: "ETG-08",
    does: "looks for changes in texts that it has normalized, and stores them as they came",
    plant: keeping(
      (before, after) =>
        before.name !== after.name &&
        before.email === after.email &&
        before.name.normalize() === after.name.normalize(),
    ),
  },
  {
    id: "name-alone-keeps-tag-on-patch",
    rule: "ETG-11",
    does: "bumps the version in a trigger that watches the email column only",
    plant: on(write("PATCH"), ({ body }) => !("Email" in body)).answers(({ reply, before, customer }) => {
      Object.assign(customer ?? {}, { tag: before?.tag });
      return setHeader(reply, "ETag", before?.tag);
    }),
  },
  {
    id: "answered-tag-known-after-a-read",
    rule: "ETG-07",
    does: "compares If-Match with a cache that only reads fill, so that the tag of a 204 does not work at once",
    plant: knownAfterARead((status) => status < 300),
  },
  {
    id: "tag-of-412-known-after-a-read",
    rule: "IFM-07",
    does: "drops a customer from the cache that it compares with after a 412, and only reads fill it again",
    plant: knownAfterARead((status) => status === 412),
  },
  ...(["PUT", "PATCH"] as const).flatMap((method): Fault[] => [
    {
      id: `limited-${method.toLowerCase()}-keeps-tag`,
      rule: method === "PUT" ? "ETG-17" : "ETG-18",
      does: `serves roles by a path of their own, which forgets the version on a ${method}`,
      plant: on(write(method), by("limited"), isThere).answers(keptTag),
    },
    {
      id: `http10-${method.toLowerCase()}-answers-without-tag`,
      rule: method === "PUT" ? "ETG-17" : "ETG-18",
      does: `drops ETag from the answer to a ${method} over HTTP/1.0`,
      plant: on(write(method), ({ request }) => request.version === "1.0").answers(untagged),
    },
  ]),
  {
    id: "put-of-stored-values-answers-without-tag",
    rule: "ETG-17",
    does: "finds nothing to store in a PUT of the stored values, and answers 204 before there is a new tag to tell",
    plant: on(
      write("PUT"),
      ({ before, body }) => before?.name === body["Name"] && before?.email === body["Email"],
    ).answers(untagged),
  },
  {
    id: "large-put-lost",
    rule: "ETG-17",
    does: "acknowledges bodies above 16 kB, which its buffer then drops",
    plant: on(
      write("PUT"),
      isThere,
      ({ request }) => Number(headerLines(request, "content-length")[0]) > 16_384,
    ).answers(
      spoiling((customer, { before }) => ({
        name: (before ?? customer).name,
        email: (before ?? customer).email,
      })),
    ),
  },
];
