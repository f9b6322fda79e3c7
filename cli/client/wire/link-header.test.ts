import { expect, test } from "bun:test";
import { parseLinks } from "./link-header.ts";

const next = (target = "?o=3") => ({ target, relations: ["next"] });

test.each([
  ["", []],
  ["<?o=3>; rel=next", [next()]],
  ['<?o=3>; title="a; rel=x"; rel="next"', [next()]],
  ['<?o=3>; title="a, <x>"; rel="next"', [next()]],
  ['<?o=3>; title="q\\"x"; rel="next"', [next()]],
  ['<?o=3>; title="q\\\\"; rel="next"', [next()]],
  ['<?o=3>; title="rel=\\"x\\""; rel=next', [next()]],
  ['<?o=3>; rel="n\\ext"', [next()]],
  ["<?o=3&x=a,b;c>; rel=next", [next("?o=3&x=a,b;c")]],
  ["<?o=3>; rel=next; title*=UTF-8''a%2Cb", [next()]],
  ['<?o=3> \t; REL\t= "NEXT" ', [next()]],
  ["<?o=3>; crossorigin; rel=next;", [next()]],
  ['<?o=3>; rel="prev"; rel="next"', [{ target: "?o=3", relations: ["prev"] }]],
  ['<?o=3>; rel="http://x/y  next"', [{ target: "?o=3", relations: ["http://x/y", "next"] }]],
  [', <a>; rel="prev" ,,<?o=3>;rel=next,', [{ target: "a", relations: ["prev"] }, next()]],
  ["<a>", [{ target: "a", relations: [] }]],
])("%s is read as RFC 8288 says", (header, links) => {
  expect(parseLinks(header)).toEqual(links);
});

test.each([
  "?o=3; rel=next",
  "<?o=3; rel=next",
  '<?o=3>; rel="next',
  '<?o=3>; title="a"b"; rel="next"',
  "<?o=3>, rel=next",
  "<?o=3> rel=next",
  '<a>; rel="prev", ?o=3; rel="next"',
])("%s can't be read", (header) => {
  expect(parseLinks(header)).toBeUndefined();
});

test("a long header that can't be read costs no more than its length", () => {
  expect(parseLinks(`<a>${"; \t ".repeat(20_000)}"`)).toBeUndefined();
  expect(parseLinks(`<a>${", ".repeat(100_000)}x`)).toBeUndefined();
});
