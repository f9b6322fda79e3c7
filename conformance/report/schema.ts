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

const words = <const T extends readonly string[]>(values: T) =>
  Type.Unsafe<T[number]>(Type.Union(values.map((value) => Type.Literal(value))));
const closed = <T extends Record<string, TSchema>>(properties: T) =>
  Type.Object(properties, { additionalProperties: false });
const OrNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const described = (description?: string) => (description === undefined ? {} : { description });
const text = (description?: string) => Type.String(described(description));
const integer = (description?: string) => Type.Integer(described(description));
const count = (description?: string) => Type.Integer({ minimum: 0, ...described(description) });
const flag = (description?: string) => Type.Boolean(described(description));
const Milliseconds = Type.Number({ minimum: 0 });
const Header = Type.Tuple([text(), text()]);

/** One request and what came of it. Bodies are cut at 4,096 characters; header values stand as sent, blanks included. */
export const Exchange = closed({
  n: Type.Integer({ minimum: 1, description: "Its number in the ledger of the run." }),
  purpose: text("Why it was sent, in a few words: `probe`, `control request`, `read before` …"),
  caller: text("`main`, `limited`, `other-tenant`, `anonymous`, `garbled`, `lengthened` or `metrics`."),
  via: words(["undici", "socket"]),
  framing: Type.Optional(words(["chunked", "http/1.0", "absolute-form"])),
  follows: Type.Optional(integer("`n` of the exchange before it on the same connection.")),
  request: closed({
    method: text(),
    url: text("Absolute."),
    headers: Type.Array(Header),
    body: OrNull(text()),
  }),
  reply: OrNull(
    closed({
      status: Type.Integer({ minimum: 100, maximum: 599 }),
      headers: Type.Array(Header),
      body: text(),
    }),
  ),
  failure: OrNull(text("Why no complete reply came, where none did.")),
  startedMs: Milliseconds,
  durationMs: Milliseconds,
});

/** A customer as a read showed it. `fields` is the body; null where the read did not answer with an object. */
export const State = closed({
  status: integer(),
  tag: OrNull(text("The ETag field value, byte for byte.")),
  fields: OrNull(Type.Record(text(), Type.Unknown())),
});

/** One thing that a rule asserts. It speaks each time it is looked at; the others speak whatever it says. */
export const Assertion = closed({
  id: Type.String({
    pattern: "^[A-Z]{3}-[0-9]{2}\\.[a-z0-9-]+$",
    description: "Permanent: `IFM-07.unchanged`.",
  }),
  looked: count("How often it was looked at."),
  fired: count("How often it did not hold."),
  level: words(LEVELS),
  detail: OrNull(text("What came instead, the first time it did not hold.")),
});

/** A probe and its control request: what is shown of a failure. Numbers refer to `exchanges` of the same rule. */
export const Evidence = closed({
  probe: text("What was tried: `PUT with the current tag weakened`."),
  header: OrNull(text("The header that matters, blanks and invisible characters made visible.")),
  allowed: text("What the specification allows here."),
  came: text("The answer: status, tag, and what is wrong with it."),
  sent: OrNull(integer("`n` of the exchange of the probe.")),
  before: OrNull(State),
  after: OrNull(State),
  unchanged: OrNull(flag("null: not read back, or not to be unchanged.")),
  control: OrNull(
    closed({
      differs: text("The one thing that differs."),
      n: integer(),
      status: integer(),
      ok: flag(),
    }),
  ),
  fired: Type.Array(text("Ids of the assertions that did not hold in this probe.")),
});

/** One contender of a race, or an event in it. */
export const Moment = closed({
  round: integer(),
  lane: text("Who: `writer 3`, `reader`, `delete`."),
  what: text("`PUT name=…`, `GET`."),
  sentMs: Milliseconds,
  answeredMs: OrNull(Milliseconds),
  status: OrNull(integer()),
  from: OrNull(text("The tag sent in If-Match.")),
  to: OrNull(text("The ETag of the answer.")),
  won: flag(),
});

export const Layer = closed({
  name: text("`nginx`, `Apache mod_deflate`, `Varnish`, `a shared cache` …"),
  sign: text("What gave it away."),
  fix: text("The line of configuration that fixes it."),
});

