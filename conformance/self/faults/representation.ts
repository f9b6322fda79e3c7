/** FLD: what a body may hold, read or written (2.1, 2.3, 4.1, 8.1). */
import {
  customerOf,
  deciding,
  type Fault,
  isCustomer,
  isRead,
  membersOf,
  replying,
  withBody,
} from "../fault.ts";
import type { Request } from "../service/http-socket.ts";
import { fieldsParameter, isWrite } from "../service/seams.ts";
import type { Service } from "../service/service.ts";

const shown = (reply: { status: number }, request: Request) =>
  request.method === "GET" && isRead(request) && reply.status === 200;

/** Takes a PUT whose body lacks a required member; `fill` says what is stored in its place. */
function tolerating(
  member: "name" | "email",
  id: string,
  does: string,
  fill: (stored: string) => string,
): Fault {
  return {
    id,
    rule: member === "name" ? "FLD-16" : "FLD-17",
    does,
    plant: (ran) => (service) => ({
      async around(request, next) {
        const customer = customerOf(request, service);
        if (request.method !== "PUT" || customer === undefined) return await next(request);
        const body = await membersOf(request);
        const key = service.deployment.members[member];
        const both = service.deployment.members[member === "name" ? "email" : "name"];
        if (typeof body[key] === "string" || typeof body[both] !== "string" || (body[key] ?? null) !== null)
          return await next(request);
        const filled = Buffer.from(JSON.stringify({ ...body, [key]: fill(customer[member]) }));
        const reply = await next({ ...request, body: async () => filled });
        if (reply.status < 300) ran();
        return reply;
      },
    }),
  };
}

/** Lets a member of a write's body reach the tag. */
function settable(member: string): Fault {
  return {
    id: `${member.toLowerCase()}-settable-by-body`,
    rule: "FLD-19",
    does: `takes ${member} of a body for the new version`,
    plant: (ran) => (service) => ({
      async around(request, next) {
        const reply = await next(request);
        const customer = customerOf(request, service);
        if (!isWrite(request) || reply.status >= 300 || customer === undefined) return reply;
        const body = await membersOf(request);
        const key = Object.keys(body).find((name) => name.toLowerCase() === member.toLowerCase());
        const forged = key === undefined ? undefined : body[key];
        if (typeof forged !== "string" && typeof forged !== "number") return reply;
        ran();
        customer.tag = `"${String(forged).replaceAll('"', "")}"`;
        return {
          ...reply,
          headers: [...reply.headers.filter(([name]) => name !== "ETag"), ["ETag", customer.tag]],
        };
      },
    }),
  };
}

/** Shows one member otherwise than section 2.1 has it. */
const showing = (
  id: string,
  does: string,
  change: (body: Record<string, unknown>, service: Service) => Record<string, unknown>,
): Fault => ({
  id,
  rule: "FLD-12",
  does,
  plant: replying(shown, (reply, _request, service) => withBody(reply, (body) => change(body, service))),
});

