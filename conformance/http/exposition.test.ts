import { expect, test } from "bun:test";
import { parseExposition, seriesOf, typeOf } from "./exposition.ts";

const NAME = "http_precondition_required_total";

test("samples with labels, escapes, timestamps and exemplars are read", () => {
  const page = parseExposition(
    [
      "# HELP x y",
      `# TYPE ${NAME} counter`,
      `${NAME}{client="a } \\" b",method="PUT"} 3 1700000000000`,
      `${NAME}{method="DELETE",} 4.0 # {trace="x"} 1`,
      `${NAME} 1e1`,
      "other{} NaN",
      "big +Inf",
      "# EOF",
    ].join("\n"),
  );
  expect([...seriesOf(page, NAME).values()]).toEqual([3, 4, 10]);
  expect(page.malformed).toBeUndefined();
  expect(typeOf(page, NAME)).toBe("counter");
});

test("OpenMetrics declares the family without _total, and _created is no part of the counter", () => {
  const page = parseExposition(
    `# TYPE http_precondition_required counter\n${NAME} 2\nhttp_precondition_required_created 1700000000\n`,
  );
  expect(typeOf(page, NAME)).toBe("counter");
  expect([...seriesOf(page, NAME).values()]).toEqual([2]);
});

test.each(["<html>", `${NAME}{a="b" 3`, `${NAME} many`, `${NAME}`])("the line %j is malformed", (line) => {
  expect(parseExposition(`${line}\n`).malformed).toBe(line);
});
