/** AUT: roles and tenants (4.1.6, 5). */
import { customerOf, type Fault, instead, isRead, type Plant, requesting } from "../../fault.ts";
import { getHeader, headerLines, setHeader } from "../../service/http-socket.ts";
import { isWrite, soundSeams } from "../../service/seams.ts";
import {
  answered,
  by,
  byHead,
  empty,
  isThere,
  object,
  on,
  read,
  refused,
  showing,
  wholeRead,
  write,
} from "../../turn.ts";
import { sends, wholeCustomer } from "../reads/conditional-reads.ts";
import { headAsMain, listing, privileged } from "./tenants.ts";

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

/** A policy that lets more through. @param spelled the name as it was asked for; empty in the default set */
const allowing = (more: (spelled: string, names: number) => boolean): Plant =>
  instead(
    "mayRead",
    (may, _caller, _field, spelled, { query }, { seams }) =>
      may || more(spelled, seams.fieldNames(query)?.length ?? 0),
  );

export const AUTHORIZATION_FAULTS: Fault[] = [
  {
    id: "forbidden-field-shown",
    rule: "AUT-02",
    does: "shows a forbidden field to every caller that requests it",
    plant: allowing((spelled) => spelled !== ""),
  },
  {
    id: "deleted-customer-shown-in-404",
    rule: "AUT-16",
    alsoRun: ["IFM-40"],
    does: "puts the last row that it knew of a deleted customer into the 404, for any caller",
    plant: on(read(404), ({ customer }) => customer?.removed === true).answers(
      showing((body, { customer }) => ({ ...body, last: { name: customer?.name, email: customer?.email } })),
    ),
  },
  {
    id: "delete-answers-the-whole-row",
    rule: "AUT-07",
    alsoRun: ["IFM-40"],
    does: "answers a DELETE with the row that it has removed, to any caller",
    plant: on(write("DELETE"), isThere).answers(({ before }) =>
      object({ name: before?.name, email: before?.email }),
    ),
  },
  {
    id: "unchanged-patch-answers-the-whole-row",
    rule: "AUT-07",
    does: "answers a PATCH that changes nothing with the row as it is stored, to any caller",
    plant: on(write("PATCH"), isThere, ({ body, before }) => body["Name"] === before?.name).answers(
      ({ customer }) => object({ name: customer?.name, email: customer?.email }, customer?.tag),
    ),
  },
  {
    id: "tag-bound-to-its-reader",
    rule: "AUT-14",
    does: "signs the tag for the caller that it was shown to, and takes no other caller's",
    plant: (ran) => (service) => {
      const shown = new Map<string, Set<string>>();
      return {
        async around(request, next) {
          const customer = customerOf(request, service);
          const caller = service.caller(request);
          const sent = headerLines(request, "if-match").join().trim();
          const isTheirs = caller !== "limited" || shown.get(sent)?.has(caller) !== false;
          if (isWrite(request) && customer?.tag === sent && !isTheirs) {
            ran();
            return service.refuse(412, "precondition-failed", [["ETag", customer.tag]]);
          }
          const reply = await next(request);
          const tag = getHeader(reply, "etag");
          if (tag !== undefined && caller !== undefined)
            shown.set(tag, (shown.get(tag) ?? new Set()).add(caller));
          return reply;
        },
      };
    },
  },
  {
    id: "tenant-not-asked-of-limited-role",
    rule: "AUT-08",
    does: "leaves the tenant out of the query that it wrote for a further role",
    plant: instead("sees", (sound, caller) => sound || caller === "limited"),
  },
  {
    id: "delete-of-limited-caller-403",
    rule: "IFM-46",
    does: "answers a stale DELETE of a caller that may not read everything 403 in place of 412",
    plant: on(write("DELETE", 412), by("limited")).answers(refused(403)),
  },
  {
    id: "stale-write-of-limited-caller-403",
    rule: "AUT-14",
    does: "answers a stale write of a caller that may not read everything 403 in place of 412",
    plant: on(by("limited"), answered(412)).answers(refused(403)),
  },
  {
    id: "forbidden-field-shown-in-capitals",
    rule: "AUT-04",
    does: "compares the policy with the name as spelled: EMAIL is not in its deny list",
    plant: allowing((spelled) => spelled !== spelled.toLowerCase()),
  },
  {
    id: "forbidden-field-shown-in-camel-case",
    rule: "AUT-04",
    does: "denies three spellings of a name, email, Email and EMAIL, and knows it in every other",
    plant: allowing((spelled) => spelled !== "" && !/^(?:[a-z]+|[A-Z][a-z]*|[A-Z]+)$/.test(spelled)),
  },
  {
    id: "forbidden-field-shown-in-list",
    rule: "AUT-03",
    does: "checks the policy when one field is requested, not when several are",
    plant: allowing((spelled, names) => spelled !== "" && names > 1),
  },
  {
    id: "forbidden-field-in-default-set",
    rule: "AUT-05",
    does: "applies the policy to requested fields, not to the default set",
    plant: allowing((spelled) => spelled === ""),
  },
  {
    id: "forbidden-field-silently-omitted",
    rule: "AUT-01",
    does: "leaves a forbidden field out instead of refusing it",
    plant: hiding(() => ({})),
  },
  {
    id: "forbidden-field-omitted-unnamed",
    rule: "AUT-01",
    does: "leaves a forbidden field out without a word, where the profile does not say which one is forbidden",
    deniedUnnamed: true,
    plant: hiding(() => ({})),
  },
  {
    id: "forbidden-field-null",
    rule: "AUT-01",
    does: "answers a forbidden field with null and 200",
    plant: hiding((name) => ({ [name]: null })),
  },
  {
    id: "forbidden-field-masked",
    rule: "AUT-01",
    does: "answers a forbidden field with asterisks and 200",
    plant: hiding((name) => ({ [name]: "***" })),
  },
  {
    id: "forbidden-field-masked-unnamed",
    rule: "AUT-01",
    does: "answers a forbidden field with asterisks and 200, where the profile does not say which one is forbidden",
    deniedUnnamed: true,
    plant: hiding((name) => ({ [name]: "***" })),
  },
  {
    id: "forbidden-field-500",
    rule: "AUT-01",
    does: "fails with 500 when a forbidden field is requested",
    plant: on(read(403)).answers(empty(500)),
  },
  {
    id: "forbidden-value-in-refusal",
    rule: "AUT-02",
    does: "names the value in the refusal: not allowed to read ada@example.org",
    plant: on(read(403)).answers(
      showing((body, { customer }) => ({ ...body, detail: `not allowed to read ${customer?.email}` })),
    ),
  },
  {
    id: "forbidden-field-in-put-answer",
    rule: "AUT-07",
    does: "answers a PUT with the whole customer, to every caller",
    deployment: { putAnswer: 200 },
    plant: on(write("PUT", 200), by("limited")).answers(
      showing((body, { customer, service: { deployment } }) => ({
        ...body,
        [deployment.members.email]: customer?.email,
      })),
    ),
  },
  {
    id: "forbidden-field-in-412",
    rule: "AUT-07",
    does: "puts the current customer into the 412 document, email included",
    plant: on(write(undefined, 412)).answers(
      showing((body, { customer }) => ({ ...body, current: { Email: customer?.email } })),
    ),
  },
  {
    id: "limited-answered-empty",
    rule: "AUT-01",
    does: "answers a limited caller that asks for the email with an empty object",
    plant: on(read(403), by("limited")).answers(({ before }) => object({}, before?.tag)),
  },
  {
    id: "masked-email-in-default-set",
    rule: "AUT-05",
    does: "shows a masked email in the default set of a limited caller",
    plant: on(wholeRead, by("limited")).answers(showing((body) => ({ ...body, Email: "a***@example.org" }))),
  },
  {
    id: "email-as-login",
    rule: "AUT-05",
    does: "shows the email as login in the default set of a limited caller",
    plant: on(wholeRead, by("limited")).answers(
      showing((body, { before }) => ({ ...body, Login: `for ${before?.email}` })),
    ),
  },
  {
    id: "forbidden-field-in-conditional-read",
    rule: "AUT-15",
    does: "answers reads with If-None-Match in a handler that knows no policy",
    plant: requesting(
      (request, service) =>
        isRead(request) &&
        service.caller(request) === "limited" &&
        headerLines(request, "if-none-match").length > 0,
      privileged,
    ),
  },
  {
    id: "policy-forgotten-in-xml",
    rule: "AUT-15",
    does: "applies the policy where it writes JSON, and not where another media type is accepted",
    plant: on(by("limited"), sends("accept", /xml/), ({ request }) => isRead(request)).answers(wholeCustomer),
  },
  {
    id: "last-writer-reads-all",
    rule: "AUT-16",
    does: "shows every field to the caller that has written the customer last",
    plant: (ran) => (service) => {
      const writers = new Map<string, string>();
      return {
        async around(request, next) {
          const caller = `${service.caller(request)}`;
          const id = customerOf(request, service)?.id ?? "";
          if (isRead(request) && caller === "limited" && writers.get(id) === caller) {
            ran();
            return await next(privileged(request, service));
          }
          const reply = await next(request);
          if (isWrite(request) && reply.status < 300) writers.set(id, caller);
          return reply;
        },
      };
    },
  },
  {
    id: "forbidden-field-of-new-customer",
    rule: "AUT-16",
    does: "reads a customer that was never updated from the table of creates, which has no policy",
    plant: requesting(
      (request, service) =>
        isRead(request) &&
        service.caller(request) === "limited" &&
        customerOf(request, service)?.formerTags.length === 0,
      privileged,
    ),
  },
  {
    id: "head-shows-email",
    rule: "AUT-15",
    does: "copies the columns that it has read into headers of HEAD",
    plant: on(read(), byHead).answers(({ reply, customer }) => setHeader(reply, "X-Email", customer?.email)),
  },
  {
    id: "head-asks-nobody",
    rule: "AUT-15",
    does: "asks the policy in the handler of GET, not in that of HEAD",
    plant: headAsMain("limited"),
  },
  {
    id: "options-shows-customer",
    rule: "AUT-15",
    does: "answers OPTIONS with an example of the resource, which is the resource itself",
    plant: on(({ request }) => request.method === "OPTIONS", isThere).answers(wholeCustomer),
  },
  {
    id: "refusal-of-post-shows-customer",
    rule: "AUT-15",
    does: "loads the customer before it finds that there is no such method, and puts it into the 405",
    plant: on(answered(405), ({ request }) => request.method === "POST").answers(
      showing((body, { customer }) => ({
        ...body,
        entity: { Name: customer?.name, Email: customer?.email },
      })),
    ),
  },
  {
    id: "too-many-fields-shows-customer",
    rule: "AUT-15",
    does: "counts the fields behind the query, and puts the row into the refusal",
    deployment: { fieldsMax: 16 },
    plant: on(read(400), isThere, ({ request }) => request.query.split(",").length > 16).answers(
      showing((body, { customer }) => ({ ...body, row: { Email: customer?.email } })),
    ),
  },
  {
    id: "forbidden-field-in-412-to-list",
    rule: "AUT-07",
    does: "explains with the stored row why it takes no list of tags",
    plant: on(write(undefined, 412), ({ sent }) => sent?.includes(",") === true).answers(
      showing((body, { customer }) => ({ ...body, was: customer?.email })),
    ),
  },
  {
    id: "forbidden-field-by-double-encoding",
    rule: "AUT-04",
    does: "decodes the field names twice, once behind the policy",
    plant: on(
      by("limited"),
      ({ request }) => isRead(request) && /fields=[^&]*%25[46]/i.test(request.query),
    ).answers(({ request, service, send }) =>
      send({ ...privileged(request, service), query: decodeURIComponent(request.query) }),
    ),
  },
  {
    id: "list-without-policy",
    rule: "AUT-15",
    does: "has a policy for a customer, and none for the list of them",
    plant: listing("limited"),
  },
];