export const REPRESENTATION_FAULTS: Fault[] = [
  showing("status-is-an-object", "shows the status with its label", (body, { deployment: { members } }) =>
    body[members.status] === undefined
      ? body
      : { ...body, [members.status]: { code: 1, label: body[members.status] } },
  ),
  showing(
    "id-is-not-the-address",
    "shows the id of the row, not that of the address",
    (body, { deployment: { members } }) =>
      body[members.id] === undefined ? body : { ...body, [members.id]: "10442" },
  ),
  showing("name-is-an-object", "shows the name as first and last", (body, { deployment: { members } }) =>
    body[members.name] === undefined ? body : { ...body, [members.name]: { full: body[members.name] } },
  ),
  showing(
    "email-is-an-object",
    "shows the email with whether it is verified",
    (body, { deployment: { members } }) =>
      body[members.email] === undefined
        ? body
        : { ...body, [members.email]: { address: body[members.email], verified: true } },
  ),
  {
    id: "unknown-field-refusal-shows-customer",
    rule: "FLD-04",
    does: "puts the customer that it has already read into the 400",
    plant: replying(
      (reply, request, service) =>
        isRead(request) && reply.status === 400 && customerOf(request, service) !== undefined,
      (reply, request, service) =>
        withBody(reply, (body) => ({ ...body, instance: { name: customerOf(request, service)?.name } })),
    ),
  },
  {
    id: "repeated-field-500",
    rule: "FLD-13",
    does: "fails when a name is repeated: duplicate column in the SELECT",
    plant: deciding("fieldNames", (sound, ran) => (query) => {
      const names = sound(query)?.map((name) => name.toLowerCase());
      if (names !== undefined && new Set(names).size < names.length && names.length < 20) {
        ran();
        throw new Error("column specified more than once");
      }
      return sound(query);
    }),
  },
  {
    id: "empty-fields-shows-everything",
    rule: "FLD-13",
    does: "takes an empty element of the list for every field",
    plant: replying(
      (reply, request) =>
        isRead(request) &&
        reply.status === 400 &&
        fieldsParameter(request.query).some((value) => value.includes(",")) &&
        fieldsParameter(request.query)
          .join(",")
          .split(",")
          .some((name) => name.trim() === ""),
      (_reply, request, service) => {
        const customer = customerOf(request, service);
        if (customer === undefined || service.caller(request) !== "main")
          return service.refuse(404, "not-found");
        const body = service.seams.shape(customer, ["id", "name", "email", "status"], "main", request);
        return {
          status: 200,
          headers: [
            ["ETag", customer.tag],
            ["Content-Type", "application/json"],
          ],
          body: JSON.stringify(body),
        };
      },
    ),
  },
  {
    id: "repeated-parameter-shows-default",
    rule: "FLD-13",
    does: "gives up on a repeated fields parameter and shows the default set",
    plant: deciding("fieldNames", (sound, ran) => (query) => {
      if (fieldsParameter(query).length < 2) return sound(query);
      ran();
      return undefined;
    }),
  },
  {
    id: "long-field-list-500",
    rule: "FLD-14",
    does: "fails on a list of many names",
    plant: deciding("fieldNames", (sound, ran) => (query) => {
      const names = sound(query);
      if ((names?.length ?? 0) < 100) return names;
      ran();
      throw new Error("too many columns in the SELECT");
    }),
  },
  tolerating("name", "put-without-name-empties-it", "stores an empty name when a PUT has none", () => ""),
  tolerating(
    "name",
    "put-without-name-keeps-it",
    "takes a PUT for a partial update of the email",
    (stored) => stored,
  ),
  tolerating("email", "put-without-email-empties-it", "stores an empty email when a PUT has none", () => ""),
  tolerating(
    "email",
    "put-without-email-keeps-it",
    "takes a PUT for a partial update of the name",
    (stored) => stored,
  ),
  {
    id: "put-takes-numbers",
    rule: "FLD-18",
    does: "stores a number where the name should be, and shows it as one",
    plant: (ran) => (service) => {
      const numbers = new Map<string, unknown>();
      return {
        async around(request, next) {
          const key = service.deployment.members.name;
          if (request.method === "PUT") {
            const body = await membersOf(request);
            if (typeof body[key] === "string" || body[key] === undefined || body[key] === null)
              return await next(request);
            const filled = Buffer.from(JSON.stringify({ ...body, [key]: JSON.stringify(body[key]) }));
            const reply = await next({ ...request, body: async () => filled });
            if (reply.status < 300) numbers.set(JSON.stringify(body[key]), body[key]);
            return reply;
          }
          const reply = await next(request);
          if (!shown(reply, request)) return reply;
          return withBody(reply, (body) => {
            const stored = numbers.get(String(body[key]));
            if (stored === undefined) return body;
            ran();
            return { ...body, [key]: stored };
          });
        },
      };
    },
  },
  settable("RowVersion"),
  {
    ...settable("version"),
    id: "version-number-settable-by-body",
    does: "binds the number in `version` of a body to the column that makes the tag",
    deployment: { tag: (version) => `"${version}"` },
  },
  settable("ETag"),
  {
    id: "bad-body-applied",
    rule: "ORD-13",
    does: "answers a PUT whose body is no JSON object with 204 and stores empty values",
    plant: (ran) => (service) => ({
      async around(request, next) {
        const reply = await next(request);
        if (
          request.method !== "PUT" ||
          reply.status !== service.deployment.invalidBodyStatus ||
          !isCustomer(request)
        )
          return reply;
        const bytes = await request.body();
        if (/^\s*\{[\s\S]*\}\s*$/.test(bytes.toString("utf8"))) return reply;
        ran();
        const filled = Buffer.from(
          JSON.stringify({ [service.deployment.members.name]: "", [service.deployment.members.email]: "" }),
        );
        return await next({ ...request, body: async () => filled });
      },
    }),
  },
];
