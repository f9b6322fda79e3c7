/** Ways of sending a write that a check may have been forgotten on, each other than the ordinary in one thing. */

import type { Customer } from "../../fixtures/ground.ts";
import type { Attempt } from "../attempt.ts";
import type { Method } from "../snapshot.ts";
import type { Lines } from "../trial.ts";
import { type Allowed, type Derive, type Refused, STAND_IN_HEADERS } from "./if-match-forms.ts";
import { otherPaths, pathEnd } from "./other-paths.ts";
import { CLAIMS, FROM_BROWSERS, fromProxies, gentleLines } from "./usual-headers.ts";

type Way = Omit<Refused, "what" | "lines"> & {
  /** How the name of If-Match is spelled. */
  readonly spelled?: string;
};
/** In words that follow "PUT with no If-Match, …", and how it differs from an ordinary request. */
export type Row = readonly [what: string, shape: Way | ((tag: string) => Way)];
/** `address`: the place of its address in the list of those of the customer. */
export type AddressedRow = readonly [...Row, address?: number];

/** By itself: a proxy that honours it passes no If-Match on, which would hide what the other headers do. */
export const HOP_BY_HOP: Row = [
  "with Connection: If-Match",
  { headers: [["Connection", "If-Match"]], allowed: "refused" },
];

/** What a server might take for permission. No service needs to know them, so all are sent at once first. */
export function headerRows(t: Attempt, method: Method): Row[] {
  const { origin } = new URL(t.kit.main.url);
  const later = new Date(Date.now() + 3_600_000).toUTCString();
  const lines: readonly (readonly [string, string])[] = [
    ["Idempotency-Key", crypto.randomUUID()],
    ["Cookie", "etag=TAG"],
    ["If", "([TAG])"],
    ["If-Unmodified-Since", later],
    ["If-None-Match", '"kit-other"'],
    ...STAND_IN_HEADERS.map((name) => [name, "TAG"] as const),
    ["X-Requested-With", "XMLHttpRequest"],
    ["Cache-Control", "no-cache"],
    ["Prefer", "handling=lenient"],
    ["Overwrite", "T"],
    ["X-Force", "true"],
    ["X-Skip-Precondition", "true"],
    ["X-Migration", "true"],
    ["X-Client-Version", "0"],
    ["X-HTTP-Method-Override", method],
    ["Origin", origin],
    ["Referer", origin],
    ["Sec-Fetch-Site", "same-origin"],
    ["Accept-Encoding", "gzip"],
    ["Range", "bytes=0-0"],
    ["If-Range", '"kit-other"'],
    ["Api-Version", "1"],
    ["X-API-Version", "1"],
    ...FROM_BROWSERS,
    ["Trailer", "X-Kit-Checksum"],
    ...fromProxies(new URL(t.kit.main.url)),
    ...CLAIMS,
  ];
  return gentleLines(t, lines).map(([name, value]) => [
    `with ${name}: ${value.replace("TAG", "the current tag")}`,
    (tag) => ({ headers: [[name, value.replace("TAG", () => tag)]], allowed: "refused" }),
  ]);
}

const PARAMETERS = ["if-match", "etag", "version"];
const MEMBERS = ["etag", "ETag", "_etag", "ifMatch", "rowVersion", "RowVersion", "version"];
const PERMITTING = "?force=true&overwrite=true&upsert=true&validate=false&skipPrecondition=true";

/**
 * Ways of sending a write, each other than the ordinary in one thing.
 * @param usedKey of an accepted write with other values
 */
