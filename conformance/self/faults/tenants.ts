/** AUT: tenants, and callers without credentials (4.1.6, 5.2). */
import { customerOf, deciding, type Fault, isCustomer, isRead } from "../fault.ts";
import { setHeader } from "../service/http-socket.ts";
import { isWrite } from "../service/seams.ts";
import { CREDENTIALS } from "../service/service.ts";

export const TENANT_FAULTS: Fault[] = [
  {
    id: "other-tenant-reads",
    rule: "AUT-08",
    does: "reads any tenant's customer",
    plant: deciding("sees", (sound, ran) => (caller, customer, request) => {
      if (sound(caller, customer, request) || isWrite(request)) return sound(caller, customer, request);
      ran();
      return true;
    }),
  },
  ...(["PUT", "PATCH", "DELETE"] as const).map(
    (method): Fault => ({
      id: `other-tenant-${method.toLowerCase()}s`,
      rule: "AUT-09",
      does: `lets a caller of another tenant ${method} a customer whose tag it knows`,
      plant: deciding("sees", (sound, ran) => (caller, customer, request) => {
        if (sound(caller, customer, request) || request.method !== method)
          return sound(caller, customer, request);
        ran();
        return true;
      }),
    }),
  ),
  {
    id: "other-tenant-told-by-412",
    rule: "AUT-10",
    does: "compares If-Match before the tenant: 412 with the current tag to strangers",
    plant: (ran) => (service) => ({
      async around(request, next) {
        const reply = await next(request);
        const customer = customerOf(request, service);
        if (!isWrite(request) || reply.status !== 404 || customer === undefined || customer.removed)
          return reply;
        ran();
        return service.refuse(412, "precondition-failed", [["ETag", customer.tag]]);
      },
    }),
  },
  {
    id: "other-tenant-404-with-etag",
    rule: "AUT-10",
    does: "keeps the ETag on the 404 to another tenant",
    plant: (ran) => (service) => ({
      async around(request, next) {
        const reply = await next(request);
        const customer = customerOf(request, service);
        if (!isCustomer(request) || reply.status !== 404 || customer === undefined || customer.removed)
          return reply;
        ran();
        return setHeader(reply, "ETag", customer.tag);
      },
    }),
  },
  {
    id: "other-tenant-gets-projection",
    rule: "AUT-08",
    does: "applies the tenant to full reads, not to those with fields",
    plant: deciding("sees", (sound, ran) => (caller, customer, request) => {
      if (sound(caller, customer, request) || isWrite(request) || !/fields=/.test(request.query))
        return sound(caller, customer, request);
      ran();
      return true;
    }),
  },
  {
    id: "cache-forgets-caller",
    rule: "AUT-08",
    does: "caches representations by address, for all callers alike",
    plant: (ran) => (service) => {
      const shelf = new Map<
        string,
        { tag: string; reply: Awaited<ReturnType<typeof service.handle>>; caller: string }
      >();
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
    plant: deciding("shownTag", (sound, ran) => (customer, fields, caller, request) => {
      if (caller !== "limited") return sound(customer, fields, caller, request);
      ran();
      return customer.tag.replace(/"$/, '.r"');
    }),
  },
  {
    id: "limited-caller-locked-out",
    rule: "AUT-06",
    does: "refuses a limited caller every field because one is forbidden",
    plant: (ran) => (service) => ({
      async around(request, next) {
        if (service.caller(request) !== "limited" || !isRead(request) || !/fields=/.test(request.query))
          return await next(request);
        ran();
        return service.refuse(403, "forbidden");
      },
    }),
  },
  {
    id: "unknown-field-404-to-other-tenant",
    rule: "AUT-11",
    does: "looks another tenant's customer up before it looks at the field names",
    plant: (ran) => (service) => ({
      async around(request, next) {
        const reply = await next(request);
        if (!isRead(request) || reply.status !== 400 || service.caller(request) !== "other") return reply;
        ran();
        return service.refuse(404, "not-found");
      },
    }),
  },
  {
    id: "anonymous-reads",
    rule: "AUT-12",
    does: "takes a request without credentials for the first tenant's",
    plant: (ran) => (service) => ({
      async around(request, next) {
        if (!isRead(request) || service.caller(request) !== undefined) return await next(request);
        ran();
        const { header, scheme } = service.deployment.credential;
        const headers = request.headers.filter(([name]) => name.toLowerCase() !== header.toLowerCase());
        return await next({ ...request, headers: [...headers, [header, scheme + CREDENTIALS.main]] });
      },
    }),
  },
];
