/** AUT: tenants, and callers without credentials (4.1.6, 5.2). */
import { customerOf, type Fault, instead, isRead, type Plant, requesting, withIfMatch } from "../../fault.ts";
import { headerLines, type Reply, type Request } from "../../service/http-socket.ts";
import { isWrite } from "../../service/seams.ts";
import { CREDENTIALS, type Service } from "../../service/service.ts";
import { isJson } from "../../service/write-body.ts";
import {
  type Act,
  all,
  answered,
  by,
  empty,
  isThere,
  neverThere,
  object,
  on,
  read,
  refused,
  showing,
  spoiling,
  tagged,
  type When,
  withCurrentTag,
  write,
} from "../../turn.ts";

/** Carries a request out with the rights of the main caller. */
export function privileged(request: Request, service: Service): Request {
  const { header, scheme } = service.deployment.credential;
  const others = request.headers.filter(([name]) => name.toLowerCase() !== header.toLowerCase());
  return { ...request, headers: [...others, [header, scheme + CREDENTIALS.main]] };
}

/** Asks nobody's rights in the handler of HEAD. */
export const headAsMain = (caller: "limited" | "other" | undefined): Plant =>
  requesting(
    (request, service) => request.method === "HEAD" && service.caller(request) === caller,
    privileged,
  );

/** Shows a list of all customers to this caller. */
export const listing =
  (caller: "limited" | "other"): Plant =>
  (ran) =>
  (service) => ({
    async around(request, next) {
      const lists = request.method === "GET" && request.path.endsWith("/customers");
      if (!lists || service.caller(request) !== caller) return await next(request);
      ran();
      return object([...service.customers.values()].map(({ id, name, email }) => ({ id, name, email })));
    },
  });

/** Forgets the tenant of some requests. */
const seeing = (forgotten: (request: Request) => boolean): Plant =>
  instead("sees", (sound, _caller, _customer, request) => sound || forgotten(request));

const isForeignWrite: When = ({ request, caller }) => isWrite(request) && caller === "other";
const foreign404 = all(read(404), by("other"), (turn) => !neverThere(turn));
const namingCustomer: Act = showing((body, { before }) => ({ ...body, detail: `for ${before?.name}` }));
const namingRefusal =
  (status: number): Act =>
  (turn) =>
    namingCustomer({ ...turn, reply: turn.service.refuse(status, "refused") });

