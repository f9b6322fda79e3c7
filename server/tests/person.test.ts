import { afterEach, beforeEach, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { BUILT_IN_POLICY } from "../config/policy-file.ts";
import { Workplace } from "./support/service/server-process.ts";

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
});
afterEach(() => place.clear());

const NOBODY = "01890000-0000-7000-8000-000000000000";
const ADA = { name: "Ada Unmistakable", email: "Ada.Unmistakable@example.com" };

/** A service that keeps values, and a customer who was created and replaced under keys. */
async function started() {
  const policyFile = `${place.path}/policy.toml`;
  writeFileSync(policyFile, `${BUILT_IN_POLICY}\n[audit]\nvalues = true\n`);
  const service = await place.start({ env: { POLICY_FILE: policyFile, SAMPLES: "0" } });
  const send = (method: string, path: string, body?: object, headers: Record<string, string> = {}) =>
    service.send(place.adminToken, method, path, { body, headers });
  const made = await send("POST", "/customers?fields=id", ADA);
  const path = `/customers/${made.json.id}`;
  const replaced = await send(
    "PUT",
    path,
    { ...ADA, name: "Ada K. Unmistakable" },
    { "if-match": made.etag, "idempotency-key": '"one"', prefer: "return=representation" },
  );
  expect(replaced.status).toBe(200);
  return { service, send, id: String(made.json.id), path, etag: replaced.etag };
}

const lines = (text: string) =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

test("a person is found, exported and erased beside a running service, whose replies are those of a deletion", async () => {
  const { service, send, id, path, etag } = await started();
  const email = ADA.email.toUpperCase();
  const found = await place.run(["person", "find", email, "--json"]);
  const one = {
    tenant: "default",
    customer: id,
    state: "stored",
    foundBy: "email",
    hasOtherEmail: false,
    values: 2,
    keptReplies: 1,
  };
  expect([found.code, found.stderr, lines(found.stdout)]).toEqual([0, "", [one]]);
  const exported = await place.run(["person", "export", email]);
  expect(exported).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(exported.stdout)).toMatchObject({
    askedFor: [email],
    customers: [{ customer: { ...ADA, name: "Ada K. Unmistakable" }, history: [{ changed: ["name"] }, {}] }],
  });

  const dry = await place.run(["person", "erase", email]);
  expect(dry).toMatchObject({
    code: 0,
    stdout: `${id} of default: would be erased: the customer, the values beside 2 rows of the audit trail, 1 kept reply\n`,
  });
  expect(dry.stderr).toStartWith("Nothing was erased. Repeat with --yes");
  expect((await send("GET", path)).status).toBe(200);

  const erased = await place.run(["person", "erase", email, "--yes", "--tenant", "default"]);
  expect(erased).toMatchObject({
    code: 0,
    stdout: `${id} of default: erased: the customer, the values beside 2 rows of the audit trail, 1 kept reply\n`,
  });
  expect(erased.stderr).toContain("Backups hold what was erased until they are deleted");
  expect((await send("GET", path)).status).toBe(404);
  expect((await send("PUT", path, ADA, { "if-match": etag })).status).toBe(404);
  expect((await send("DELETE", path, undefined, { "if-match": "*" })).status).toBe(404);
  expect((await send("POST", "/customers/search", { email })).json.items).toEqual([]);
  const { json } = await send("GET", `${path}/history`);
  const shown = json.items.map((item: Record<string, unknown>) => [
    item["operation"],
    item["client"],
    item["values"],
  ]);
  expect(shown).toEqual([
    ["erase", "person-erase", null],
    ["replace", "admin", null],
    ["create", "admin", null],
  ]);
  expect(JSON.stringify(json)).not.toMatch(/unmistakable/i);

  const verified = await place.run(["audit", "verify"]);
  expect(verified.code).toBe(0);
  expect(verified.stdout).toContain("values of 0 rows kept, of 2 rows erased");
  const erasures = await place.run(["audit", "--client", "person-erase"]);
  expect(lines(erasures.stdout).map(({ customer }) => customer)).toEqual([id]);
  await service.end();
  expect(JSON.stringify(service.log)).not.toMatch(/unmistakable/i);
});

