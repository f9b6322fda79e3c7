/**
 * Asks the npm registry for known vulnerabilities of the packages in bun.lock. Exit code 1 where there is one that is not
 * accepted below. A registry that cannot be reached, or that has no advisories, does not fail a run: it is reported.
 */
import { runAudit } from "./run-audit.ts";

const { lines, isClean } = await runAudit(process.env);
for (const line of lines) console.log(line);
process.exit(isClean ? 0 : 1);
