/** A run that saw an accepted write which had to be refused ends with a violation, whatever its rules look for. */
import { expect, test } from "bun:test";
import { runKit } from "../run/engine.ts";
import { profileFlags } from "../self/case.ts";
import { asCurrent, customerOf, withIfMatch } from "../self/fault.ts";
import { headerLines } from "../self/service/http-socket.ts";
import { isWrite } from "../self/service/seams.ts";
import type { Faulty } from "../self/service/service.ts";
import { PLAIN } from "../self/service/sound-options.ts";
import { startSoundServer } from "../self/service/sound-server.ts";
import { defaultOptions } from "../target/options.ts";
import { readProfile } from "../target/profile.ts";

async function violations(faulty: Faulty, only: readonly string[]) {
  const server = await startSoundServer(PLAIN, faulty);
  try {
    const profile = readProfile(profileFlags(server, PLAIN), {});
    const { rules } = await runKit(profile, { ...defaultOptions, mode: "quick", exclusive: true, only });
    return rules.flatMap(({ id, outcome, reason }) => (outcome === "violation" ? [`${id}: ${reason}`] : []));
  } finally {
    await server.close();
  }
}

/** Lets a stale write through after two conflicts with no read in between. */
const givesUp: Faulty = (service) => {
  const conflicts = new Map<string, number>();
  return {
    async around(request, next) {
      const customer = customerOf(request, service);
      if (customer === undefined) return await next(request);
      const count = conflicts.get(customer.id) ?? 0;
      conflicts.delete(customer.id);
      if (!isWrite(request)) return await next(request);
      if (count >= 2) return await next(withIfMatch(request, customer.tag));
      const reply = await next(request);
      if (reply.status === 412) conflicts.set(customer.id, count + 1);
      return reply;
    },
  };
};

test("a counter's rule that meets it reports it where the rule on that refusal passes", async () => {
  const [found = "", ...more] = await violations(givesUp, ["IFM-03", "MET-02"]);
  expect(found).toContain(
    "MET-02: PUT with a stale tag was answered 204 and applied, although IFM-03 passed",
  );
  expect(more).toEqual([]);
});

const isEmpty = (lines: readonly string[]) => lines.length > 0 && lines.join("").trim() === "";

test("so does the rule that sent it without a look at its answer", async () => {
  const blankTaken: Faulty = asCurrent(
    (request) => isWrite(request) && isEmpty(headerLines(request, "if-match")),
  )(() => {});
  const [found = "", ...more] = await violations(blankTaken, ["MET-09"]);
  expect(found).toContain("MET-09: PUT with no If-Match was answered 204 and applied");
  expect(more).toEqual([]);
});

test.each([
  ["a page of the environment", { status: 200, headers: [] as [string, string][], body: "<h1>Sign in</h1>" }],
  [
    "one with a tag of its own",
    { status: 200, headers: [["ETag", '"page"']] as [string, string][], body: "<h1>Sign in</h1>" },
  ],
])("%s is no accepted write", async (_what, page) => {
  const paged: Faulty = () => ({
    around: (request, next) =>
      isWrite(request) && isEmpty(headerLines(request, "if-match")) ? Promise.resolve(page) : next(request),
  });
  expect(await violations(paged, ["MET-09"])).toEqual([]);
});
