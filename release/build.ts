/** `bun run build NAME [PATH]`: one program as an executable for this machine (default: dist/NAME). */
import { Argument, Command } from "@commander-js/extra-typings";
import { compile } from "./compile.ts";
import { PROGRAMS } from "./programs.ts";

const [name, path] = new Command("bun run build")
  .description("Compiles one program into an executable for this machine.")
  .addArgument(new Argument("<name>", "the program").choices(PROGRAMS.map((program) => program.name)))
  .argument("[path]", "where to put it (default: dist/NAME)")
  .parse().processedArgs;

for (const program of PROGRAMS.filter((program) => program.name === name)) {
  const outfile = path ?? new URL(`../dist/${name}`, import.meta.url).pathname;
  console.log((await compile(program, { outfile, commit: "built from source" })).path);
}
