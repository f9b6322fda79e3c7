/** One path alone: reads, projections, callers. */

import { type Fault, isCustomer, isRead, withBody } from "../fault.ts";
import { onPath, planted, type Turn } from "../narrow.ts";
import { getHeader, type Reply, setHeader } from "../service/http-socket.ts";
import type { Caller } from "../service/seams.ts";
import type { Deployment } from "../service/sound-options.ts";

/** A GET by this caller with exactly this query, answered with this status. */
export const asked =
  (query: string, caller: Caller = "main", status = 200) =>
  (turn: Turn): boolean =>
    turn.request.method === "GET" &&
    // At the address as it is given out.
    /\/customers\/[0-9a-f-]+$/.test(turn.request.path) &&
    turn.request.query === query &&
    turn.service.caller(turn.request) === caller &&
    turn.reply.status === status;

export const showing =
  (change: (body: Record<string, unknown>, turn: Turn) => unknown) =>
  (turn: Turn): Reply =>
    withBody(turn.reply, (body) => change(body, turn));

/** Adds a member that shows the value of another. */
export const revealing = (member: string, field: "name" | "email") =>
  showing((body, { before }) => ({ ...body, [member]: before?.[field] }));
const empty = showing(() => ({}));

/** Deployments whose default set shows no name and email, so that reads without fields are looked at for their own sake. */
const SPARSE: Partial<Deployment> = { defaultFields: ["id", "status"] };

/** The first reads after a write, with one query that was read just before it too, get the tag or the body of before it. */
const lagging =
  (query: string, what: "tag" | "body"): Fault["plant"] =>
  (ran) =>
  () => {
    const before = new Map<string, { reply: Reply; reads: number }>();
    const filled = new Set<string>();
    return {
      async around(request, next) {
        if (request.method === "PUT" && isCustomer(request)) {
          const old = await next({ ...request, method: "GET", query });
          const reply = await next(request);
          if (reply.status >= 300) return reply;
          before.delete(request.path);
          if (filled.delete(request.path)) before.set(request.path, { reply: old, reads: 3 });
          return reply;
        }
        const reply = await next(request);
        const old = before.get(request.path);
        if (request.method !== "GET" || request.query !== query || reply.status !== 200) return reply;
        filled.add(request.path);
        if (old === undefined || old.reads === 0 || old.reply.status !== 200) return reply;
        old.reads -= 1;
        ran();
        if (what === "body") return { ...reply, body: old.reply.body ?? "" };
        return setHeader(reply, "ETag", getHeader(old.reply, "etag"));
      },
    };
  };

