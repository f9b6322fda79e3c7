import { expect, test } from "bun:test";
import { profileFlags } from "../self/case.ts";
import type { Faulty } from "../self/service/service.ts";
import { PLAIN } from "../self/service/sound-options.ts";
import { startSoundServer } from "../self/service/sound-server.ts";
import { defaultOptions } from "../target/options.ts";
import { readProfile } from "../target/profile.ts";
import { runKit } from "./engine.ts";

test("where the create of one lane is not answered, the customers of the others are removed as well", async () => {
  const slow = { ...PLAIN, latencyMs: 30 };
  const creates: Promise<unknown>[] = [];
  // Two creates find out how a body is to look; the next gets no answer, and those after it come later than that is known.
  const LOST = 2;
  const faulty: Faulty = () => ({
    around: (request, next) => {
      if (request.method !== "POST") return next(request);
      const nth = creates.length;
      const reply = Bun.sleep(100).then(async () => {
        if (nth === LOST) return { status: 0, headers: [], raw: Buffer.alloc(0), hangUp: true };
        if (nth > LOST) await Bun.sleep(300);
        return await next(request);
      });
      creates.push(reply);
      return reply;
    },
  });
  const server = await startSoundServer(slow, faulty);
  try {
    const before = server.customers().length;
    const profile = readProfile(profileFlags(server, slow), {});
    const report = await runKit(profile, { ...defaultOptions, mode: "quick", only: ["IFM"] });
    await Promise.allSettled(creates);
    expect(report.verdict).toBe("unreachable");
    expect(creates.length).toBeGreaterThan(4);
    expect(server.customers().length).toBe(before);
  } finally {
    await server.close();
  }
});
