/**
 * report.json: the one record of a run. Every other report (terminal, JUnit, HTML, Markdown, SARIF) is drawn
 * from it alone, so `report --from report.json` makes them all again. Times are milliseconds since the start
 * of the run unless a name says otherwise. No secret stands in it: values of credentials are `$NAME`.
 */
import { type Static, type TSchema, Type } from "@sinclair/typebox";

export const OUTCOMES = [
  "pass",
  "violation",
  "warning",
  "not-applicable",
  "could-not-run",
  "inconclusive",
  "kit-error",
] as const;

const LEVELS = ["MUST", "SHOULD"] as const;

export const FAMILIES = ["ETG", "IFM", "ORD", "ATM", "FLD", "AUT", "PRB", "MET", "ENV"] as const;

/** What the deployment, the target or the kit has to offer before a rule can be tested. */
export const NEEDS = [
  "write",
  "create",
  "patch",
  "delete",
  "limited",
  "other-tenant",
  "metrics",
  "credentials",
  "hostile",
] as const;

const words = <const T extends readonly string[]>(values: T) =>
  Type.Unsafe<T[number]>(Type.Union(values.map((value) => Type.Literal(value))));
const closed = <T extends Record<string, TSchema>>(properties: T) =>
  Type.Object(properties, { additionalProperties: false });
const OrNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const Milliseconds = Type.Number({ minimum: 0 });
const Header = Type.Tuple([Type.String(), Type.String()]);

/** One request and what came of it. Bodies are cut at 4,096 characters; header values stand as sent, blanks included. */
export const Exchange = closed({
  n: Type.Integer({ minimum: 1, description: "Its number in the ledger of the run." }),
  purpose: Type.String({
    description: "Why it was sent, in a few words: `probe`, `control request`, `read before` …",
  }),
  caller: Type.String({
    description: "`main`, `limited`, `other-tenant`, `anonymous`, `garbled`, `lengthened` or `metrics`.",
  }),
  via: words(["undici", "socket"] as const),
  framing: Type.Optional(words(["chunked", "http/1.0", "absolute-form"] as const)),
  follows: Type.Optional(
    Type.Integer({ description: "`n` of the exchange before it on the same connection." }),
  ),
  request: closed({
    method: Type.String(),
    url: Type.String({ description: "Absolute." }),
    headers: Type.Array(Header),
    body: OrNull(Type.String()),
  }),
  reply: OrNull(
    closed({
      status: Type.Integer({ minimum: 100, maximum: 599 }),
      headers: Type.Array(Header),
      body: Type.String(),
    }),
  ),
  failure: OrNull(Type.String({ description: "Why no complete reply came, where none did." })),
  startedMs: Milliseconds,
  durationMs: Milliseconds,
});

/** A customer as a read showed it. `fields` is the body; null where the read did not answer with an object. */
export const State = closed({
  status: Type.Integer(),
  tag: OrNull(Type.String({ description: "The ETag field value, byte for byte." })),
  fields: OrNull(Type.Record(Type.String(), Type.Unknown())),
});

/** One thing that a rule asserts. It speaks each time it is looked at; the others speak whatever it says. */
export const Assertion = closed({
  id: Type.String({
    pattern: "^[A-Z]{3}-[0-9]{2}\\.[a-z0-9-]+$",
    description: "Permanent: `IFM-07.unchanged`.",
  }),
  looked: Type.Integer({ minimum: 0, description: "How often it was looked at." }),
  fired: Type.Integer({ minimum: 0, description: "How often it did not hold." }),
  level: words(LEVELS),
  detail: OrNull(Type.String({ description: "What came instead, the first time it did not hold." })),
});

