/** Writes reference.md anew: `bun cli/docs/write-reference.ts`. */
import { writeFileSync } from "node:fs";
import { Command } from "commander";
import { referencePage } from "../help/reference.ts";
import { addCommands } from "../program.ts";

const program = new Command("customers");
addCommands(program, () => async () => {});
writeFileSync(new URL("./reference.md", import.meta.url), referencePage(program));
