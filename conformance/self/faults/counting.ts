/** MET: the two counters of 7.4. */
import { customerOf, deciding, type Fault } from "../fault.ts";
import { headerLines, type Request } from "../service/http-socket.ts";
import { type Counter, isWrite, soundSeams } from "../service/seams.ts";
import type { Service } from "../service/service.ts";

const swap = (counter: Counter): Counter => (counter === "failed" ? "required" : "failed");

/** A different reading of which counters a reply moves. */
function counting(
  id: string,
  rule: string,
  does: string,
  wrong: (sound: Counter[], status: number, method: string, request: Request, service: Service) => Counter[],
): Fault {
  return {
    id,
    rule,
    does,
    plant: deciding("counted", (sound, ran, service) => (reply, request) => {
      const right = sound(reply, request);
      const moved = wrong(right, reply.status, request.method, request, service);
      if (moved.length !== right.length || moved.some((counter, at) => counter !== right[at])) ran();
      return moved;
    }),
  };
}

function scraping(id: string, rule: string, does: string, change: (text: string) => string): Fault {
  return {
    id,
    rule,
    does,
    plant: deciding("scrape", (_sound, ran) => (text) => {
      const wrong = change(text);
      if (wrong !== text) ran();
      return wrong;
    }),
  };
}

export const METRICS_FAULTS: Fault[] = [
  counting("428-not-counted", "MET-01", "does not count 428", (right) =>
    right.filter((counter) => counter !== "required"),
  ),
  counting("412-not-counted", "MET-02", "does not count 412", (right) =>
    right.filter((counter) => counter !== "failed"),
  ),
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
  counting(
    "all-writes-counted",
    "MET-05",
    "counts accepted writes as well",
    (right, status, _method, request) => (isWrite(request) && status < 300 ? ["required", "failed"] : right),
  ),
  counting(
    "404-counted-as-412",
    "MET-05",
    "counts writes to missing customers as failed preconditions",
    (right, status, _method, request) => (isWrite(request) && status === 404 ? ["failed"] : right),
  ),
  counting(
    "bad-reads-counted",
    "MET-05",
    "counts every 4xx of a read as a failed precondition",
    (right, status, method) => (method === "GET" && status === 400 ? ["failed"] : right),
  ),
  counting("only-put-counted", "MET-06", "counts PUT alone", (right, _status, method) =>
    method === "PUT" ? right : [],
  ),
  counting("delete-not-counted", "MET-07", "counts PUT and PATCH, not DELETE", (right, _status, method) =>
    method === "DELETE" ? [] : right,
  ),
  counting(
    "blank-428-not-counted",
    "MET-01",
    "counts an absent If-Match, not a blank one",
    (right, status, _method, request) =>
      status === 428 && headerLines(request, "if-match").length > 0 ? [] : right,
  ),
  ...(
    [
      ["unquoted-412-not-counted", "refuses unquoted tags in a parser that knows no counter", /^[^"*W]/],
      ["listed-412-not-counted", "refuses lists of tags in a parser that knows no counter", /,/],
      ["star-412-not-counted", "refuses If-Match: * in a parser that knows no counter", /^\*$/],
    ] as const
  ).map(([id, does, form]) =>
    counting(id, "MET-09", does, (right, status, _method, request) =>
      status === 412 && form.test(headerLines(request, "if-match").join().trim()) ? [] : right,
    ),
  ),
  counting(
    "missing-customer-428-not-counted",
    "MET-09",
    "counts in the handler, which a 428 for an unknown customer does not reach",
    (right, status, _method, request, service) =>
      status === 428 && customerOf(request, service) === undefined ? [] : right,
  ),
  counting(
    "bad-bodies-counted",
    "MET-09",
    "counts every refused write whose If-Match was there as a failed precondition",
    (right, status, _method, request) => (isWrite(request) && status === 400 ? ["failed"] : right),
  ),
  {
    id: "counters-sampled",
    comesAndGoes: true,
    rule: "MET-09",
    does: "samples: every tenth event is left out",
    plant: deciding("counted", (sound, ran) => {
      let events = 0;
      return (reply, request) => {
        const right = sound(reply, request);
        if (right.length === 0) return right;
        events += 1;
        if (events % 10 !== 0) return right;
        ran();
        return [];
      };
    }),
  },
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