/** A probe and its control request: what is shown of a failure. Numbers refer to `exchanges` of the same rule. */
export const Evidence = closed({
  probe: Type.String({ description: "What was tried: `PUT with the current tag weakened`." }),
  header: OrNull(
    Type.String({ description: "The header that matters, blanks and invisible characters made visible." }),
  ),
  allowed: Type.String({ description: "What the specification allows here." }),
  came: Type.String({ description: "The answer: status, tag, and what is wrong with it." }),
  sent: OrNull(Type.Integer({ description: "`n` of the exchange of the probe." })),
  before: OrNull(State),
  after: OrNull(State),
  unchanged: OrNull(Type.Boolean({ description: "null: not read back, or not to be unchanged." })),
  control: OrNull(
    closed({
      differs: Type.String({ description: "The one thing that differs." }),
      n: Type.Integer(),
      status: Type.Integer(),
      ok: Type.Boolean(),
    }),
  ),
  fired: Type.Array(Type.String({ description: "Ids of the assertions that did not hold in this probe." })),
});

/** One contender of a race, or an event in it. */
export const Moment = closed({
  round: Type.Integer(),
  lane: Type.String({ description: "Who: `writer 3`, `reader`, `delete`." }),
  what: Type.String({ description: "`PUT name=…`, `GET`." }),
  sentMs: Milliseconds,
  answeredMs: OrNull(Milliseconds),
  status: OrNull(Type.Integer()),
  from: OrNull(Type.String({ description: "The tag sent in If-Match." })),
  to: OrNull(Type.String({ description: "The ETag of the answer." })),
  won: Type.Boolean(),
});

export const Layer = closed({
  name: Type.String({ description: "`nginx`, `Apache mod_deflate`, `Varnish`, `a shared cache` …" }),
  sign: Type.String({ description: "What gave it away." }),
  fix: Type.String({ description: "The line of configuration that fixes it." }),
});

export const RuleResult = closed({
  id: Type.String({ pattern: "^[A-Z]{3}-[0-9]{2}$" }),
  family: words(FAMILIES),
  level: words(LEVELS),
  title: Type.String(),
  section: Type.String({ description: "Section of the specification: `4.2`." }),
  rule: Type.String({ description: "The rule in our own words." }),
  impact: Type.String({ description: "What goes wrong for someone when it is broken." }),
  outcome: words(OUTCOMES),
  reason: Type.String({ description: "Why this outcome, in one or two sentences. Never empty." }),
  assertions: Type.Array(Assertion),
  leftOut: Type.Optional(
    Type.Array(Type.String(), {
      description: "What --quick or --gentle left out; the outcome does not cover it.",
    }),
  ),
  evidence: Type.Array(Evidence, { description: "The first probes that fired; of a pass none." }),
  evidenceOmitted: Type.Optional(Type.Integer({ description: "How many more probes fired." })),
  exchanges: Type.Array(Exchange, { description: "Those that the evidence and the curl line refer to." }),
  timeline: Type.Array(Moment),
  layer: OrNull(Layer),
  curl: OrNull(Type.String({ description: "Runs as pasted once the named variables are set." })),
  rerun: Type.String({ description: "The command that runs this rule again." }),
  expected: OrNull(
    closed({
      reason: Type.String(),
      owner: Type.String(),
      until: Type.String({ description: "YYYY-MM-DD" }),
    }),
  ),
  requests: Type.Integer({ minimum: 0 }),
  durationMs: Milliseconds,
});

/** Whether a method is there. `unknown`: not tried, or its answers do not tell. */
const Offer = words(["offered", "absent", "unknown"] as const);

export const SCHEMA = "customers-conformance/1";

const VERDICTS = [
  "conforms",
  "violates",
  "incomplete",
  "unreachable",
  "fixtures-left",
  "kit-fault",
  "interrupted",
] as const;

