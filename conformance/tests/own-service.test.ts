import { expect, test } from "bun:test";
import { complaintsAbout, runAgainstOwnService } from "./own-service.ts";

// The whole run is a system test: it takes half a minute on a busy machine.
test("our own service conforms, and nothing is left unrun by a short run", async () => {
  expect(complaintsAbout(await runAgainstOwnService("quick"))).toEqual([]);
});