export async function rowsOf(t: Attempt, method: Method, usedKey: Lines): Promise<Row[]> {
  const rows: Row[] = [
    ["as the second request of a connection", { opening: "a read" }],
    ["as the third request of a connection", { opening: "two reads" }],
    ["on the connection that has read the former tag", { opening: "a read of the former tag" }],
    ["on the connection of an accepted write", { opening: "an accepted write" }],
    ["on the connection of a conflict", { opening: "a conflict" }],
    ["over HTTP/1.0", { framing: "http/1.0", allowed: "refused" }],
    ["the header spelled if-match", { spelled: "if-match" }],
    ["the header spelled IF-MATCH", { spelled: "IF-MATCH" }],
    ["with the whole URL in the request line", { framing: "absolute-form", allowed: "refused" }],
    ["with If-None-Match: *", { headers: [["If-None-Match", "*"]], allowed: [412] }],
    ["with Expect: 100-continue", { headers: [["Expect", "100-continue"]], via: "socket", allowed: [417] }],
    ["with another Origin", { headers: [["Origin", "https://other.example"]], allowed: [400, 403] }],
    ["with Accept: text/html", { headers: [["Accept", "text/html"]], allowed: [406] }],
    ["with Accept: application/xml", { headers: [["Accept", "application/xml"]], allowed: [406] }],
    ["with the Idempotency-Key of an accepted write", { headers: usedKey, allowed: "refused" }],
    ["with an unknown parameter", { query: "?kit=1", allowed: [400, 404] }],
    ["with fields", { query: "?fields=name", allowed: [400, 404] }],
    [`with ${PERMITTING}`, { query: PERMITTING, allowed: [400, 404] }],
    [
      "the current tag in parameters",
      (tag) => ({
        query: `?${PARAMETERS.map((name) => `${name}=${encodeURIComponent(tag)}`).join("&")}`,
        allowed: [400, 404],
      }),
    ],
  ];
  if (t.kit.profile.limited !== undefined) rows.push([LIMITED, ROW_OF_LIMITED]);
  if (method === "DELETE")
    return [
      ...rows,
      ["with a body", { body: "{}", allowed: "refused" }],
      ["with a body in chunks", { body: "{}", framing: "chunked", allowed: "refused" }],
      ["with an empty body", { body: "", allowed: "refused" }],
    ];
  const json = method === "PUT" ? "application/json" : t.kit.deployment.patchBody({ name: "x" }).mediaType;
  rows.push(
    ["in chunks", { framing: "chunked", allowed: [411, 501] }],
    [`as ${json}; charset=utf-8`, { mediaType: `${json}; charset=utf-8`, allowed: [415] }],
    [`as ${json.toUpperCase()}`, { mediaType: json.toUpperCase(), allowed: [400, 415] }],
    ...["application/x-www-form-urlencoded", "text/plain", "application/vnd.kit.v1+json"].map(
      (mediaType): Row => [`as ${mediaType}`, { mediaType, allowed: [400, 415, 422] }],
    ),
    ["without a Content-Type", { mediaType: null, allowed: [400, 415] }],
    ["with Content-Encoding: identity", { headers: [["Content-Encoding", "identity"]], allowed: [400, 415] }],
    ["with a body of 20,000 bytes", { padBytes: 20_000, allowed: [400, 413] }],
    ["with a body of 70,000 bytes", { padBytes: 70_000, allowed: [400, 413] }],
    ["with a body of 140,000 bytes", { padBytes: 140_000, allowed: [400, 413] }],
    ["with the stored values", { values: (stored) => stored }],
    ["as a repetition on the connection", { opening: "an accepted write", values: (stored) => stored }],
    ["with a new email alone", { values: ({ name }, { email }) => ({ name, email }) }],
    ["with a new name alone", { values: ({ email }, { name }) => ({ name, email }) }],
    [
      "with a name beyond ASCII",
      { values: (_, { name, email }) => ({ name: `${name} \u00c5\u0416`, email }), allowed: [400, 422] },
    ],
    [
      "the current tag in the body",
      (tag) => ({
        members: Object.fromEntries(MEMBERS.map((member) => [member, tag])),
        allowed: [400, 422],
      }),
    ],
    ["with a further member", { members: { kit: "x" }, allowed: [400, 422] }],
  );
  if (method === "PATCH" && t.kit.deployment.patchesMembers) {
    const ofId = JSON.stringify({ [t.kit.deployment.bodyNames.id]: t.kit.main.id });
    rows.push(
      ["that names no field", { body: "{}", allowed: [400, 422] }],
      ["of the id alone", { body: ofId, allowed: [400, 422] }],
    );
    const ofStatus = await patchOfStatus(t);
    if (ofStatus !== undefined) rows.push([OF_STATUS, { body: ofStatus, allowed: "refused" }]);
  }
  return rows;
}

export const OF_STATUS = "of the status alone, as it is";

/**
 * The values of a status are not shown (2.1), so the one that is stored is sent.
 *
 * @returns undefined where no read shows it, and where a PATCH is no object of members
 */
export async function patchOfStatus(t: Attempt): Promise<string | undefined> {
  const { deployment } = t.kit;
  if (!deployment.patchesMembers) return undefined;
  const status = await t.status(t.kit.main);
  return status === undefined ? undefined : JSON.stringify({ [deployment.bodyNames.status]: status });
}

/** Of a customer that was not made by the kit it could not be given back. */
export function withStatus({ kit }: Attempt, method: Method): Row[] {
  if (method === "DELETE" || !kit.main.made) return [];
  const members = { [kit.deployment.bodyNames.status]: "KitOther" };
  return [["with another status", { members, allowed: [400, 422] }]];
}

export const LIMITED = "by the limited caller";
export const ROW_OF_LIMITED: Way = { caller: "limited", allowed: "refused" };

/** Dots and a bare question mark leave as they stand over a socket alone, like every request here. */
export function addresses(customer: Customer): Customer[] {
  const { url } = customer;
  const dotted = url.replace(/\/(?=[^/]*$)/, "/./");
  return [...otherPaths(customer), { ...customer, url: dotted }, { ...customer, url: `${url}?` }];
}

export function shaped(derive: Derive, [what, shape, address]: AddressedRow): Derive {
  return (tag, former, customer) => {
    const form = derive(tag, former, customer);
    const other = address === undefined ? undefined : addresses(customer)[address];
    if (form === undefined || (address !== undefined && other === undefined)) return undefined;
    const { spelled = "If-Match", ...way } = typeof shape === "function" ? shape(tag) : shape;
    return {
      ...form,
      ...way,
      lines: form.lines.map(([, value]) => [spelled, value]),
      allowed: widest(form.allowed, way.allowed),
      optional: { way: what, allowed: form.allowed ?? [] },
      ...(other && { url: other.url }),
      what: `${form.what}, ${other === undefined ? what : `at ${pathEnd(other)}`}`,
    };
  };
}

function widest(a: Allowed = [], b: Allowed = []): Allowed {
  if (typeof a !== "string" && typeof b !== "string") return [...a, ...b];
  return a === "any" || b === "any" ? "any" : "refused";
}