export const NARROW_READ_FAULTS: Fault[] = [
  onPath({
    cause: "ETG-01.status",
    does: "answers reads without fields with 203",
    when: asked(""),
    act: ({ reply }) => ({ ...reply, status: 203 }),
    deployment: SPARSE,
  }),
  onPath({
    cause: "ETG-01.object",
    does: "answers reads without fields with a list of one",
    when: asked(""),
    act: showing((body) => [body]),
    deployment: SPARSE,
  }),
  onPath({
    cause: "ETG-05.present",
    does: "leaves the ETag off when the id alone is selected",
    when: asked("fields=id"),
    act: ({ reply }) => setHeader(reply, "ETag", undefined),
  }),
  onPath({
    cause: "ETG-05.same",
    does: "shows another tag when the email alone is selected",
    when: asked("fields=email"),
    act: ({ reply }) => setHeader(reply, "ETag", '"of-the-email"'),
  }),
  planted("ETG-06.accepted", "refuses a PUT right after a read of id and status", (ran) => (service) => {
    let last = "";
    return {
      async around(request, next) {
        const after = last;
        last = request.query;
        if (request.method !== "PUT" || after !== "fields=id,status") return await next(request);
        ran();
        return service.refuse(412, "precondition-failed");
      },
    };
  }),
  onPath({
    cause: "ETG-14.not-named",
    does: "shows a row version of its own in the body",
    when: asked(""),
    act: showing((body, { before }) => ({ ...body, RowVersion: before?.version })),
  }),
  onPath({
    cause: "ETG-14.not-token",
    does: "shows the token as a member with another name",
    when: asked(""),
    act: showing((body, { before }) => ({ ...body, Revision: before?.tag.slice(1, -1) })),
  }),
  ...(
    [
      ["FLD-01", "fields=status"],
      ["FLD-02", "fields=status,email,name"],
      ["FLD-05", "fields=NAME"],
    ] as const
  ).flatMap(([rule, query]): Fault[] => [
    onPath({
      cause: `${rule}.status`,
      does: `answers ?${query} with 400`,
      when: asked(query),
      act: ({ service }) => service.refuse(400, "unknown-field"),
    }),
    onPath({
      cause: `${rule}.complete`,
      does: `answers ?${query} with an empty object`,
      when: asked(query),
      act: empty,
    }),
    onPath({
      cause: `${rule}.no-other`,
      does: `answers ?${query} with more than was asked for`,
      when: asked(query),
      act: showing((body) => ({ ...body, Id: "5d3f1c0e-6a5b-4f5e-9c1d-000000000001" })),
    }),
  ]),
  onPath({
    cause: "FLD-03.status",
    does: "knows a field phone, and shows nothing for it",
    when: ({ request, reply }) =>
      isRead(request) && reply.status === 400 && /fields=(name,)?phone$/.test(request.query),
    act: ({ before }) => ({
      status: 200,
      headers: [
        ["ETag", before?.tag ?? ""],
        ["Content-Type", "application/json"],
      ],
      body: "{}",
    }),
  }),
  onPath({
    cause: "FLD-09.absent",
    does: "shows null for the name when id and status are selected",
    when: asked("fields=id,status"),
    act: showing((body) => ({ ...body, Name: null })),
  }),
  planted("FLD-11.same", "shows CreatedAt in every third read without fields", (ran) => () => {
    let reads = 0;
    return {
      async around(request, next) {
        const reply = await next(request);
        if (request.method !== "GET" || request.query !== "" || reply.status !== 200 || !isRead(request))
          return reply;
        reads += 1;
        if (reads % 3 !== 0) return reply;
        ran();
        return withBody(reply, (body) => ({ ...body, CreatedAt: "2026-11-27T00:00:00Z" }));
      },
    };
  }),
  ...(["Name", "Email", "Status"] as const).map((member) =>
    onPath({
      cause: `FLD-12.${member === "Status" ? "status-scalar" : `${member.toLowerCase()}-string`}`,
      does: `shows ${member} as a list in reads without fields`,
      when: asked(""),
      act: showing((body) => ({ ...body, [member]: [body[member]] })),
      deployment: { defaultFields: ["id", member.toLowerCase() as "name"] },
    }),
  ),
  onPath({
    cause: "FLD-12.id-own",
    does: "shows another customer's id in reads without fields",
    when: asked(""),
    act: showing((body) => ({ ...body, Id: "5d3f1c0e-6a5b-4f5e-9c1d-000000000001" })),
    deployment: SPARSE,
  }),
  planted("FLD-12.id-uuid", "gives ids that are no UUIDs", (ran) => (service) => ({
    mint(version, before, after) {
      if (before === undefined) {
        ran();
        after.id = `cus-${version}`;
      }
      return service.deployment.tag(version, after.id);
    },
  })),
  onPath({
    cause: "FLD-13.no-5xx",
    does: "is not available for repeated names",
    when: asked("fields=name,name"),
    act: ({ service }) => service.refuse(503, "unavailable"),
  }),
  onPath({
    cause: "FLD-14.no-5xx",
    does: "is not available for a thousand names",
    when: ({ request }) => isRead(request) && request.query.length > 3000,
    act: ({ service }) => service.refuse(503, "unavailable"),
  }),
  onPath({
    cause: "FLD-14.no-other",
    does: "shows everything for a thousand names",
    when: ({ request, reply }) => isRead(request) && reply.status === 200 && request.query.length > 3000,
    act: showing((body) => ({ ...body, Status: "Active" })),
  }),
  onPath({
    cause: "ENV-01.same",
    does: "stands behind a proxy that compresses with brotli and weakens the tag then",
    when: ({ request, reply }) =>
      isRead(request) &&
      reply.status === 200 &&
      request.headers.some(([name, value]) => /^accept-encoding$/i.test(name) && value.trim() === "br"),
    act: ({ reply }) => setHeader(reply, "ETag", `W/${getHeader(reply, "etag")}`),
  }),
  planted(
    "ENV-04.tag",
    "serves the tag of before a write for a moment, to one projection",
    lagging("fields=id,name,email", "tag"),
  ),
  planted(
    "ENV-04.values",
    "serves the values of before a write for a moment, to one projection",
    lagging("fields=id,name,email", "body"),
  ),
  onPath({
    cause: "PRB-05.no-failure",
    does: "fails on a parameter in capitals",
    when: ({ request }) => isRead(request) && request.query.startsWith("FIELDS="),
    act: () => ({ status: 500, headers: [], body: "" }),
  }),
  onPath({
    cause: "PRB-01.status",
    does: "answers a read of a customer that never was with 204",
    when: ({ request, reply, before }) => isRead(request) && reply.status === 404 && before === undefined,
    act: () => ({ status: 204, headers: [] }),
  }),
  onPath({
    cause: "ORD-12.status",
    does: "answers unknown fields of a customer that never was with 404",
    when: ({ request, reply, before }) => isRead(request) && reply.status === 400 && before === undefined,
    act: ({ service }) => service.refuse(404, "not-found"),
  }),
];
