import { afterEach, beforeEach, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { writeDatabase } from "../support/database/database-files.ts";
import { Workplace } from "../support/service/server-process.ts";

let place: Workplace;
beforeEach(async () => {
  place = new Workplace();
  await writeDatabase(place.database, "Ada");
});
afterEach(() => place.clear());

test("a database that is mounted as a file is refused by each command and the service, as `docker -v FILE:FILE` does", async () => {
  const mounted = `${place.path}/mounted.db`;
  writeFileSync(mounted, "");
  // In a mount namespace of its own, which ends with the command.
  const mount = 'mount --bind "$1" "$2"; shift 2; exec "$@"';
  for (const args of [["serve"], ["check"], ["backup", "b.db"], ["restore", place.database, "--force"]]) {
    const outcome = await place.run(
      args,
      { DATABASE_URL: `sqlite:${mounted}` },
      { under: ["unshare", "--mount", "sh", "-ec", mount, "sh", place.database, mounted] },
    );
    expect(outcome).toMatchObject({ code: 1, stdout: "" });
    expect(outcome.stderr).toStartWith(`${mounted} is a mount point`);
  }
});
