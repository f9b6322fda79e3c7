/** One path alone: what is counted, and what a scrape shows. */
import type { Fault } from "../fault.ts";
import { planted } from "../narrow.ts";
import type { Counter } from "../service/seams.ts";
import { counting, hidden, never } from "./narrow-races.ts";

export const NARROW_METRICS_FAULTS: Fault[] = [
  ...(
    [
      ["MET-01", "required", 428],
      ["MET-02", "failed", 412],
    ] as const
  ).flatMap(([rule, counter, status]): Fault[] => [
    counting(
      `${rule}.counts`,
      `does not count a quiet ${status} of PUT`,
      (right, _status, { method }, crowded) => (method === "PUT" && !crowded ? never(right, counter) : right),
    ),
    counting(
      `${rule}.counts-at-once`,
      `loses ${status}s of PUT that are counted at once: reads, adds, writes back`,
      (right, _status, { method }, crowded) => (method === "PUT" && crowded ? never(right, counter) : right),
    ),
  ]),
  counting("MET-03.apart", "counts the 428 of PUT as both", (right, status, { method }) =>
    method === "PUT" && status === 428 ? ["required", "failed"] : right,
  ),
  counting("MET-04.apart", "counts the 412 of PUT as both", (right, status, { method }) =>
    method === "PUT" && status === 412 ? ["required", "failed"] : right,
  ),
  counting(
    "MET-05.required-stays",
    "counts reads of customers that are not there as 428",
    (right, status, { method }) => (method === "GET" && status === 404 ? ["required"] : right),
  ),
  ...(["PATCH", "DELETE"] as const).flatMap((name): Fault[] => {
    const rule = name === "PATCH" ? "MET-06" : "MET-07";
    return [
      counting(
        `${rule}.required-counts`,
        `does not count the 428 of ${name}`,
        (right, _status, { method }) => (method === name ? never(right, "required") : right),
      ),
      counting(`${rule}.failed-counts`, `does not count the 412 of ${name}`, (right, _status, { method }) =>
        method === name ? never(right, "failed") : right,
      ),
      hidden(`${rule}.required-exists`, "required", 428, name),
      hidden(`${rule}.failed-exists`, "failed", 412, name),
    ];
  }),
  planted("MET-08.never-falls", "starts both counters again after some of each", (ran) => () => {
    let since = { required: 0, failed: 0 };
    let base: Record<string, number> = {};
    return {
      counted(reply, request) {
        const moved: Counter[] = reply.status === 428 ? ["required"] : reply.status === 412 ? ["failed"] : [];
        if (request.method === "PUT") for (const counter of moved) since[counter] += 1;
        return moved;
      },
      scrape(text) {
        const restart = since.required >= 2 && since.failed >= 2;
        since = { required: 0, failed: 0 };
        return text.replace(/^(http_\w+) (\d+)$/gm, (_line, name: string, value: string) => {
          if (restart) base = { ...base, [name]: Number(value) };
          if (base[name] !== undefined) ran();
          return `${name} ${Number(value) - (base[name] ?? 0)}`;
        });
      },
    };
  }),
  hidden("MET-01.exists", "required", 428, "PUT"),
  hidden("MET-02.exists", "failed", 412, "PUT"),
];
