import { readFileSync } from "node:fs";
import { Enums, Models, Serialize, Spec } from "@cyclonedx/cyclonedx-library";

interface Manifest {
  readonly version: string;
  readonly license?: string;
  readonly description?: string;
}

/**
 * The bill of materials of one executable in CycloneDX 1.6: the program, the npm packages whose code is in it,
 * and Bun. Without times and serial numbers, so that the same source gives the same file.
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

function npmPackage(name: string): Models.Component {
  const manifest: Manifest = JSON.parse(
    readFileSync(new URL(`../node_modules/${name}/package.json`, import.meta.url), "utf8"),
  );
  const purl = `pkg:npm/${name.replace("@", "%40")}@${manifest.version}`;
  return component(name, manifest, purl);
}

function bun(): Models.Component {
  return component("bun", { version: Bun.version, license: "MIT" }, `pkg:npm/bun@${Bun.version}`);
}

function component(
  name: string,
  { version, license, description }: Manifest,
  purl: string,
): Models.Component {
  return new Models.Component(Enums.ComponentType.Library, name, {
    version,
    purl,
    bomRef: purl,
    ...(description === undefined ? {} : { description }),
    licenses: new Models.LicenseRepository(license === undefined ? [] : [new Models.SpdxLicense(license)]),
  });
}
