/**
 * `bun run build:server [PATH]`: the service as one executable file (default:
 * dist/customers-server), with bytecode so that it starts fast. It reads no
 * `.env` and no `bunfig.toml` from the directory in which it is run.
 */
const outfile = process.argv[2] ?? new URL("../dist/customers-server", import.meta.url).pathname;
const commit = new URL("storage/sqlite/commit/", import.meta.url).pathname;

const result = await Bun.build({
  entrypoints: [new URL("main.ts", import.meta.url).pathname, `${commit}writer-thread-worker.ts`],
  // In the executable the worker stands beside its importer, as its `new URL("./…")` expects.
  root: commit,
  target: "bun",
  format: "esm", // bytecode with top-level await needs it
  bytecode: true,
  compile: { outfile, autoloadDotenv: false, autoloadBunfig: false },
});
for (const log of result.logs) console.error(log);
if (!result.success) process.exit(1);
console.log(outfile);
