/**
 * What the specification leaves to a deployment, as data. Every value that these types allow is conforming;
 * the sound server follows them, and the conforming variants are rows of them.
 */
export const FIELDS = ["id", "name", "email", "status"] as const;
export type Field = (typeof FIELDS)[number];

/** Fields that a sound server can show, and the two that only a faulty one does. */
export type Shown = (Field | "createdAt" | "rowVersion")[] | "default";

export type Deployment = {
  /** Path before `/customers`, without a final slash. */
  basePath: string;
  /** JSON member names (2.1: the casing is not shown). */
  members: Record<Field | "createdAt", string>;
  /** Which request header carries the credential, and what stands before it. */
  credential: { header: string; scheme: string };
  create: { status: 200 | 201; body: "customer" | "id" | "none"; etag: boolean } | "absent";
  putAnswer: 200 | 204;
  patchAnswer: 200 | 204;
  deleteAnswer: { status: 200 | 202 | 204; etag: boolean };
  afterDelete: 404 | 410 | "soft";
  /** DELETE of a customer that is not there: 7 says 404 of GET and PUT alone. */
  deleteMissing: 204 | 404;
  patch: { format: "merge" | "json-patch"; mediaTypes: string[] };
  offersPatchAndDelete: boolean;
  problems: "problem+json" | "json" | "none";
  forbiddenStatus: 400 | 403 | 404 | 422;
  invalidBodyStatus: 400 | 422;
  /**
   * When a body is judged. `early`: as soon as 4.2 leaves room, which is before all checks where it is no JSON at all, and
   * else after If-Match was found to be there, which is the first of them.
   */
  bodyJudged: "early" | "last";
  otherTenantStatus: 403 | 404;
  /** A repeated write under one Idempotency-Key is answered as the first; another one under it is 422. */
  idempotencyKeys: boolean;
  /** Writes with parameters, in chunks or over HTTP/1.0 are not taken: 4.2 shows none. */
  plainWritesOnly: boolean;
  /** Callers beside the main one. */
  othersMayCreate: boolean;
  limitedMayWrite: boolean;
  limitedMayRead: "all-but-email" | "nothing";
  defaultFields: Field[];
  defaultShowsCreatedAt: boolean;
  /** The entity-tag of the nth version, quotes included. */
  tag: (version: number, id: string) => string;
  /** Most names in one `fields` (8.1: its value is not shown); more are 400. */
  fieldsMax: number;
  fieldsEmpty: 200 | 400;
  fieldsRepeated: 200 | 400;
  /** What is done to a stored value: 2.1 fixes its type alone. */
  normalize: "as-sent" | "trim-and-lower-case";
  metrics:
    | { labels: boolean; format: "prometheus" | "openmetrics"; replicas: 1 | 2; guarded: boolean }
    | "absent";
  /** 4.4 does not show HEAD. `elsewhere`: a gateway sends it to a page that is always there, with a tag of its own. */
  head: "as-get" | "refused" | "elsewhere";
  /** `in-a-row`: ids that differ in their last characters. */
  ids: "random" | "in-a-row";
  /** Most members of a PATCH (4.3 does not show its shape). */
  patchMembersMax: number;
  /** If-None-Match and If-Match on reads are looked at (RFC 9110 13.1); the specification does not speak of it. */
  conditionalReads: boolean;
  /** Blanks that are cut from around If-Match: SP and HTAB, or what String.trim takes. */
  trim: "ows" | "unicode";
  latencyMs: number;
  /** `hang-up`: ends some connections without announcing it, as any server may when they are idle. */
  framing: "length" | "chunked" | "close" | "hang-up";
  etagHeaderName: string;
  gzip: boolean;
  /** Header lines beside those that the specification knows, on every reply. */
  furtherHeaders: [name: string, value: string][];
  /** Sends 103 before each reply (RFC 8297). */
  earlyHints: boolean;
  cacheControl: string;
  /** A job of the service settles the status after each write, under the same tag (2.4.6 allows what cannot make an update incorrect). */
  statusSettles: boolean;
  /** A job activates each new customer so long after its create, under a new tag (2.4.6); 0: there is none. */
  activatesMs: number;
  /** How a body shows the status: 2.1 says that it is an enumeration, and not by which JSON type. */
  showStatus: (status: string) => string | number | null;
  /** Customers that exist from the start and whose ids a profile may name. */
  seeded: number;
  /** Others' traffic: refusals counted beside every request that the kit sends. */
  busyMetrics: boolean;
};

function base64(version: number): string {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(version) + 0xfbe0_0000n);
  return bytes.toString("base64");
}

const PASCAL = { id: "Id", name: "Name", email: "Email", status: "Status", createdAt: "CreatedAt" };
export const CAMEL = { id: "id", name: "name", email: "email", status: "status", createdAt: "createdAt" };
export const UPPER = { id: "ID", name: "NAME", email: "EMAIL", status: "STATUS", createdAt: "CREATED_AT" };

/** The specification's own samples, wherever it shows one. */
export const PLAIN: Deployment = {
  basePath: "",
  members: PASCAL,
  credential: { header: "Authorization", scheme: "Bearer " },
  create: { status: 201, body: "customer", etag: true },
  putAnswer: 204,
  patchAnswer: 204,
  deleteAnswer: { status: 204, etag: false },
  afterDelete: 404,
  deleteMissing: 404,
  patch: { format: "merge", mediaTypes: ["application/merge-patch+json", "application/json"] },
  offersPatchAndDelete: true,
  problems: "problem+json",
  forbiddenStatus: 403,
  invalidBodyStatus: 400,
  bodyJudged: "last",
  otherTenantStatus: 404,
  idempotencyKeys: false,
  plainWritesOnly: false,
  othersMayCreate: true,
  limitedMayWrite: true,
  limitedMayRead: "all-but-email",
  defaultFields: ["id", "name", "email"],
  defaultShowsCreatedAt: false,
  tag: (version) => `"${base64(version)}"`,
  fieldsMax: 5000,
  fieldsEmpty: 400,
  fieldsRepeated: 200,
  normalize: "as-sent",
  metrics: { labels: false, format: "prometheus", replicas: 1, guarded: true },
  head: "as-get",
  ids: "random",
  patchMembersMax: Number.POSITIVE_INFINITY,
  conditionalReads: false,
  trim: "ows",
  latencyMs: 0,
  framing: "length",
  etagHeaderName: "ETag",
  gzip: false,
  furtherHeaders: [],
  earlyHints: false,
  cacheControl: "private, no-cache",
  statusSettles: false,
  activatesMs: 0,
  showStatus: (status) => status,
  seeded: 0,
  busyMetrics: false,
};
