/**
 * `bun run build:client [DIRECTORY]`: the library as one minified module for browsers, Node, Deno and Bun,
 * and its types beside it (default: dist/client, which package.json exports as customers/client).
 */
import { join } from "node:path";

const outdir = process.argv[2] ?? new URL("../dist/client", import.meta.url).pathname;
const entrypoint = new URL("client/customers.ts", import.meta.url).pathname;
const compiler = new URL("../node_modules/typescript/bin/tsc", import.meta.url).pathname;

const result = await Bun.build({
  entrypoints: [entrypoint],
  outdir,
  target: "browser",
  format: "esm",
  minify: true,
});
for (const log of result.logs) console.error(log);
if (!result.success) process.exit(1);

const types = Bun.spawn(
  [
    process.execPath,
    compiler,
    "--ignoreConfig",
    entrypoint,
    "--declaration",
    "--emitDeclarationOnly",
    "--allowImportingTsExtensions",
    "--strict",
    "--exactOptionalPropertyTypes",
    ...["--target", "esnext", "--module", "preserve", "--lib", "esnext,dom", "--types", ""],
    ...["--outDir", outdir],
  ],
  { stdio: ["ignore", "inherit", "inherit"] },
);
if ((await types.exited) !== 0) process.exit(1);
console.log(join(outdir, "customers.js"));
