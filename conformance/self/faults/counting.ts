/** MET: the two counters of 7.4. */
import { deciding, type Fault } from "../fault.ts";
import { headerLines } from "../service/http-socket.ts";
import { type Counter, isWrite } from "../service/seams.ts";

const swap = (counter: Counter): Counter => (counter === "failed" ? "required" : "failed");

/** A different reading of which counters a reply moves. */
function counting(
  id: string,
  rule: string,
  cause: RegExp,
  does: string,
  wrong: (
    sound: Counter[],
    status: number,
    method: string,
    request: Parameters<typeof isWrite>[0],
  ) => Counter[],
): Fault {
  return {
    id,
    rule,
    cause,
    does,
    plant: deciding("counted", (sound, ran) => (reply, request) => {
      const right = sound(reply, request);
      const moved = wrong(right, reply.status, request.method, request);
      if (moved.length !== right.length || moved.some((counter, at) => counter !== right[at])) ran();
      return moved;
    }),
  };
}

function scraping(
  id: string,
  rule: string,
  cause: RegExp,
  does: string,
  change: (text: string) => string,
): Fault {
  return {
    id,
    rule,
    cause,
    does,
    plant: deciding("scrape", (_sound, ran) => (text) => {
      const wrong = change(text);
      if (wrong !== text) ran();
      return wrong;
    }),
  };
}

export const METRICS_FAULTS: Fault[] = [
  counting("428-not-counted", "MET-01", /http_precondition_required_total/, "does not count 428", (right) =>
    right.filter((counter) => counter !== "required"),
  ),
  counting("412-not-counted", "MET-02", /http_precondition_failed_total/, "does not count 412", (right) =>
    right.filter((counter) => counter !== "failed"),
  ),
  counting(
    "428-counted-as-412",
    "MET-03",
    /http_precondition_(failed|required)_total/,
    "counts a 428 as a failed precondition",
    (right) => right.map(() => "failed"),
  ),
  counting(
    "412-counted-as-428",
    "MET-04",
    /http_precondition_(failed|required)_total/,
    "counts a 412 as a required precondition",
    (right) => right.map(() => "required"),
  ),
  counting(
    "counters-swapped",
    "MET-01",
    /http_precondition_(failed|required)_total/,
    "has the two counters the wrong way round",
    (right) => right.map(swap),
  ),
  counting(
    "both-counted",
    "MET-03",
    /http_precondition_(failed|required)_total/,
    "moves both counters on either refusal",
    (right) => (right.length === 0 ? [] : ["required", "failed"]),
  ),
  counting(
    "counted-twice",
    "MET-01",
    /2|twice|double/i,
    "counts in the filter and in the handler",
    (right) => [...right, ...right],
  ),
  counting(
    "all-writes-counted",
    "MET-05",
    /accepted|success/i,
    "counts accepted writes as well",
    (right, status, _method, request) => (isWrite(request) && status < 300 ? ["required", "failed"] : right),
  ),
  counting(
    "404-counted-as-412",
    "MET-05",
    /404/,
    "counts writes to missing customers as failed preconditions",
    (right, status, _method, request) => (isWrite(request) && status === 404 ? ["failed"] : right),
  ),
  counting(
    "bad-reads-counted",
    "MET-05",
    /400|read|fields/i,
    "counts every 4xx of a read as a failed precondition",
    (right, status, method) => (method === "GET" && status === 400 ? ["failed"] : right),
  ),
  counting("only-put-counted", "MET-06", /PATCH|DELETE/, "counts PUT alone", (right, _status, method) =>
    method === "PUT" ? right : [],
  ),
  counting(
    "delete-not-counted",
    "MET-07",
    /DELETE/,
    "counts PUT and PATCH, not DELETE",
    (right, _status, method) => (method === "DELETE" ? [] : right),
  ),
  counting(
    "blank-428-not-counted",
    "MET-01",
    /rose by/,
    "counts an absent If-Match, not a blank one",
    (right, status, _method, request) =>
      status === 428 && headerLines(request, "if-match").length > 0 ? [] : right,
  ),
  scraping(
    "counter-without-total",
    "MET-01",
    /http_precondition_required_total/,
    "leaves _total off the names",
    (text) => text.replaceAll("_total", ""),
  ),
  scraping(
    "one-counter-missing",
    "MET-02",
    /http_precondition_failed_total/,
    "has no counter for 412",
    (text) =>
      text
        .split("\n")
        .filter((line) => !line.includes("http_precondition_failed"))
        .join("\n"),
  ),
  scraping("counter-typed-gauge", "MET-08", /gauge/, "declares the counters as gauges", (text) =>
    text.replaceAll(" counter", " gauge"),
  ),
  scraping(
    "metrics-not-parsable",
    "MET-01",
    /pars|line|syntax/i,
    "serves samples that no scraper can parse",
    (text) => text.replace(/^(http_\w+) (\d+)$/gm, "$1 = $2;"),
  ),
  {
    id: "counters-fall",
    rule: "MET-08",
    cause: /went from|fell/i,
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
    cause: /went from|fell/i,
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
