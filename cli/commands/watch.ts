import { memberNamed } from "../client/customer.ts";
import { unmetExpectation } from "../client/loop/write-job.ts";
import { readUnless } from "../client/read-customer.ts";
import { startDeadline } from "../client/wire/deadline.ts";
import { parseDurationMs } from "../config/values/duration.ts";
import { failure } from "../outcome/failure.ts";
import { readFailure } from "../outcome/reply-failure.ts";
import { outputFormat, printCustomer } from "../output/print-customers.ts";
import type { RegisterCommand } from "./common/command.ts";
import { customerId, expectation, FIELDS, WITH_ETAG } from "./common/options.ts";

const INTERVAL_DEFAULT_MS = 2000;
/** No end is set where nobody gave --timeout. */
const FOREVER_MS = 2 ** 31 - 1;

export const registerWatch: RegisterCommand = (program, run) => {
  program
    .command("watch")
    .description("print a customer whenever it changes, by If-None-Match; --timeout ends it, else it goes on")
    .argument("<id>", "id of the customer", customerId)
    .option("--until <field=value>", "end when the field has this value (repeatable)", expectation)
    .option(
      "--interval <time>",
      "between two readings (default: 2)",
      (text: string): number => parseDurationMs(text),
      INTERVAL_DEFAULT_MS,
    )
    .addOption(FIELDS)
    .addOption(WITH_ETAG)
    .action(
      run(async (invocation, id, { until = [], interval, fields, withEtag = false }) => {
        const { interrupted, settings, api, flags } = invocation;
        const deadline = startDeadline(flags.timeout ?? FOREVER_MS, interrupted);
        // Each version is one line for a program, and one record for a person.
        const format = outputFormat(invocation) === "json" ? "ndjson" : settings.output;
        const printing = { ...invocation, settings: { ...settings, output: format } };
        const ofUntil = until.map(({ field }) => field);
        let asked = fields === undefined ? undefined : [...new Set([...fields, ...ofUntil])];
        let tag: string | undefined;
        for (;;) {
          const limitMs = Math.min(settings.timeoutMs, deadline.remainingMs());
          const ports = { transport: api, deadline: startDeadline(limitMs, interrupted) };
          const reading = await readUnless(ports, id, tag, asked);
          if (reading.kind !== "read" && reading.kind !== "not-modified") {
            if (deadline.remainingMs() === 0 && !interrupted.aborted) break;
            return readFailure(reading, { what: `customer ${id}`, url: api.url, fields: asked });
          }
          if (reading.kind === "read") {
            const { customer } = reading;
            const missing = ofUntil.filter((field) => memberNamed(customer.value, field) === undefined);
            if (asked === undefined && missing.length > 0) {
              // What a server shows when nothing is named is its own choice (specification 4.1).
              asked = [...customer.value.keys(), ...missing];
              continue;
            }
            if (tag === undefined || customer.etag !== tag) {
              const refused = await printCustomer(printing, customer, { fields, withEtag });
              if (refused !== undefined) return refused;
            }
            tag = customer.etag;
            if (until.length > 0 && unmetExpectation(until, customer) === undefined) return undefined;
          }
          if (interval >= deadline.remainingMs() && !interrupted.aborted) break;
          await deadline.wait(interval);
          if (interrupted.aborted)
            return failure("interrupted", `interrupted while customer ${id} was watched`);
        }
        if (until.length === 0) return undefined;
        const wanted = until.map(({ field, value }) => `${field}=${value}`).join(", ");
        return failure("failure", `customer ${id} did not come to ${wanted} within --timeout`);
      }),
    );
};
