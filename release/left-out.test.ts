import { expect, test } from "bun:test";
import { type LeftOut, leavingOut } from "./left-out.ts";
import { PROGRAMS } from "./programs.ts";

const all = PROGRAMS.flatMap(({ leftOut = [] }) => leftOut);

/** One file of a package as it is built. */
async function built(leftOut: LeftOut): Promise<string> {
  const result = await Bun.build({
    entrypoints: [new URL(`../node_modules/${leftOut.file}`, import.meta.url).pathname],
    target: "bun",
    external: ["./*", "../*"],
    plugins: [leavingOut([leftOut])],
  });
  return (await Promise.all(result.outputs.map((output) => output.text()))).join("");
}

test.each(all.map((leftOut) => [leftOut.file, leftOut] as const))(
  "%s is built without what it loads",
  async (_, leftOut) => {
    const [name = ""] = /node:\w+/.exec(leftOut.text) ?? [];
    expect(name).not.toBe("");
    const loads = new RegExp(`(?:require\\(|from ?)"(?:node:)?${name.slice("node:".length)}"`);
    expect(await built({ ...leftOut, instead: leftOut.text })).toMatch(loads);
    expect(await built(leftOut)).not.toMatch(loads);
  },
);

test("a text that another version of the package does not have stops the build", async () => {
  const [first] = all;
  if (first === undefined) throw new Error("no program leaves anything out");
  await expect(built({ ...first, text: "require('node:gone')" })).rejects.toThrow();
});