test("a second erasure changes nothing, and what is not found is exit code 1 after the rest was erased", async () => {
  const { service, id } = await started();
  const first = await place.command(["person", "erase", id, NOBODY, "nobody@example.com", "--yes", "--json"]);
  expect([first.code, lines(first.stdout)]).toEqual([
    1,
    [
      {
        ...{ tenant: "default", customer: id, state: "stored", foundBy: "id", hasOtherEmail: false },
        ...{ values: 2, keptReplies: 1, erased: true },
      },
    ],
  ]);
  expect(first.stderr).toContain(`Not found: ${NOBODY}, nobody@example.com.`);
  const second = await place.command(["person", "erase", id, "--yes"]);
  expect([second.code, second.stdout]).toEqual([0, `${id} of default: was erased before\n`]);
  await service.end();
});

test("a customer who has another email now is left out until its id is named", async () => {
  const { service, send, id, path, etag } = await started();
  const moved = await send("PATCH", path, { email: "new@example.com" }, { "if-match": etag });
  expect(moved.status).toBe(204);
  for (const command of [["export"], ["erase"], ["erase", "--yes"]]) {
    const left = await place.command(["person", ...command, ADA.email]);
    expect([left.code, left.stdout]).toEqual([1, ""]);
    expect(left.stderr).toBe(
      `Left out: ${id} of default had this email earlier, and has another one now. If it is the same person, name the id too.\nAll customers that were found are left out.\n`,
    );
  }
  const other = await place.command(["person", "export", "new@example.com"]);
  expect([other.code, other.stderr]).toEqual([
    0,
    expect.stringMatching(new RegExp(`^Check: ${id} of default had another email too\\.`)),
  ]);
  expect((await send("GET", path)).status).toBe(200);
  expect((await place.command(["person", "erase", ADA.email, id, "--yes"])).stdout).toContain(
    "erased: the customer",
  );
  expect((await send("GET", path)).status).toBe(404);
  await service.end();
});

test.each([
  [["find", "ada"], '"ada" must be an email or the id of a customer, a UUID.'],
  [["erase", "a@example.com", "--tenant", "acne"], "No tenant acne ever had a customer. Correct --tenant."],
])("person %j is refused", async (args, message) => {
  const { service } = await started();
  const { code, stdout, stderr } = await place.command(["person", ...args]);
  expect([code, stdout, stderr.trim()]).toEqual([1, "", message]);
  await service.end();
});

test("writes that race an erasure are applied before it or find no customer, and no value of them is left", async () => {
  const { service, send, id, path, etag } = await started();
  let tag = etag;
  const statuses: number[] = [];
  let isOver = false;
  const writing = (async () => {
    for (let n = 0; !isOver || statuses.at(-1) !== 404; n += 1) {
      const reply = await send("PATCH", path, { name: `Ada ${n} Unmistakable` }, { "if-match": tag });
      statuses.push(reply.status);
      if (reply.status === 204) tag = reply.etag;
    }
  })();
  await until(() => statuses.length >= 3);
  const { code } = await place.command(["person", "erase", id, "--yes"]);
  isOver = true;
  await writing;
  expect(code).toBe(0);
  const kinds = statuses.filter((status, index) => status !== statuses[index - 1]);
  expect(kinds).toEqual([204, 404]);
  const applied = statuses.filter((status) => status === 204).length;
  const audited = await place.command(["audit", "--customer", id]);
  expect(audited.stdout).not.toMatch(/unmistakable/i);
  expect(lines(audited.stdout).filter(({ operation }) => operation === "patch")).toHaveLength(applied);
  expect((await place.command(["audit", "verify"])).code).toBe(0);
  await service.end();
});

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((next) => setImmediate(next));
}
