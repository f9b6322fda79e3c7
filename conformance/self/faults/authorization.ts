/** AUT: roles and tenants (4.1.6, 5). */
import {
  customerOf,
  deciding,
  type Fault,
  isCustomer,
  isRead,
  type Plant,
  replying,
  withBody,
} from "../fault.ts";
import { setHeader } from "../http-socket.ts";
import { isWrite, soundSeams } from "../seams.ts";
import { CREDENTIALS } from "../service.ts";

/** Lets a forbidden field through the policy and puts something in place of its value. */
function hiding(instead: (member: string) => Record<string, unknown>): Plant {
  return (ran) => (service) => {
    const sound = soundSeams(service.deployment);
    return {
      mayRead: (caller, field, spelled, request) =>
        spelled !== "" || sound.mayRead(caller, field, spelled, request),
      shape(customer, shown, caller, request) {
        const body = sound.shape(customer, shown, caller, request);
        if (caller !== "limited" || !shown.includes("email")) return body;
        ran();
        const { [service.deployment.members.email]: _hidden, ...rest } = body;
        return { ...rest, ...instead(service.deployment.members.email) };
      },
    };
  };
}

export const AUTHORIZATION_FAULTS: Fault[] = [
  {
    id: "forbidden-field-shown",
    rule: "AUT-02",
    cause: /email/i,
    does: "shows a forbidden field to whoever requests it",
    plant: deciding("mayRead", (sound, ran) => (caller, field, spelled, request) => {
      const may = sound(caller, field, spelled, request);
      if (may || spelled === "") return may;
      ran();
      return true;
    }),
  },
  {
    id: "forbidden-field-shown-in-capitals",
    rule: "AUT-04",
    cause: /email/i,
    does: "compares the policy with the name as spelled: EMAIL is not in its deny list",
    plant: deciding("mayRead", (sound, ran) => (caller, field, spelled, request) => {
      const may = sound(caller, field, spelled, request);
      if (may || spelled === "" || spelled === spelled.toLowerCase()) return may;
      ran();
      return true;
    }),
  },
  {
    id: "forbidden-field-shown-in-list",
    rule: "AUT-03",
    cause: /email/i,
    does: "checks the policy when one field is requested, not when several are",
    plant: deciding("mayRead", (sound, ran, service) => (caller, field, spelled, request) => {
      const may = sound(caller, field, spelled, request);
      if (may || spelled === "" || (service.seams.fieldNames(request.query)?.length ?? 0) < 2) return may;
      ran();
      return true;
    }),
  },
  {
    id: "forbidden-field-in-default-set",
    rule: "AUT-05",
    cause: /email/i,
    does: "applies the policy to requested fields, not to the default set",
    plant: deciding("mayRead", (sound, ran) => (caller, field, spelled, request) => {
      const may = sound(caller, field, spelled, request);
      if (may || spelled !== "") return may;
      ran();
      return true;
    }),
  },
  {
    id: "forbidden-field-silently-omitted",
    rule: "AUT-01",
    cause: /200/,
    does: "leaves a forbidden field out instead of refusing it",
    plant: hiding(() => ({})),
  },
  {
    id: "forbidden-field-null",
    rule: "AUT-01",
    cause: /200/,
    does: "answers a forbidden field with null and 200",
    plant: hiding((name) => ({ [name]: null })),
  },
  {
    id: "forbidden-field-masked",
    rule: "AUT-01",
    cause: /200/,
    does: "answers a forbidden field with asterisks and 200",
    plant: hiding((name) => ({ [name]: "***" })),
  },
  {
    id: "forbidden-field-500",
    rule: "AUT-01",
    cause: /500/,
    does: "fails with 500 when a forbidden field is requested",
    plant: replying(
      (reply, request) => isRead(request) && reply.status === 403,
      () => ({ status: 500, headers: [], body: "" }),
    ),
  },
  {
    id: "forbidden-value-in-refusal",
    rule: "AUT-02",
    cause: /email|value/i,
    does: "names the value in the refusal: not allowed to read ada@example.org",
    plant: replying(
      (reply, request) => isRead(request) && reply.status === 403,
      (reply, request, service) =>
        withBody(reply, (body) => ({
          ...body,
          detail: `not allowed to read ${customerOf(request, service)?.email}`,
        })),
    ),
  },
  {
    id: "forbidden-field-in-put-answer",
    rule: "AUT-07",
    cause: /email/i,
    does: "answers a PUT with the whole customer, whoever asks",
    deployment: { putAnswer: 200 },
    plant: (ran) => (service) => ({
      async around(request, next) {
        const reply = await next(request);
        if (request.method !== "PUT" || reply.status !== 200 || service.caller(request) !== "limited")
          return reply;
        ran();
        return withBody(reply, (body) => ({
          ...body,
          [service.deployment.members.email]: customerOf(request, service)?.email,
        }));
      },
    }),
  },
  {
    id: "forbidden-field-in-412",
    rule: "AUT-07",
    cause: /email/i,
    does: "puts the current customer into the 412 document, email included",
    plant: replying(
      (reply, request) => isWrite(request) && reply.status === 412,
      (reply, request, service) =>
        withBody(reply, (body) => ({ ...body, current: { Email: customerOf(request, service)?.email } })),
    ),
  },
  {
    id: "other-tenant-reads",
    rule: "AUT-08",
    cause: /tenant/i,
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
      cause: new RegExp(method, "i"),
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
    cause: /412|tenant/i,
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
    cause: /ETag|tenant/i,
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
    cause: /tenant/i,
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
    rule: "AUT-05",
    cause: /email|cache|caller/i,
    does: "caches representations by address, whoever asked",
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
    cause: /tag/i,
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
    cause: /403/,
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
    cause: /404/,
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
    cause: /credential|anonymous/i,
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
