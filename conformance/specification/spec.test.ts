import { expect, test } from "bun:test";
import { type SpecKey, spec } from "./spec.ts";

const text = await Bun.file(new URL("customer-resource-api.md", import.meta.url)).text();

test.each(Object.keys(spec) as SpecKey[])(
  "the sentence %s stands in the specification, word for word",
  (key) => {
    expect(text).toContain(spec[key]);
  },
);
