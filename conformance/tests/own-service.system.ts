import { expect, test } from "bun:test";
import { complaintsAbout, runAgainstOwnService } from "./own-service.ts";

test("our own service conforms, and nothing is left unrun by a full run", async () => {
  expect(complaintsAbout(await runAgainstOwnService())).toEqual([]);
});
