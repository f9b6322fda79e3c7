/** FLD: what a body may hold, read or written (2.1, 2.3, 4.1, 8.1). */
import { customerOf, deciding, type Fault, instead, membersOf, type Plant } from "../../fault.ts";
import { setHeader } from "../../service/http-socket.ts";
import { fieldsParameter } from "../../service/seams.ts";
import type { Service } from "../../service/service.ts";
import { isThere, object, on, read, showing, type Turn, tagged, write } from "../../turn.ts";

/** Carries a refused PUT out after all, with other members. */
const sendingInstead = (
  when: (turn: Turn) => boolean | Promise<boolean>,
  members: (turn: Turn) => Record<string, unknown>,
): Plant =>
  on((turn) => write("PUT", turn.service.deployment.invalidBodyStatus)(turn)).answers(async (turn) => {
    if (!(await when(turn))) return turn.reply;
    const filled = Buffer.from(JSON.stringify(members(turn)));
    return await turn.send({ ...turn.request, body: async () => filled });
  });

/** Takes a PUT whose body lacks a required member; `fill` says what is stored in its place. */
const tolerating = (
  member: "name" | "email",
  id: string,
  does: string,
  fill: (stored: string) => string,
): Fault => ({
  id,
  rule: member === "name" ? "FLD-16" : "FLD-17",
  does,
  plant: sendingInstead(
    ({ body, service: { deployment } }) =>
      (body[deployment.members[member]] ?? null) === null &&
      typeof body[deployment.members[member === "name" ? "email" : "name"]] === "string",
    ({ body, customer, service: { deployment } }) => ({
      ...body,
      [deployment.members[member]]: fill(customer?.[member] ?? ""),
    }),
  ),
});

/** Lets a member of a write's body reach the tag. */
const settable = (member: string): Fault => ({
  id: `${member.toLowerCase()}-settable-by-body`,
  rule: "FLD-19",
  does: `takes ${member} of a body for the new version`,
  plant: on(
    (turn) => write(undefined)(turn) && ["string", "number"].includes(typeof forged(turn, member)),
  ).answers((turn) => {
    const tag = `"${String(forged(turn, member)).replaceAll('"', "")}"`;
    Object.assign(turn.customer ?? {}, { tag });
    return setHeader(turn.reply, "ETag", tag);
  }),
});

const forged = ({ body }: Turn, member: string) =>
  Object.entries(body).find(([name]) => name.toLowerCase() === member.toLowerCase())?.[1];

/** Shows one member otherwise than section 2.1 has it. */
const memberAs = (
  id: string,
  does: string,
  member: keyof Service["deployment"]["members"],
  change: (value: unknown) => unknown,
): Fault => ({
  id,
  rule: "FLD-12",
  does,
  plant: on(read()).answers(
    showing((body, { service: { deployment } }) => {
      const name = deployment.members[member];
      return body[name] === undefined ? body : { ...body, [name]: change(body[name]) };
    }),
  ),
});

/** The database fails on such a list of names. */
const failing = (on: (names: readonly string[]) => boolean): Plant =>
  instead("fieldNames", (names) => {
    if (names !== undefined && on(names)) throw new Error("the SELECT is refused");
    return names;
  });

