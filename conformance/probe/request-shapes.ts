/**
 * Ways of sending a write that a check may have been forgotten on, each tried without If-Match, with a blank one and
 * with a stale tag. One dimension at a time: everything else is an ordinary request.
 */
import type { Attempt } from "./attempt.ts";
import { type Derive, ifMatch, type Refused } from "./if-match-forms.ts";
import { otherPaths } from "./other-paths.ts";
import { type Kind, refused } from "./refused.ts";
import type { Method } from "./snapshot.ts";

const NOT_TAKEN = [400, 401, 403, 404, 405, 411, 415, 422, 501, 505];
const MOVED = [301, 302, 307, 308];

type ShapeRow = { readonly what: string; readonly shape: Omit<Refused, "what" | "lines"> };

function shapesOf(t: Attempt, method: Method): ShapeRow[] {
  const { bodyNames } = t.kit.deployment;
  const rows: ShapeRow[] = [
    { what: "as the second request of a connection", shape: { via: "reused" } },
    { what: "over HTTP/1.0", shape: { framing: "http/1.0", allowed: NOT_TAKEN } },
    {
      what: "with Expect: 100-continue",
      shape: { headers: [["Expect", "100-continue"]], via: "socket", allowed: [417] },
    },
    {
      what: "with another Origin",
      shape: { headers: [["Origin", "https://other.example"]], allowed: [400, 403] },
    },
    { what: "with Accept: text/html", shape: { headers: [["Accept", "text/html"]], allowed: [406] } },
    { what: "with an unknown parameter", shape: { query: "?kit=1", allowed: [400, 404] } },
    { what: "with fields", shape: { query: "?fields=name", allowed: [400, 404] } },
  ];
  if (t.kit.profile.limited !== undefined)
    rows.push({ what: "by the limited caller", shape: { caller: "limited", allowed: NOT_TAKEN } });
  if (method === "DELETE") return rows;
  const json = method === "PUT" ? "application/json" : t.kit.deployment.patchBody({ name: "x" }).mediaType;
  rows.push(
    { what: "in chunks", shape: { framing: "chunked", allowed: [411, 501] } },
    { what: `as ${json}; charset=utf-8`, shape: { mediaType: `${json}; charset=utf-8`, allowed: [415] } },
    { what: "with the stored values", shape: { storedValues: true } },
    { what: "with a further member", shape: { members: { kit: "x" }, allowed: [400, 422] } },
  );
  if (method === "PATCH" && !/json-patch/.test(json))
    rows.push(
      { what: "that names no field", shape: { body: "{}", allowed: [400, 422] } },
      {
        what: "of the id alone",
        shape: { body: JSON.stringify({ [bodyNames.id]: t.kit.main.id }), allowed: [400, 422] },
      },
    );
  return rows;
}

const IF_MATCH: readonly (readonly [Kind, Derive])[] = [
  ["missing", () => ({ what: "no If-Match", lines: [] })],
  ["missing", () => ({ what: "a blank If-Match", lines: ifMatch("  ") })],
  ["stale", (tag, former) => (tag === former ? undefined : { what: "a stale tag", lines: ifMatch(former) })],
];

/** A customer that was never updated has no former tag; these are wrong for it too. */
const NEVER_UPDATED: readonly (readonly [Kind, Derive])[] = [
  ["missing", () => ({ what: "no If-Match", lines: [] })],
  ["missing", () => ({ what: "an empty If-Match", lines: ifMatch("") })],
  ["stale", () => ({ what: "a tag never given", lines: ifMatch('"kit-never-given"') })],
  ["stale", () => ({ what: "If-Match *", lines: ifMatch("*") })],
  ["stale", (tag) => ({ what: "the current tag weakened", lines: ifMatch(`W/${tag}`) })],
];

/** Every shape with every kind of If-Match that must be refused. */
export async function shapes(t: Attempt, method: Method): Promise<void> {
  // A short run takes every other of them.
  const rows = shapesOf(t, method).filter((_, index) => !t.quick || index % 2 === 0);
  // A DELETE of what is not there may be answered like one that was applied (7 says 404 of GET and PUT alone).
  const idempotent = method === "DELETE" ? [200, 202, 204] : [];
  const spelled = otherPaths(t.kit.main, t.quick).slice(0, t.quick ? 1 : undefined);
  for (const kind of ["missing", "stale"] as const) {
    const forms = IF_MATCH.filter(([each]) => each === kind).map(([, derive]) => derive);
    await refused(
      t,
      method,
      kind,
      rows.flatMap(({ what, shape }) =>
        forms.map(
          (derive): Derive =>
            (tag, former, customer) => {
              const form = derive(tag, former, customer);
              return form === undefined ? undefined : { ...form, ...shape, what: `${form.what}, ${what}` };
            },
        ),
      ),
      { bodies: "one" },
    );
    await refused(
      t,
      method,
      kind,
      spelled.flatMap((_, index) =>
        forms.map(
          (derive): Derive =>
            (tag, former, customer) => {
              const form = derive(tag, former, customer);
              const url = otherPaths(customer, t.quick)[index]?.url;
              if (form === undefined || url === undefined) return undefined;
              const path = url.slice(url.lastIndexOf("/customers/"));
              return {
                ...form,
                url,
                what: `${form.what}, at ${path}`,
                allowed: [...NOT_TAKEN, ...MOVED, ...idempotent],
              };
            },
        ),
      ),
      { bodies: "one" },
    );
  }
  if (t.kit.ground.cannotMake !== undefined) return;
  for (const kind of ["missing", "stale"] as const) {
    const forms = NEVER_UPDATED.filter(([each]) => each === kind).map(
      ([, derive]): Derive =>
        (...at) => {
          const form = derive(...at);
          return form && { ...form, what: `${form.what}, to a customer that was never updated` };
        },
    );
    await refused(t, method, kind, forms, { bodies: "one", untouched: await t.kit.ground.make() });
  }
}
