/** AUT: tenants, and callers without credentials (4.1.6, 5.2). */
import { customerOf, type Fault, instead, isRead, type Plant, requesting } from "../fault.ts";
import type { Reply, Request } from "../service/http-socket.ts";
import { isWrite } from "../service/seams.ts";
import { CREDENTIALS, type Service } from "../service/service.ts";
import { all, answered, by, isThere, read, refused, replying, tagged, write } from "../turn.ts";

/** Carries a request out with the rights of the main caller. */
export function privileged(request: Request, service: Service): Request {
  const { header, scheme } = service.deployment.credential;
  const others = request.headers.filter(([name]) => name.toLowerCase() !== header.toLowerCase());
  return { ...request, headers: [...others, [header, scheme + CREDENTIALS.main]] };
}

/** Forgets the tenant of some requests. */
const seeing = (forgotten: (request: Request) => boolean): Plant =>
  instead("sees", (sound, _caller, _customer, request) => sound || forgotten(request));

export const TENANT_FAULTS: Fault[] = [
  {
    id: "other-tenant-reads",
    rule: "AUT-08",
    does: "reads any tenant's customer",
    plant: seeing((request) => !isWrite(request)),
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
    id: "other-tenant-told-by-412",
    rule: "AUT-10",
    does: "compares If-Match before the tenant: 412 with the current tag to strangers",
    plant: replying(all(write(undefined, 404), isThere), ({ customer, service }) =>
      service.refuse(412, "precondition-failed", [["ETag", customer?.tag ?? ""]]),
    ),
  },
  {
    id: "other-tenant-404-with-etag",
    rule: "AUT-10",
    does: "keeps the ETag on the 404 to another tenant",
    plant: replying(
      all(answered(404), isThere),
      tagged(({ customer }) => customer?.tag),
    ),
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
    plant: replying(
      all(by("limited"), ({ request }) => isRead(request) && /fields=/.test(request.query)),
      refused(403),
    ),
  },
  {
    id: "unknown-field-404-to-other-tenant",
    rule: "AUT-11",
    does: "looks another tenant's customer up before it looks at the field names",
    plant: replying(all(read(400), by("other")), refused(404)),
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
];