export const REPRESENTATION_FAULTS: Fault[] = [
  memberAs("status-is-an-object", "shows the status with its label", "status", (label) => ({
    code: 1,
    label,
  })),
  memberAs("id-is-not-the-address", "shows the id of the row, not that of the address", "id", () => "10442"),
  memberAs("name-is-an-object", "shows the name as first and last", "name", (full) => ({ full })),
  memberAs("email-is-an-object", "shows the email with whether it is verified", "email", (address) => ({
    address,
    verified: true,
  })),
  {
    id: "unknown-field-refusal-shows-customer",
    rule: "FLD-04",
    does: "puts the customer that it has already read into the 400",
    plant: on(read(400), ({ customer }) => customer !== undefined).answers(
      showing((body, { customer }) => ({ ...body, instance: { name: customer?.name } })),
    ),
  },
  {
    id: "unknown-field-refusal-tagged",
    rule: "FLD-04",
    does: "sets the ETag as soon as the customer is loaded, which is before it looks at the fields",
    plant: on(read(400), isThere).answers(tagged(({ customer }) => customer?.tag)),
  },
  {
    id: "repeated-field-left-out",
    rule: "FLD-13",
    does: "toggles a column for each name of the list, so that one named twice is off again",
    plant: instead("fieldNames", (names) => {
      const times = (name: string) =>
        names?.filter((other) => other.toLowerCase() === name.toLowerCase()).length;
      return names?.filter((name) => (times(name) ?? 0) % 2 === 1);
    }),
  },
  {
    id: "repeated-field-500",
    rule: "FLD-13",
    does: "fails when a name is repeated: duplicate column in the SELECT",
    plant: failing(
      (names) => new Set(names.map((name) => name.toLowerCase())).size < names.length && names.length < 20,
    ),
  },
  {
    id: "empty-fields-shows-everything",
    rule: "FLD-13",
    does: "takes an empty element of the list for every field",
    plant: on(read(400), ({ request }) =>
      fieldsParameter(request.query).some((value) => /^\s*,|,\s*,|,\s*$/.test(value)),
    ).answers(({ request, service, customer, caller }) =>
      customer === undefined || caller !== "main"
        ? service.refuse(404, "not-found")
        : object(
            service.seams.shape(customer, ["id", "name", "email", "status"], "main", request),
            customer.tag,
          ),
    ),
  },
  {
    id: "repeated-parameter-shows-default",
    rule: "FLD-13",
    does: "gives up on a repeated fields parameter and shows the default set",
    plant: instead("fieldNames", (names, query) => (fieldsParameter(query).length < 2 ? names : undefined)),
  },
  {
    id: "long-field-list-500",
    rule: "FLD-14",
    does: "fails on a list of many names",
    plant: failing((names) => names.length >= 100),
  },
  tolerating("name", "put-without-name-empties-it", "stores an empty name when a PUT has none", () => ""),
  tolerating(
    "name",
    "put-without-name-keeps-it",
    "takes a PUT for a partial update of the email",
    (it) => it,
  ),
  tolerating("email", "put-without-email-empties-it", "stores an empty email when a PUT has none", () => ""),
  tolerating(
    "email",
    "put-without-email-keeps-it",
    "takes a PUT for a partial update of the name",
    (it) => it,
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
          if (request.method === "PUT" && customerOf(request, service) !== undefined) {
            const body = await membersOf(request);
            if (typeof body[key] === "string" || body[key] === undefined || body[key] === null)
              return await next(request);
            const filled = Buffer.from(JSON.stringify({ ...body, [key]: JSON.stringify(body[key]) }));
            const reply = await next({ ...request, body: async () => filled });
            if (reply.status < 300) numbers.set(JSON.stringify(body[key]), body[key]);
            return reply;
          }
          const reply = await next(request);
          if (request.method !== "GET" || reply.status !== 200 || customerOf(request, service) === undefined)
            return reply;
          const body = JSON.parse(String(reply.body)) as Record<string, unknown>;
          const stored = numbers.get(String(body[key]));
          if (stored === undefined) return reply;
          ran();
          return { ...reply, body: JSON.stringify({ ...body, [key]: stored }) };
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
    plant: sendingInstead(
      async ({ request }) => !/^\s*\{[\s\S]*\}\s*$/.test((await request.body()).toString("utf8")),
      ({ service: { deployment } }) => ({ [deployment.members.name]: "", [deployment.members.email]: "" }),
    ),
  },
  {
    id: "ids-are-no-uuids",
    rule: "FLD-12",
    does: "gives ids that are no UUIDs",
    plant: deciding("mint", (sound, ran) => (version, before, after) => {
      if (before === undefined) {
        ran();
        after.id = `cus-${version}`;
      }
      return sound(version, before, after);
    }),
  },
];
