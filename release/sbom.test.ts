import { describe, expect, test } from "bun:test";
import lock from "../bun.lock";
import packageJson from "../package.json";
import { billOfMaterials } from "./sbom.ts";

const PROGRAM = { name: "customers-server", version: "1.2.3", description: "x" };
const LOCKED: Readonly<Record<string, unknown>> = lock.packages;

type Component = {
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
};
const componentsOf = (packages: readonly string[]): Component[] =>
  JSON.parse(billOfMaterials(PROGRAM, packages)).components;

describe("a bill of materials agrees with bun.lock", () => {
  test.each(Object.keys(packageJson.dependencies))("%s: version and checksum", (name) => {
    const [component] = componentsOf([name]).filter((each) => each.name === name);
    const [locked, , , integrity] = LOCKED[name] as [string, string, object, string];
    expect(`${component?.name}@${component?.version}`).toBe(locked);
    expect(component?.purl).toBe(`pkg:npm/${locked.replace(/^@/, "%40")}`);
    const [hash] = component?.hashes ?? [];
    expect(hash?.alg).toBe("SHA-512");
    expect(`sha512-${Buffer.from(hash?.content ?? "", "hex").toString("base64")}`).toBe(integrity);
  });

  test("a package of another package's folder is named with its own version", () => {
    const keys = ["http-errors", "http-assert/http-errors"];
    const found = componentsOf(keys).map(({ name, version }) => `${name}@${version}`);
    expect(found.sort()).toEqual([`bun@${Bun.version}`, "http-errors@1.8.1", "http-errors@2.0.1"]);
  });

  test("a package that bun.lock does not have is refused", () => {
    expect(() => componentsOf(["bun-types/nothing"])).toThrow();
    expect(() => componentsOf(["nothing"])).toThrow();
  });
});