export const RuleResult = closed({
  id: Type.String({ pattern: "^[A-Z]{3}-[0-9]{2}$" }),
  family: words(FAMILIES),
  level: words(LEVELS),
  title: text(),
  section: text("Section of the specification: `4.2`."),
  rule: text("The rule in our own words."),
  impact: text("What goes wrong for someone when it is broken."),
  outcome: words(OUTCOMES),
  reason: text("Why this outcome, in one or two sentences. Never empty."),
  assertions: Type.Array(Assertion),
  leftOut: Type.Optional(
    Type.Array(text(), {
      description: "What --quick or --gentle left out; the outcome does not cover it.",
    }),
  ),
  evidence: Type.Array(Evidence, { description: "The first probes that fired; of a pass none." }),
  evidenceOmitted: Type.Optional(integer("How many more probes fired.")),
  exchanges: Type.Array(Exchange, { description: "Those that the evidence and the curl line refer to." }),
  timeline: Type.Array(Moment),
  layer: OrNull(Layer),
  curl: OrNull(text("Runs as pasted once the named variables are set.")),
  rerun: text("The command that runs this rule again."),
  expected: OrNull(
    closed({
      reason: text(),
      owner: text(),
      until: text("YYYY-MM-DD"),
    }),
  ),
  requests: count(),
  durationMs: Milliseconds,
});

/** Whether a method is there. `unknown`: not tried, or its answers do not tell. */
const Offer = words(["offered", "absent", "unknown"]);

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
  exitCode: integer(),
  headline: text("The verdict in a sentence."),
  counts: closed(
    Object.fromEntries(OUTCOMES.map((o) => [o, count()])) as Record<
      (typeof OUTCOMES)[number],
      ReturnType<typeof Type.Integer>
    >,
  ),
  rules: Type.Array(RuleResult),
  causes: Type.Optional(
    Type.Array(closed({ rule: text(), others: Type.Array(text()) }), {
      description:
        "Violations that others stand behind: rules that are broken or could not run as well. The one with most comes first.",
    }),
  ),
  notSelected: Type.Array(text(), { description: "Ids left out by --only and --skip." }),
  target: closed({
    baseUrl: text(),
    callers: Type.Array(text()),
    metricsUrls: Type.Array(text()),
    proxy: Type.Optional(text("Host and port of the proxy on the way.")),
    insecure: Type.Optional(flag("Certificates were not checked.")),
    via: Type.Array(text(), {
      description: "Intermediaries seen in Via, Server, X-Cache and the like.",
    }),
  }),
  inferred: Type.Array(closed({ point: text(), value: text(), evidence: text() })),
  found: closed({
    names: OrNull(Type.Record(text(), text(), { description: "JSON member by field." })),
    patch: Offer,
    patchMediaType: OrNull(text()),
    delete: Offer,
  }),
  options: closed({
    mode: words(["full", "quick", "read-only"]),
    rounds: integer(),
    connections: integer(),
    ratePerSecond: OrNull(Type.Number()),
    budget: integer(),
    exclusive: flag(),
    gentle: Type.Optional(flag("Probes that look like an attack were left out.")),
    allowIncomplete: flag(),
    command: text("The command line of this run, secrets as $NAME."),
    arguments: Type.Array(text(), {
      description: "The same, word by word: what `replay` runs again.",
    }),
  }),
  races: Type.Array(
    closed({
      rule: text(),
      rounds: integer(),
      overlapped: integer("Rounds in which at least two requests were open at once."),
      unknown: integer("Requests without a definite outcome: time-outs, 5xx, 429."),
      gapMs: OrNull(Milliseconds),
      note: text("What gap between check and write would have been seen."),
    }),
  ),
  fixtures: closed({
    made: integer(),
    given: integer(),
    removed: integer(),
    restored: integer(),
    left: Type.Array(closed({ id: text(), why: text() })),
    keptByDesign: Type.Array(text(), {
      description: "Ids that stay because the deployment offers no DELETE.",
    }),
    keptFailing: Type.Array(text(), { description: "Ids that --keep-failing has left in place." }),
  }),
  ledger: Type.Array(
    closed({
      n: integer(),
      rule: text("Rule id, or `set-up`, `clean-up`."),
      caller: text(),
      method: text(),
      path: text(),
      status: OrNull(integer()),
      startedMs: Milliseconds,
      durationMs: Milliseconds,
    }),
  ),
  trust: Type.Array(text(), { description: "Sentences on how far this run can be trusted." }),
  startedAt: text("ISO 8601, UTC."),
  durationMs: Milliseconds,
  requests: count(),
});

export type Outcome = (typeof OUTCOMES)[number];
export type Level = (typeof LEVELS)[number];
export type Family = (typeof FAMILIES)[number];
/** `IFM-07`. Permanent; a retired id is never given again. */
export type RuleId = `${Family}-${string}`;
/** What the deployment, the target or the kit has to offer before a rule can be tested. */
export type Need =
  | "write"
  | "create"
  | "patch"
  | "delete"
  | "limited"
  | "other-tenant"
  | "metrics"
  | "credentials"
  | "hostile";
export type Exchange = Static<typeof Exchange>;
export type State = Static<typeof State>;
export type Assertion = Static<typeof Assertion>;
export type Evidence = Static<typeof Evidence>;
export type Moment = Static<typeof Moment>;
export type Layer = Static<typeof Layer>;
export type RuleResult = Static<typeof RuleResult>;
export type Report = Static<typeof Report>;