export const TENANT_FAULTS: Fault[] = [
  {
    id: "other-tenant-reads",
    rule: "AUT-08",
    does: "reads any tenant's customer",
    plant: seeing((request) => !isWrite(request)),
  },
  {
    id: "tenant-joined-with-the-history",
    rule: "AUT-09",
    does: "looks for the tenant of a write in the history of the customer, which a new one has not",
    plant: instead(
      "sees",
      (sound, _caller, { formerTags }, request) => sound || (isWrite(request) && formerTags.length === 0),
    ),
  },
  ...(["PUT", "PATCH", "DELETE"] as const).map(
    (method): Fault => ({
      id: `other-tenant-${method.toLowerCase()}s`,
      rule: "AUT-09",
      does: `lets a caller of another tenant ${method} a customer whose tag it knows`,
      plant: seeing((request) => request.method === method),
    }),
  ),
  {
    id: "other-tenant-reads-in-capitals",
    rule: "AUT-08",
    does: "builds another query for field names in capitals, which forgets the tenant",
    plant: seeing((request) => isRead(request) && /fields=[A-Z]/.test(request.query)),
  },
  {
    id: "unknown-field-shows-other-tenant",
    rule: "FLD-04",
    does: "explains an unknown field to another tenant with the row that it has looked at",
    plant: on(read(400), by("other"), isThere).answers(namingCustomer),
  },
  {
    id: "other-tenant-told-by-412",
    rule: "AUT-10",
    does: "compares If-Match before the tenant: 412 with the current tag to strangers",
    plant: on(write(undefined, 404), isThere).answers(({ customer, service }) =>
      service.refuse(412, "precondition-failed", [["ETag", customer?.tag ?? ""]]),
    ),
  },
  ...(
    [
      ["list", /,/, "whose parser of lists"],
      ["weak-tag", /^W\//, "whose comparison of weak tags"],
    ] as const
  ).map(
    ([id, sent, what]): Fault => ({
      id: `other-tenant-told-by-${id}`,
      mode: "full",
      rule: "AUT-10",
      does: `explains a 412 with the row in a library ${what} loads it by its id alone`,
      plant: on(write(undefined, 404), by("other"), isThere, (turn) => sent.test(turn.sent ?? "")).answers(
        namingRefusal(412),
      ),
    }),
  ),
  {
    id: "other-tenant-404-with-etag",
    rule: "AUT-10",
    does: "keeps the ETag on the 404 to another tenant",
    plant: on(answered(404), isThere).answers(tagged(({ customer }) => customer?.tag)),
  },
  {
    id: "other-tenant-gets-projection",
    rule: "AUT-08",
    does: "applies the tenant to full reads, not to those with fields",
    plant: seeing((request) => !isWrite(request) && /fields=/.test(request.query)),
  },
  {
    id: "cache-forgets-caller",
    rule: "AUT-08",
    does: "caches representations by address, for all callers alike",
    plant: (ran) => (service) => {
      const shelf = new Map<string, { tag: string; reply: Reply; caller: string }>();
      return {
        async around(request, next) {
          if (!isRead(request)) return await next(request);
          const key = `${request.method} ${request.path}?${request.query}`;
          const caller = service.caller(request);
          const kept = shelf.get(key);
          if (caller !== undefined && kept !== undefined && kept.tag === customerOf(request, service)?.tag) {
            if (kept.caller !== caller) ran();
            return kept.reply;
          }
          const reply = await next(request);
          const tag = customerOf(request, service)?.tag;
          if (reply.status === 200 && tag !== undefined) shelf.set(key, { tag, reply, caller: `${caller}` });
          return reply;
        },
      };
    },
  },
  {
    id: "limited-caller-has-own-tag",
    rule: "AUT-06",
    does: "derives the tag of a limited caller from what it may see",
    plant: instead("shownTag", (tag, _customer, _fields, caller) =>
      caller === "limited" ? tag?.replace(/"$/, '.r"') : tag,
    ),
  },
  {
    id: "limited-caller-locked-out",
    rule: "AUT-06",
    does: "refuses a limited caller every field because one is forbidden",
    plant: on(by("limited"), ({ request }) => isRead(request) && /fields=/.test(request.query)).answers(
      refused(403),
    ),
  },
  {
    id: "unknown-field-404-to-other-tenant",
    rule: "AUT-11",
    does: "looks another tenant's customer up before it looks at the field names",
    plant: on(read(400), by("other")).answers(refused(404)),
  },
  {
    id: "id-alone-read-by-other-tenant",
    rule: "AUT-08",
    does: "answers fields=id from the path once the id is known to exist, without a look at the tenant",
    plant: on(foreign404, ({ request }) => request.query === "fields=id").answers(({ service, before }) =>
      object({ [service.deployment.members.id]: before?.id }, before?.tag),
    ),
  },
  {
    id: "head-tells-other-tenant",
    rule: "AUT-10",
    does: "checks the tenant in the handler of GET, not in that of HEAD",
    plant: headAsMain("other"),
  },
  {
    id: "head-without-credentials",
    rule: "AUT-12",
    does: "asks for credentials on GET and on writes, not on HEAD",
    plant: headAsMain(undefined),
  },
  {
    id: "tenant-of-the-query",
    rule: "AUT-08",
    does: "takes a tenant of * in the query for all tenants, as its report for the support does",
    plant: requesting(
      (request, service) =>
        isRead(request) && /tenant(id)?=\*/i.test(request.query) && service.caller(request) === "other",
      privileged,
    ),
  },
  {
    id: "tenant-set-by-body",
    rule: "AUT-17",
    does: "copies every member of the body onto the row, the tenant too",
    plant: on(write(undefined), ({ body }) => "tenantId" in body).answers(spoiling(() => ({ tenant: "b" }))),
  },
  {
    id: "anonymous-reads",
    rule: "AUT-12",
    does: "takes a request without credentials for the first tenant's",
    plant: requesting(
      (request, service) => isRead(request) && service.caller(request) === undefined,
      privileged,
    ),
  },
  {
    id: "other-tenant-answered-empty",
    rule: "AUT-08",
    does: "filters the columns by tenant, not the row: another tenant gets 200 and an empty object",
    plant: on(foreign404).answers(() => object({})),
  },
  {
    id: "other-tenant-404-names-customer",
    rule: "AUT-08",
    does: "names the customer in the 404 to another tenant",
    plant: on(foreign404).answers(namingCustomer),
  },
  {
    id: "other-tenant-refused-but-applied",
    rule: "AUT-09",
    does: "checks the tenant of a write when it makes the answer, after the statement has run",
    plant: on(isForeignWrite, withCurrentTag).answers(async ({ request, reply, service, send }) => {
      await send(privileged(request, service));
      return reply;
    }),
  },
  {
    id: "other-tenant-write-told-204",
    rule: "AUT-09",
    does: "ignores that the UPDATE of another tenant's customer changed no row",
    plant: on(isForeignWrite, withCurrentTag).answers(() => ({ status: 204, headers: [] })),
  },
  {
    id: "other-tenant-428-names-customer",
    rule: "AUT-10",
    does: "tells another tenant whose customer it is in the answer to a write that would be 428",
    plant: on(isForeignWrite, isThere, ({ sent }) => sent === undefined || sent === "").answers(
      namingRefusal(428),
    ),
  },
  {
    id: "other-tenant-412-names-customer",
    rule: "AUT-10",
    does: "tells another tenant whose customer it is in the answer to a write that would be 412",
    plant: on(isForeignWrite, isThere, (turn) => Boolean(turn.sent) && !withCurrentTag(turn)).answers(
      namingRefusal(404),
    ),
  },
  {
    id: "other-tenant-parse-error-names-customer",
    rule: "AUT-10",
    does: "loads the customer of another tenant before it parses the body, and names it in the 400 to broken JSON",
    plant: (ran) => (service) => ({
      async around(request, next) {
        const reply = await next(request);
        const customer = customerOf(request, service);
        if (request.method !== "PUT" || service.caller(request) !== "other" || customer === undefined)
          return reply;
        if (isJson(await request.body())) return reply;
        ran();
        const text = JSON.stringify({ status: 400, detail: `${customer.name} was not changed` });
        return { status: 400, headers: [["Content-Type", "application/problem+json"]], body: text };
      },
    }),
  },
  {
    id: "other-tenant-422-names-customer",
    rule: "AUT-10",
    does: "judges the body of another tenant's PUT first, and names the customer in the 422",
    plant: on(
      isForeignWrite,
      isThere,
      ({ request }) => request.method === "PUT",
      ({ body }) => typeof body["Email"] !== "string",
    ).answers(namingRefusal(422)),
  },
  {
    id: "negative-cache-forgets-caller",
    rule: "AUT-08",
    does: "caches the 404 to another tenant for a moment and hands it to the owner",
    plant: (ran) => (service) => {
      const refused = new Set<string>();
      return {
        async around(request, next) {
          const key = `${request.path}?${request.query}`;
          if (isRead(request) && service.caller(request) === "main" && refused.delete(key)) {
            ran();
            return service.refuse(404, "not-found");
          }
          const reply = await next(request);
          if (isRead(request) && service.caller(request) === "other" && reply.status === 404)
            refused.add(key);
          return reply;
        },
      };
    },
  },
  {
    id: "other-tenant-deletes-without-if-match",
    rule: "AUT-09",
    does: "looks at the tenant where it compares the tag, so that a DELETE without If-Match meets neither check",
    plant: requesting(
      (request, service) =>
        request.method === "DELETE" &&
        service.caller(request) === "other" &&
        headerLines(request, "if-match").length === 0,
      (request, service) => privileged(withIfMatch(request, customerOf(request, service)?.tag), service),
    ),
  },
  {
    id: "other-tenant-patches-in-one-form",
    rule: "AUT-09",
    mode: "full",
    does: "forgets the tenant in the handler of application/json alone",
    plant: seeing(
      (request) =>
        request.method === "PATCH" && headerLines(request, "content-type")[0]?.trim() === "application/json",
    ),
  },
  {
    id: "other-tenant-428-hints-at-customer",
    rule: "AUT-10",
    does: "loads the customer before it looks at If-Match, and says in the 428 that there is one",
    plant: on(isForeignWrite, isThere, answered(428)).answers(
      showing((body) => ({ ...body, retryable: true })),
    ),
  },
  {
    id: "other-tenant-star-told-by-412",
    rule: "AUT-10",
    does: "takes If-Match * for a question of existence: 412 to another tenant, 404 where nobody has the customer",
    plant: on(isForeignWrite, isThere, ({ sent }) => sent === "*").answers(refused(412)),
  },
  {
    id: "other-tenant-404-in-other-words",
    rule: "AUT-08",
    does: "says in the 404 to another tenant that the customer is not its own",
    plant: on(foreign404).answers(showing((body) => ({ ...body, title: "Not your customer" }))),
  },
  {
    id: "other-tenant-404-from-cache",
    rule: "AUT-08",
    does: "adds X-Cache: HIT to the 404 of another tenant's customer, which the owner's reads have cached",
    plant: on(foreign404).answers(({ reply }) => ({
      ...reply,
      headers: [...reply.headers, ["X-Cache", "HIT"]],
    })),
  },
  {
    id: "other-tenant-answered-304",
    rule: "AUT-08",
    does: "answers If-None-Match before it looks at the tenant",
    plant: on(
      foreign404,
      ({ request, before }) => headerLines(request, "if-none-match")[0]?.trim() === before?.tag,
    ).answers(empty(304)),
  },
  {
    id: "anonymous-writes",
    rule: "AUT-13",
    does: "guards reads alone: a write without credentials is the first tenant's",
    plant: requesting(
      (request, service) => isWrite(request) && service.caller(request) === undefined,
      privileged,
    ),
  },
  {
    id: "any-credential-is-good",
    rule: "AUT-12",
    does: "reads the claims of a token and never checks its signature",
    plant: requesting((request, service) => {
      const sent = headerLines(request, service.deployment.credential.header.toLowerCase());
      return service.caller(request) === undefined && sent.length > 0;
    }, privileged),
  },
  {
    id: "credential-found-by-its-beginning",
    rule: "AUT-12",
    does: "finds a key by its first characters, and never compares the rest",
    plant: requesting((request, service) => {
      const { header, scheme } = service.deployment.credential;
      const [sent = ""] = headerLines(request, header.toLowerCase());
      return (
        service.caller(request) === undefined &&
        sent.trim().startsWith(`${scheme}${CREDENTIALS.main.slice(0, 8)}`)
      );
    }, privileged),
  },
  {
    id: "list-of-all-tenants",
    rule: "AUT-08",
    does: "lists the customers of all tenants to each",
    plant: listing("other"),
  },
];
