/** MET: the two counters of 7.4. */
import { customerOf, type Fault, instead } from "../fault.ts";
import { headerLines, type Request } from "../service/http-socket.ts";
import { type Counter, isWrite, soundSeams } from "../service/seams.ts";
import type { Service } from "../service/service.ts";
import { every } from "../turn.ts";

const swap = (counter: Counter): Counter => (counter === "failed" ? "required" : "failed");

type Answered = { status: number; method: string; request: Request; service: Service };

/** A different reading of which counters a reply moves. */
const counting = (
  id: string,
  rule: string,
  does: string,
  wrong: (sound: Counter[], answered: Answered) => Counter[],
): Fault => ({
  id,
  rule,
  does,
  plant: instead("counted", (right, { status }, request, service) =>
    wrong(right, { status, method: request.method, request, service }),
  ),
});

/** Does not count what it answers so. */
const uncounted = (id: string, rule: string, does: string, when: (answered: Answered) => boolean): Fault =>
  counting(id, rule, does, (right, answered) => (when(answered) ? [] : right));
/** Counts answers besides 412 as failed preconditions. */
const overcounted = (id: string, does: string, when: (answered: Answered) => boolean): Fault =>
  counting(id, "MET-05", does, (right, answered) => (when(answered) ? ["failed"] : right));

const scraping = (id: string, rule: string, does: string, change: (text: string) => string): Fault => ({
  id,
  rule,
  does,
  plant: instead("scrape", (_sound, text) => change(text)),
});

const sent = (request: Request) => headerLines(request, "if-match").join().trim();