export const Report = closed({
  schema: Type.Literal(SCHEMA),
  verdict: words(VERDICTS),
  exitCode: Type.Integer(),
  headline: Type.String({ description: "The verdict in a sentence." }),
  counts: closed(
    Object.fromEntries(OUTCOMES.map((o) => [o, Type.Integer({ minimum: 0 })])) as Record<
      (typeof OUTCOMES)[number],
      ReturnType<typeof Type.Integer>
    >,
  ),
  rules: Type.Array(RuleResult),
  causes: Type.Optional(
    Type.Array(closed({ rule: Type.String(), others: Type.Array(Type.String()) }), {
      description:
        "Violations that others stand behind: rules that are broken or could not run as well. The one with most comes first.",
    }),
  ),
  notSelected: Type.Array(Type.String(), { description: "Ids left out by --only and --skip." }),
  target: closed({
    baseUrl: Type.String(),
    callers: Type.Array(Type.String()),
    metricsUrls: Type.Array(Type.String()),
    proxy: Type.Optional(Type.String({ description: "Host and port of the proxy on the way." })),
    insecure: Type.Optional(Type.Boolean({ description: "Certificates were not checked." })),
    via: Type.Array(Type.String(), {
      description: "Intermediaries seen in Via, Server, X-Cache and the like.",
    }),
  }),
  inferred: Type.Array(closed({ point: Type.String(), value: Type.String(), evidence: Type.String() })),
  found: closed({
    names: OrNull(Type.Record(Type.String(), Type.String(), { description: "JSON member by field." })),
    patch: Offer,
    patchMediaType: OrNull(Type.String()),
    delete: Offer,
  }),
  options: closed({
    mode: words(["full", "quick", "read-only"] as const),
    rounds: Type.Integer(),
    connections: Type.Integer(),
    ratePerSecond: OrNull(Type.Number()),
    budget: Type.Integer(),
    exclusive: Type.Boolean(),
    gentle: Type.Optional(Type.Boolean({ description: "Probes that look like an attack were left out." })),
    allowIncomplete: Type.Boolean(),
    command: Type.String({ description: "The command line of this run, secrets as $NAME." }),
    arguments: Type.Array(Type.String(), {
      description: "The same, word by word: what `replay` runs again.",
    }),
  }),
  races: Type.Array(
    closed({
      rule: Type.String(),
      rounds: Type.Integer(),
      overlapped: Type.Integer({ description: "Rounds in which at least two requests were open at once." }),
      unknown: Type.Integer({ description: "Requests without a definite outcome: time-outs, 5xx, 429." }),
      gapMs: OrNull(Milliseconds),
      note: Type.String({ description: "What gap between check and write would have been seen." }),
    }),
  ),
  fixtures: closed({
    made: Type.Integer(),
    given: Type.Integer(),
    removed: Type.Integer(),
    restored: Type.Integer(),
    left: Type.Array(closed({ id: Type.String(), why: Type.String() })),
    keptByDesign: Type.Array(Type.String(), {
      description: "Ids that stay because the deployment offers no DELETE.",
    }),
    keptFailing: Type.Array(Type.String(), { description: "Ids that --keep-failing has left in place." }),
  }),
  ledger: Type.Array(
    closed({
      n: Type.Integer(),
      rule: Type.String({ description: "Rule id, or `set-up`, `clean-up`." }),
      caller: Type.String(),
      method: Type.String(),
      path: Type.String(),
      status: OrNull(Type.Integer()),
      startedMs: Milliseconds,
      durationMs: Milliseconds,
    }),
  ),
  trust: Type.Array(Type.String(), { description: "Sentences on how far this run can be trusted." }),
  startedAt: Type.String({ description: "ISO 8601, UTC." }),
  durationMs: Milliseconds,
  requests: Type.Integer({ minimum: 0 }),
});

export type Outcome = (typeof OUTCOMES)[number];
export type Level = (typeof LEVELS)[number];
export type Family = (typeof FAMILIES)[number];
/** `IFM-07`. Permanent; a retired id is never given again. */
export type RuleId = `${Family}-${string}`;
export type Need = (typeof NEEDS)[number];
export type Exchange = Static<typeof Exchange>;
export type State = Static<typeof State>;
export type Assertion = Static<typeof Assertion>;
export type Evidence = Static<typeof Evidence>;
export type Moment = Static<typeof Moment>;
export type Layer = Static<typeof Layer>;
export type RuleResult = Static<typeof RuleResult>;
export type Report = Static<typeof Report>;
