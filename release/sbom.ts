import { readFileSync } from "node:fs";
import { Enums, Models, Serialize, Spec } from "@cyclonedx/cyclonedx-library";
import lock from "../bun.lock";

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  readonly description?: string;
}

/**
 * The bill of materials of one executable in CycloneDX 1.6: the program, the npm packages whose code is in it,
 * and Bun. Versions and checksums are those of bun.lock. Without times and serial numbers, so that the same source gives the same file.
 */
export function billOfMaterials(
  { name, version, description }: { name: string; version: string; description: string },
  packages: readonly string[],
): string {
  const bom = new Models.Bom();
  const program = new Models.Component(Enums.ComponentType.Application, name, {
    version,
    description,
    bomRef: name,
    licenses: new Models.LicenseRepository([new Models.SpdxLicense("MIT")]),
  });
  bom.metadata.component = program;
  for (const component of [...packages.map(npmPackage), bun()]) {
    bom.components.add(component);
    program.dependencies.add(component.bomRef);
  }
  const serializer = new Serialize.JsonSerializer(new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6));
  return `${serializer.serialize(bom, { sortLists: true, space: 2 })}\n`;
}

/** Of each package: its name with its version, its source, its dependencies, and the checksum of its archive. */
const LOCKED: Readonly<Record<string, readonly unknown[] | undefined>> = lock.packages;

/**
 * @param key of bun.lock
 * @throws Error where bun.lock has another version, or none
 */
function npmPackage(key: string): Models.Component {
  const manifest = manifestOf(key);
  const [locked, , , integrity] = LOCKED[key] ?? [];
  const { name, version } = manifest;
  if (locked !== `${name}@${version}`) {
    throw new Error(`${key} is ${name}@${version}, but bun.lock has ${locked ?? "none"}; run bun install`);
  }
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  const sha512 = Buffer.from(String(integrity).replace(/^sha512-/, ""), "base64").toString("hex");
  return component(name, manifest, purl, [[Enums.HashAlgorithm["SHA-512"], sha512]]);
}

function manifestOf(key: string): Manifest {
  // "@a/b/c" is c in the folder of @a/b.
  const folder = (key.match(/(?:@[^/]+\/)?[^/]+/g) ?? []).join("/node_modules/");
  return JSON.parse(readFileSync(new URL(`../node_modules/${folder}/package.json`, import.meta.url), "utf8"));
}

function bun(): Models.Component {
  const manifest = { name: "bun", version: Bun.version, license: "MIT" };
  return component("bun", manifest, `pkg:npm/bun@${Bun.version}`, []);
}

function component(
  name: string,
  { version, license, description }: Manifest,
  purl: string,
  hashes: readonly [Enums.HashAlgorithm, string][],
): Models.Component {
  return new Models.Component(Enums.ComponentType.Library, name, {
    version,
    purl,
    bomRef: purl,
    hashes: new Models.HashDictionary(hashes),
    ...(description === undefined ? {} : { description }),
    licenses: new Models.LicenseRepository(license === undefined ? [] : [new Models.SpdxLicense(license)]),
  });
}