export const METRICS_FAULTS: Fault[] = [
  {
    ...overcounted(
      "304-counted-as-failed",
      "counts a 304 as a failed precondition",
      ({ status }) => status === 304,
    ),
    deployment: { conditionalReads: true },
  },
  overcounted(
    "accepted-patch-counted",
    "counts every PATCH that had to be merged as a failed precondition",
    ({ status, method }) => method === "PATCH" && status < 300,
  ),
  counting(
    "foreign-write-counted",
    "MET-09",
    "counts the writes of other tenants, which it answers 404, as failed preconditions",
    (right, { status, request, service }) =>
      status === 404 && isWrite(request) && service.caller(request) === "other" ? ["failed"] : right,
  ),
  {
    ...counting(
      "405-counted-as-required",
      "MET-09",
      "counts what its router refuses before any handler as a required precondition",
      (right, { status }) => (status === 405 ? ["required"] : right),
    ),
    // It sends reads as POST.
    alsoRun: ["AUT-15"],
  },
  scraping("counters-wrap", "MET-09", "keeps its counters in a byte, which begins again at 256", (text) =>
    text.replace(/(?<=_total(?:\{[^}]*\})? )\d+/g, (count) => String(Number(count) % 256)),
  ),
  uncounted(
    "second-of-connection-not-counted",
    "MET-09",
    "counts what the first request of a connection was answered",
    ({ request }) => request.connection.requests > 0,
  ),
  uncounted(
    "428-of-new-tenant-not-counted",
    "MET-09",
    "names the tenants to count in its configuration, and one has come since",
    ({ status, request, service }) => status === 428 && service.caller(request) === "other",
  ),
  uncounted(
    "with-parameters-not-counted",
    "MET-09",
    "counts by the address in its log, and finds none of its routes in one with parameters",
    ({ request }) => request.query !== "",
  ),
  uncounted(
    "in-chunks-not-counted",
    "MET-09",
    "counts where the length of the body is measured, which a body in chunks does not tell",
    ({ request }) => headerLines(request, "transfer-encoding").length > 0,
  ),
  uncounted("428-not-counted", "MET-01", "does not count 428", ({ status }) => status === 428),
  uncounted("412-not-counted", "MET-02", "does not count 412", ({ status }) => status === 412),
  counting("428-counted-as-412", "MET-03", "counts a 428 as a failed precondition", (right) =>
    right.map(() => "failed"),
  ),
  counting("412-counted-as-428", "MET-04", "counts a 412 as a required precondition", (right) =>
    right.map(() => "required"),
  ),
  counting("counters-swapped", "MET-01", "has the two counters the wrong way round", (right) =>
    right.map(swap),
  ),
  counting("both-counted", "MET-03", "moves both counters on either refusal", (right) =>
    right.length === 0 ? [] : ["required", "failed"],
  ),
  counting("counted-twice", "MET-01", "counts in the filter and in the handler", (right) => [
    ...right,
    ...right,
  ]),
  counting("all-writes-counted", "MET-05", "counts accepted writes as well", (right, { status, request }) =>
    isWrite(request) && status < 300 ? ["required", "failed"] : right,
  ),
  overcounted(
    "404-counted-as-412",
    "counts writes to missing customers as failed preconditions",
    ({ status, request }) => isWrite(request) && status === 404,
  ),
  overcounted(
    "bad-reads-counted",
    "counts every 4xx of a read as a failed precondition",
    ({ status, method }) => method === "GET" && status === 400,
  ),
  uncounted("only-put-counted", "MET-06", "counts PUT alone", ({ method }) => method !== "PUT"),
  uncounted(
    "delete-not-counted",
    "MET-07",
    "counts PUT and PATCH, not DELETE",
    (each) => each.method === "DELETE",
  ),
  uncounted(
    "blank-428-not-counted",
    "MET-01",
    "counts an absent If-Match, not a blank one",
    ({ status, request }) => status === 428 && headerLines(request, "if-match").length > 0,
  ),
  ...(
    [
      ["unquoted-412-not-counted", "unquoted tags", /^[^"*W]/],
      ["listed-412-not-counted", "lists of tags", /,/],
      ["star-412-not-counted", "If-Match: *", /^\*$/],
    ] as const
  ).map(([id, what, form]) =>
    uncounted(
      id,
      "MET-09",
      `refuses ${what} in a parser that knows no counter`,
      ({ status, request }) => status === 412 && form.test(sent(request)),
    ),
  ),
  uncounted(
    "missing-customer-428-not-counted",
    "MET-09",
    "counts in the handler, which a 428 for an unknown customer does not reach",
    ({ status, request, service }) => status === 428 && customerOf(request, service) === undefined,
  ),
  {
    ...overcounted(
      "bad-bodies-counted",
      "counts every refused write whose If-Match was there as a failed precondition",
      ({ status, request }) => isWrite(request) && status === 400,
    ),
    rule: "MET-09",
  },
  ...([8, 10] as const).map(
    (nth): Fault => ({
      id: nth === 10 ? "counters-sampled" : `counters-sampled-by-${nth}`,
      comesAndGoes: true,
      rule: "MET-09",
      does: `samples: one event in ${nth} is left out`,
      plant: (ran) => {
        const left = every(nth);
        return instead("counted", (right) => (right.length > 0 && left() ? [] : right))(ran);
      },
    }),
  ),
  ...(["428", "412"] as const).map(
    (status): Fault => ({
      id: `${status}-at-once-lost`,
      rule: status === "428" ? "MET-01" : "MET-02",
      does: `reads the counter of ${status}, adds one and writes it back: events that meet are lost`,
      plant: (ran) => (service) => {
        const sound = soundSeams(service.deployment);
        const under = new Map<string, number>();
        const met = new WeakSet<Request>();
        return {
          async around(request, next) {
            under.set(request.path, (under.get(request.path) ?? 0) + 1);
            const others = () => (under.get(request.path) ?? 0) > 1;
            const early = others();
            const reply = await next(request);
            if (early || others()) met.add(request);
            under.set(request.path, (under.get(request.path) ?? 1) - 1);
            return reply;
          },
          counted(reply, request) {
            const right = sound.counted(reply, request);
            if (String(reply.status) !== status || !met.has(request)) return right;
            ran();
            return [];
          },
        };
      },
    }),
  ),
  {
    id: "losers-not-counted",
    rule: "MET-02",
    does: "counts in the check, which a write that loses in the database has passed",
    plant: (ran) => (service) => {
      const sound = soundSeams(service.deployment);
      const passed = new WeakSet<Request>();
      return {
        around(request, next) {
          if (sent(request) === customerOf(request, service)?.tag) passed.add(request);
          return next(request);
        },
        counted(reply, request) {
          if (reply.status !== 412 || !passed.has(request)) return sound.counted(reply, request);
          ran();
          return [];
        },
      };
    },
  },
  scraping("counter-without-total", "MET-01", "leaves _total off the names", (text) =>
    text.replaceAll("_total", ""),
  ),
  scraping("one-counter-missing", "MET-02", "has no counter for 412", (text) =>
    text
      .split("\n")
      .filter((line) => !line.includes("http_precondition_failed"))
      .join("\n"),
  ),
  scraping("counter-typed-gauge", "MET-08", "declares the counters as gauges", (text) =>
    text.replaceAll(" counter", " gauge"),
  ),
  scraping("metrics-not-parsable", "MET-01", "serves samples that no scraper can parse", (text) =>
    text.replace(/^(http_\w+) (\d+)$/gm, "$1 = $2;"),
  ),
  {
    id: "counters-fall",
    rule: "MET-08",
    does: "resets the counters at every other scrape",
    plant: (ran) => () => {
      let scrapes = 0;
      return {
        scrape(text) {
          scrapes += 1;
          if (scrapes % 2 === 1) return text;
          ran();
          return text.replace(/^(http_\w+) \d+$/gm, "$1 0");
        },
      };
    },
  },
  {
    id: "counters-reset-on-scrape",
    rule: "MET-08",
    does: "reports what came since the last scrape",
    plant: (ran) => () => {
      const last = new Map<string, number>();
      return {
        scrape: (text) =>
          text.replace(/^(http_\w+) (\d+)$/gm, (_line, name: string, value: string) => {
            const before = last.get(name) ?? 0;
            last.set(name, Number(value));
            if (before > 0) ran();
            return `${name} ${Number(value) - before}`;
          }),
      };
    },
  },
];
