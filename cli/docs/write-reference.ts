/** Writes reference.md anew: `bun cli/docs/write-reference.ts`. */
import { writeFileSync } from "node:fs";
import { referencePage } from "../help/reference.ts";
import { addCommands, customersProgram } from "../program.ts";

const program = customersProgram();
await addCommands(program, () => async () => {});
writeFileSync(new URL("./reference.md", import.meta.url), referencePage(program));
