/** Deployments that keep every rule and choose otherwise wherever the specification leaves a choice. */
import { createHash } from "node:crypto";
import { CAMEL, type Deployment, UPPER } from "./service/sound-options.ts";

export type Variant = {
  id: string;
  /** The choice, and where the specification leaves it. */
  does: string;
  deployment: Partial<Deployment>;
  /** TOML that QA would write for such a deployment; most need none. */
  profile?: string;
  /** Callers and metrics that the run is not given. */
  without?: ("limited" | "other" | "metrics")[];
  /** Rules of level SHOULD that warn of the choice. */
  warns?: string[];
  /** Rules that cannot be decided there. */
  undecided?: string[];
  /** Customers are given by id. */
  given?: boolean;
  /** It refuses or loses requests that the other choices of a bundle are to answer, or takes the haste from their races. */
  alone?: true;
};

const opaque = (version: number, id: string): string =>
  createHash("sha256").update(`${id}/${version}`).digest("base64url").slice(0, 16);

export const VARIANTS: Variant[] = [
  { id: "as-sampled", does: "the samples of the specification, to the letter", deployment: {} },
  { id: "camel-case", does: "members in camelCase (2.1)", deployment: { members: CAMEL } },
  {
    id: "upper-case",
    does: "members in capitals (2.1)",
    deployment: { members: UPPER },
    profile: '[json]\nid = "ID"\nname = "NAME"\nemail = "EMAIL"\nstatus = "STATUS"\n',
  },
  { id: "put-200", does: "PUT answers 200 with the customer (4.2)", deployment: { putAnswer: 200 } },
  {
    id: "all-200",
    does: "PUT, PATCH and DELETE answer 200 with a body, DELETE with an ETag (4.2, 4.3)",
    deployment: { putAnswer: 200, patchAnswer: 200, deleteAnswer: { status: 200, etag: true } },
  },
  {
    id: "delete-202",
    does: "DELETE answers 202 and reads answer 410 afterwards (4.3)",
    deployment: { deleteAnswer: { status: 202, etag: false }, afterDelete: 410 },
  },
  {
    id: "soft-delete",
    does: "DELETE changes the status and the tag, and the customer stays readable (4.3)",
    deployment: { afterDelete: "soft", deleteAnswer: { status: 204, etag: true } },
  },
  {
    id: "delete-idempotent",
    does: "DELETE answers 204 for a customer that is not there, also for another tenant's (4.3, 7)",
    deployment: { deleteMissing: 204 },
    warns: ["ORD-08", "ATM-07"],
  },
  {
    id: "no-patch-no-delete",
    does: "offers neither PATCH nor DELETE to this caller (4.3 shows no payloads)",
    deployment: { offersPatchAndDelete: false },
    profile: "[patch]\noffered = false\n[delete]\noffered = false\n",
    alone: true,
  },
  {
    id: "json-patch",
    does: "PATCH takes application/json-patch+json alone (4.3)",
    deployment: { patch: { format: "json-patch", mediaTypes: ["application/json-patch+json"] } },
  },
  {
    id: "patch-json-only",
    does: "PATCH takes application/json alone (4.3)",
    deployment: { patch: { format: "merge", mediaTypes: ["application/json"] } },
  },
  {
    id: "patch-merge-only",
    does: "PATCH takes application/merge-patch+json alone (4.3)",
    deployment: { patch: { format: "merge", mediaTypes: ["application/merge-patch+json"] } },
  },
  {
    id: "api-key",
    does: "credentials in X-Api-Key, without a scheme (5.1)",
    deployment: { credential: { header: "X-Api-Key", scheme: "" } },
  },
  {
    id: "tag-with-commas",
    does: "tokens with commas and spaces' neighbours inside the quotes (2.4.1)",
    deployment: { tag: (version, id) => `"v,${version},${id.slice(0, 4)}"` },
  },
  {
    id: "tag-looks-weak",
    does: "tokens with W/ inside the quotes (2.4.1)",
    deployment: { tag: (version) => `"W/${version}"` },
  },
  {
    id: "tag-like-a-list",
    does: "tokens with slashes, stars and a backslash inside the quotes (2.4.1)",
    deployment: { tag: (version) => `"*/a\\b,*,${version}"` },
  },
  {
    id: "tag-counter",
    does: "tokens that count up (2.4.3)",
    deployment: { tag: (version) => `"${version}"` },
  },
  {
    id: "tag-descending",
    does: "tokens that count down (2.4.3)",
    deployment: { tag: (version) => `"${1_000_000_000 - version}"` },
  },
  {
    id: "tag-nanoseconds",
    does: "tokens that are times in nanoseconds (2.4.3)",
    deployment: { tag: () => `"${Math.round(performance.now() * 1e6)}"` },
  },
  {
    id: "tag-hex",
    does: "tokens in hexadecimal digits of both cases (2.4.3)",
    deployment: { tag: (version) => `"0x${version.toString(16)}AaBb"` },
  },
  {
    id: "tag-random",
    does: "tokens without any order (2.4.3)",
    deployment: { tag: (version, id) => `"${opaque(version, id)}"` },
  },
  {
    id: "tag-long",
    does: "tokens of a thousand characters (2.4.1)",
    deployment: { tag: (version, id) => `"${opaque(version, id).repeat(63)}"` },
  },
  {
    id: "tag-not-ascii",
    does: "tokens with bytes above 0x7F, as RFC 9110 allows (2.4.2)",
    deployment: { tag: (version) => `"\u00e9\u00df${version}"` },
  },
  {
    id: "tag-one-character",
    does: "tokens of punctuation and a single changing character (2.4.1)",
    deployment: { tag: (version) => `"!#$%&'()+-./:;<=>?@[]^_{|}~${version}"` },
  },
  {
    id: "ids-given",
    does: "no POST; customers are given by id (4.4)",
    deployment: { create: "absent", seeded: 6 },
    given: true,
  },
  {
    id: "create-id-only",
    does: "POST answers 200 with nothing but the id (4.4)",
    deployment: { create: { status: 200, body: "id", etag: false } },
  },
  {
    id: "create-location-only",
    does: "POST answers 201 with Location alone (4.4)",
    deployment: { create: { status: 201, body: "none", etag: false } },
  },
  {
    id: "metrics-nowhere",
    does: "no metrics that the kit may see (7.4)",
    deployment: { metrics: "absent" },
    without: ["metrics"],
  },
  {
    id: "metrics-labelled",
    does: "counters split by labels with escapes in them, on two replicas, as OpenMetrics (7.4)",
    deployment: { metrics: { labels: true, format: "openmetrics", replicas: 2, guarded: true } },
  },
  {
    id: "metrics-open",
    does: "labelled counters, served to anyone (7.4)",
    deployment: { metrics: { labels: true, format: "prometheus", replicas: 1, guarded: false } },
  },
  {
    id: "busy",
    does: "others' refusals are counted meanwhile (7.4)",
    deployment: { busyMetrics: true },
    undecided: ["MET-03", "MET-04", "MET-05", "MET-06", "MET-07"],
  },
  { id: "no-documents", does: "refusals have no body (7)", deployment: { problems: "none" } },
  {
    id: "own-documents",
    does: "refusals have a JSON body of their own kind (7.5)",
    deployment: { problems: "json" },
  },
  { id: "forbidden-400", does: "a forbidden field is 400 (7.6)", deployment: { forbiddenStatus: 400 } },
  { id: "forbidden-404", does: "a forbidden field is 404 (7.6)", deployment: { forbiddenStatus: 404 } },
  { id: "forbidden-422", does: "a forbidden field is 422 (7.6)", deployment: { forbiddenStatus: 422 } },
  { id: "invalid-body-422", does: "a bad body is 422 (7)", deployment: { invalidBodyStatus: 422 } },
  {
    id: "body-judged-early",
    does: "what is no JSON is refused before all checks, another bad body once If-Match is there (4.2 does not say when a body is judged)",
    deployment: { bodyJudged: "early" },
    warns: ["ORD-10", "ORD-11"],
  },
  {
    id: "other-tenant-403",
    does: "another tenant's customer is 403 (5.2)",
    deployment: { otherTenantStatus: 403 },
  },
  {
    id: "limited-reads-only",
    does: "the limited caller may not write (5)",
    deployment: { limitedMayWrite: false },
    alone: true,
  },
  {
    id: "main-alone-creates",
    does: "neither the limited caller nor the other tenant's may create (4.4, 5)",
    deployment: { othersMayCreate: false },
    alone: true,
  },
  {
    id: "limited-default-id",
    does: "the default set is the id alone (4.1.3)",
    deployment: { defaultFields: ["id"] },
  },
  {
    id: "default-everything",
    does: "the default set holds the status and CreatedAt too (4.1.3)",
    deployment: { defaultFields: ["id", "name", "email", "status"], defaultShowsCreatedAt: true },
  },
  {
    id: "default-without-id",
    does: "the default set leaves the id out (4.1.3)",
    deployment: { defaultFields: ["name", "status"] },
  },
  {
    id: "empty-fields-default",
    does: "an empty fields means the default set, a repeated name is refused (7.7)",
    deployment: { fieldsEmpty: 200, fieldsRepeated: 400 },
  },
  {
    id: "normalizes",
    does: "stored values are trimmed, emails in lower case (2.1)",
    deployment: { normalize: "trim-and-lower-case" },
  },
  {
    id: "trims-unicode",
    does: "String.trim around If-Match, no-break space included (4.2)",
    deployment: { trim: "unicode" },
  },
  { id: "slow", does: "every answer takes its time", deployment: { latencyMs: 25 }, alone: true },
  { id: "gzip-strong", does: "compresses reads and keeps the tag as it is", deployment: { gzip: true } },
  { id: "base-path", does: "stands under a path", deployment: { basePath: "/api/v2/crm" } },
  {
    id: "chunked",
    does: "chunked replies, header names in lower case",
    deployment: { framing: "chunked", etagHeaderName: "etag" },
  },
  {
    id: "closing",
    does: "closes the connection after each reply",
    deployment: { framing: "close" },
    alone: true,
  },
  {
    id: "fields-at-most-2",
    does: "at most two names in fields (8.1)",
    deployment: { fieldsMax: 2 },
    alone: true,
  },
  {
    id: "fields-at-most-3",
    does: "at most three names in fields (8.1)",
    deployment: { fieldsMax: 3 },
    alone: true,
  },
  {
    id: "status-settles",
    does: "a job settles the status 50 ms after each write, under the same tag (2.4.6)",
    deployment: { statusSettles: true },
  },
  {
    id: "activated-after-create",
    does: "a job activates each new customer 40 ms after its create, under a new tag (2.1, 2.4.6)",
    deployment: { activatesMs: 40 },
    alone: true,
  },
  {
    id: "status-number",
    does: "shows the status as its number in the enumeration (2.1)",
    deployment: {
      showStatus: (status) => ["Active", "Pending", "Deleted"].indexOf(status),
      defaultFields: ["id", "name", "email", "status"],
    },
  },
  {
    id: "status-null",
    does: "knows no status of its customers yet (2.1)",
    deployment: { showStatus: () => null },
  },
  {
    id: "hangs-up",
    does: "ends some connections unannounced",
    deployment: { framing: "hang-up" },
    alone: true,
  },
  {
    id: "limited-reads-nothing",
    does: "the limited caller's role exposes no field at all (5.2)",
    deployment: { limitedMayRead: "nothing", limitedMayWrite: false },
    undecided: ["AUT-06", "AUT-14"],
  },
  {
    id: "conditional-reads",
    does: "answers 304 where If-None-Match holds the current tag, and 412, which is not counted, where If-Match does not (4.1)",
    deployment: { conditionalReads: true },
  },
  {
    id: "further-headers",
    does: "sends headers that the specification does not know, and says on each reply how much of a limit is left (8.3)",
    deployment: {
      furtherHeaders: [
        ["RateLimit", '"default";r=50;t=30'],
        ["RateLimit-Policy", '"default";q=100;w=60'],
        ["X-Request-Id", "5f1d9a7c"],
        ["Server-Timing", "db;dur=1.2"],
        ["Set-Cookie", "a=1; Path=/"],
        ["Set-Cookie", "b=2"],
        ["Last-Modified", "Sun, 29 Nov 2026 00:00:00 GMT"],
        ["X-ETag", '"of-another-kind"'],
      ],
    },
  },
  { id: "early-hints", does: "sends 103 before each reply", deployment: { earlyHints: true } },
  {
    id: "idempotency-keys",
    does: "answers a repeated write under one Idempotency-Key as the first, and another one under it with 422 (4.2 does not know the header)",
    deployment: { idempotencyKeys: true },
  },
  {
    id: "plain-writes-only",
    does: "refuses writes with parameters by 400, in chunks by 411, over HTTP/1.0 by 505 (4.2 shows none)",
    deployment: { plainWritesOnly: true },
    alone: true,
  },
  { id: "no-head", does: "knows no HEAD (4)", deployment: { head: "refused" }, alone: true },
  {
    id: "head-of-a-page",
    does: "answers each HEAD with 200 and the tag of a page, which stands before the service (4.4)",
    deployment: { head: "elsewhere" },
    alone: true,
  },
  {
    id: "ids-in-a-row",
    does: "counts its ids up, so that each has neighbours (2.1)",
    deployment: { ids: "in-a-row" },
  },
  {
    id: "patch-of-one-member",
    does: "takes one member in a PATCH and refuses more (4.3)",
    deployment: { patchMembersMax: 1 },
    alone: true,
  },
  { id: "one-caller", does: "only one caller is given", deployment: {}, without: ["limited", "other"] },
];
