/** The guides for operators as they paste them, with a directory of this test in place of the machine's. */

import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { BUILT_IN_POLICY } from "../../config/policy-file.ts";
import { freePort } from "../support/free-port.ts";
import { type ServerProcess, Workplace } from "../support/service/server-process.ts";
import { AUDIENCE, TestIssuer } from "../support/service/test-issuer.ts";

const DOCS = new URL("../../docs/", import.meta.url).pathname;
const ROOT = new URL("../../..", import.meta.url).pathname;
const { TEST_SERVER, TEST_KIT, TEST_CLIENT } = process.env;
const PROGRAMS = {
  customers:
    TEST_CLIENT !== undefined && existsSync(TEST_CLIENT)
      ? TEST_CLIENT
      : `${process.execPath} --no-env-file --config=/dev/null ${ROOT}cli/main.ts`,
  "customers-server": TEST_SERVER ?? `${process.execPath} ${ROOT}server/main.ts`,
  "customers-conformance":
    TEST_KIT !== undefined && existsSync(TEST_KIT)
      ? TEST_KIT
      : `${process.execPath} ${ROOT}conformance/main.ts`,
};

/** What `journalctl -u` prints beside the log: lines of systemd, and those of a start on stdout. */
const JOURNAL =
  "Started customers@1.service - Customer resource service, instance 1.\nListening on http://127.0.0.1:8080\n";

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
  place.database = `${place.path}/var/lib/customers/customers.db`;
  place.makeDirectory();
  for (const directory of ["usr/local/bin", "etc/customers", "offsite", "var/backups"]) {
    mkdirSync(`${place.path}/${directory}`, { recursive: true });
  }
  for (const [name, program] of Object.entries(PROGRAMS)) {
    const file = `${place.path}/usr/local/bin/${name}`;
    writeFileSync(file, `#!/bin/sh\nexec ${program} "$@"\n`);
    chmodSync(file, 0o755);
  }
});
afterEach(() => place.clear());

/** The blocks of a guide below a heading, in order. */
function blocks(guide: string, heading: string, language = "sh"): string[] {
  const text = readFileSync(`${DOCS}${guide}.md`, "utf8");
  const section = (text.split(`\n## ${heading}\n`)[1] ?? "").split("\n## ")[0] ?? "";
  const found = [...section.matchAll(new RegExp(`^ *\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "gm"))];
  if (found.length === 0) throw new Error(`${guide}.md has no ${language} below "${heading}"`);
  return found.map(([, block = ""]) => block);
}

/** With this test's directory for the machine's, and without systemd, which does not run here. */
function here(text: string): string {
  const adapted = text
    .replaceAll(/^ *systemctl .*$/gm, ":")
    .replaceAll("backup@offsite.example:customers/", `${place.path}/offsite/customers/`)
    .replaceAll(/(?<=^|[\s":=(])(\/(?:var|etc|usr\/local)\/)/gm, `${place.path}$1`);
  // Nothing of the machine's own is touched, however the guide names it.
  const left = new RegExp(`(?<!${place.path})/(?:var|etc|usr/local)/.*`).exec(adapted);
  if (left !== null) throw new Error(`the test would touch ${left[0]}`);
  return adapted;
}

async function paste(
  script: string,
  { cwd = place.path, env = {} }: { cwd?: string; env?: Record<string, string> } = {},
): Promise<{ code: number; out: string; err: string }> {
  const child = Bun.spawn(["bash", "-eu", "-o", "pipefail", "-c", here(script)], {
    cwd,
    env: {
      PATH: `${place.path}/usr/local/bin:/usr/bin:/bin`,
      HOME: place.path,
      DATABASE_URL: `sqlite:${place.database}`,
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [code, out, err] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()]);
  return { code, out, err };
}

const names = async (service: ServerProcess): Promise<string[]> => {
  const { json } = await service.send(place.adminToken, "GET", "/customers?fields=name");
  return json.items.map(({ customer }: { customer: { name: string } }) => customer.name);
};
const add = async (service: ServerProcess, name: string): Promise<void> => {
  const body = { name, email: "ada@example.com" };
  expect((await service.send(place.adminToken, "POST", "/customers", { body })).status).toBe(201);
};

test("backup.md: the nightly job, the drill and the restore bring a customer back", async () => {
  const service = await place.start({ services: 1, args: ["--no-samples"] });
  await add(service, "Ada");
  const [once = ""] = blocks("backup", "One backup");
  expect((await paste(once)).code).toBe(0);
  const [job = ""] = blocks("backup", "Every night, and off the machine", "bash");
  const cron = `${place.path}/etc/customers-backup`;
  writeFileSync(cron, here(job));
  // Two in one second would have one name.
  await paste("rm -r /var/backups/customers");
  expect(await paste(`sh ${cron}`)).toEqual({ code: 0, out: "", err: "" });
  await add(service, "Grace");

  const [newest = ""] = blocks("backup", "Every night, and off the machine");
  const offsite = `${place.path}/offsite`;
  expect(await paste(newest, { cwd: offsite })).toEqual({ code: 0, out: "", err: "" });
  const [drill = ""] = blocks("backup", "The drill");
  const drilled = await paste(drill.replaceAll("18080", String(freePort())), { cwd: offsite });
  expect([drilled.code, drilled.out]).toEqual([0, expect.stringContaining('"name":"Ada"')]);
  expect(readdirSync(offsite)).toEqual(["customers"]);

  await service.end();
  // As systemd leaves it for a unit with DynamicUser and StateDirectory.
  const state = `${place.path}/var/lib/customers`;
  mkdirSync(`${place.path}/var/lib/private`);
  renameSync(state, `${place.path}/var/lib/private/customers`);
  symlinkSync("private/customers", state);
  const [restore = ""] = blocks("backup", "Restore");
  expect(await paste(restore)).toMatchObject({ code: 0, out: expect.stringContaining("1 customers") });
  const kept = await paste(
    "DATABASE_URL=sqlite:$(ls -d /var/lib/customers.before-*)/customers.db customers-server check",
  );
  expect(kept.out).toContain("2 customers");
  const restored = await place.start({ services: 1 });
  expect(await names(restored)).toEqual(["Ada"]);
});

test("backup.md: the nightly job says so when it failed, and so does the look from off-site", async () => {
  const [job = ""] = blocks("backup", "Every night, and off the machine", "bash");
  const cron = `${place.path}/etc/customers-backup`;
  writeFileSync(cron, here(job));
  const { code, out } = await paste(`sh ${cron}`);
  expect([code, out]).toEqual([1, expect.stringContaining("customers.db")]);
  mkdirSync(`${place.path}/offsite/customers`);
  const [newest = ""] = blocks("backup", "Every night, and off the machine");
  expect((await paste(newest, { cwd: `${place.path}/offsite` })).out).toContain("No backup");
});

test("sign-in.md: a token of an issuer is accepted, shown, sent by curl, and stored by the client", async () => {
  const issuer = await TestIssuer.start();
  try {
    const policy = `${place.path}/etc/customers/policy.toml`;
    const [table = ""] = blocks("sign-in", "Set it up", "toml");
    writeFileSync(
      policy,
      `${BUILT_IN_POLICY}${table}`
        .replace("https://login.example.com/realms/company", issuer.url)
        .replace("https://customers.example.com", AUDIENCE)
        .replace('"acme-gmbh" = "acme"', '"acme-gmbh" = "default"'),
    );
    const service = await place.start({ services: 1, env: { POLICY_FILE: policy } });
    issuer.claims["crm"] = { org: "acme-gmbh", realm_access: { roles: ["customers-read"] } };
    writeFileSync(`${place.path}/token.jwt`, await issuer.token("crm"));
    const env = { CUSTOMERS_URL: service.url };
    const [check = "", look = "", login = ""] = blocks("sign-in", "Set it up");
    expect((await paste(check)).out).toContain("issuers login");
    const looked = await paste(look, { env });
    expect([looked.code, looked.out]).toEqual([0, expect.stringContaining('"customers-read"')]);
    expect(looked.out).toContain('"items":[');
    expect(await paste(login, { env })).toMatchObject({ code: 0 });
    expect((await paste("customers list --output json")).code).toBe(0);
    expect((await paste("customers whoami --output json")).out).not.toContain(await issuer.token("crm"));
  } finally {
    await issuer.down();
  }
});

test("tokens.md: a token is handed over, rotated, looked after, and found in the log", async () => {
  const service = await place.start({ services: 1 });
  const [create = ""] = blocks("tokens", "Hand it over");
  expect((await paste(create)).code).toBe(0);
  const helpdesk = (): string => readFileSync(`${place.path}/helpdesk.token`, "utf8").trim();
  const first = helpdesk();
  const status = async (token: string) => (await service.send(token, "GET", "/customers")).status;
  expect(await status(first)).toBe(200);
  const [rotate = ""] = blocks("tokens", "Rotate");
  expect((await paste(rotate)).code).toBe(0);
  expect(helpdesk()).not.toBe(first);
  // Both, until the overlap ends.
  expect([await status(first), await status(helpdesk())]).toEqual([200, 200]);
  const [scoped = ""] = blocks("tokens", "Give less than a role");
  const newsletter = (await paste(scoped)).out.trim();
  const read = await service.send(newsletter, "GET", "/customers?fields=name,email");
  const named = await service.send(newsletter, "GET", "/customers?fields=status");
  expect([read.status, named.status]).toEqual([200, 403]);

  const [expiring = ""] = blocks("tokens", "See what expires");
  const soon = "customers-server token create --tenant acme --role support --client night --expires 12h\n";
  const { out } = await paste(`${soon}${expiring}`);
  expect(out).toMatch(/^\S+\tcst_\w+\tnight\n/m);
  expect(out).not.toContain("helpdesk");
  const [breakGlass = ""] = blocks("tokens", "Look for tokens that can do too much");
  expect((await paste(breakGlass)).out).toMatch(
    /^cst_\w+ +admin +admin .*can do everything; never expires$/m,
  );
  const [another = ""] = blocks("tokens", "The admin token of the first start");
  expect(await status((await paste(another)).out.trim())).toBe(200);

  const [leaked = ""] = blocks("tokens", "After a token leaked");
  await service.end();
  writeFileSync(`${place.path}/log`, `${JOURNAL}${service.stderr.text}`);
  const found = await paste(leaked.replace(/journalctl [^|]*/, "cat log "));
  // Once before the rotation, and once with each of both after it.
  expect(found.out.trim().split("\n")).toHaveLength(3);
  expect(found.out).toContain('"127.0.0.1","GET","/customers",200]');
});

test("systemd/README.md: the line that looks for failures passes over what is no JSON", async () => {
  const [failures = ""] = blocks("../deploy/systemd/README", "What happened");
  writeFileSync(`${place.path}/log`, `${JOURNAL}{"status":200}\n{"status":503}\n`);
  const found = await paste(failures.replace(/^systemctl .*/, "").replace(/journalctl [^|]*/, "cat log "));
  expect([found.code, JSON.parse(found.out)]).toEqual([0, { status: 503 }]);
});

test("production.md: the questions to a service that is ready are answered as it says", async () => {
  const service = await place.start({ services: 1 });
  writeFileSync(
    `${place.path}/etc/customers/policy.toml`,
    /```toml\n([\s\S]*?)```/.exec(readFileSync(`${DOCS}policy.md`, "utf8"))?.[1] ?? "",
  );
  const [policy = ""] = blocks("production", "Before anyone calls it");
  expect((await paste(policy)).code).toBe(0);
  const env = { CUSTOMERS_TOKEN: place.adminToken };
  const [ask = "", kit = ""] = blocks("production", "Is it ready?").map((block) =>
    block.replace("https://customers.example.com", service.url),
  );
  expect((await paste(ask, { env })).out).toBe('{"status":"ready"}401\n200\n401\n');
  const checked = await paste(kit, { env: { ...env, CUSTOMERS_URL: service.url } });
  expect([checked.code, checked.out]).toEqual([0, expect.stringContaining("conforms: ")]);
});

test("upgrade.md: a new version is verified, installed beside the old one, and gets the name", async () => {
  const folder = "customers-server-0.1.0-linux-x64";
  mkdirSync(`${place.path}/${folder}`);
  const archive = `tar -czf ${folder}.tar.gz ${folder} && sha256sum ${folder}.tar.gz > SHA256SUMS`;
  await paste(`cp /usr/local/bin/customers-server ${folder}/ && ${archive} && rm -r ${folder}`);
  writeFileSync(`${place.path}/etc/customers/policy.toml`, "");
  const [unpack = "", policy = "", link = ""] = blocks("upgrade", "Upgrade");
  const unpacked = await paste(unpack);
  expect([unpacked.code, unpacked.out]).toEqual([0, expect.stringContaining(`${folder}.tar.gz: OK`)]);
  expect((await paste(policy)).err).toContain("policy.toml");
  const linked = await paste(`${link}\nreadlink /usr/local/bin/customers-server`);
  expect([linked.code, linked.out]).toEqual([0, expect.stringContaining("customers-server-0.1.0")]);
});

test("privacy.md: a person is found, exported and erased, and again after a restore, by the list that was kept", async () => {
  const service = await place.start({ services: 1, args: ["--no-samples"] });
  await add(service, "Ada");
  // Its writes are no erasures, whatever its name is.
  const forged = await paste(
    "customers-server token create --tenant default --role admin --client person-erase",
  );
  const body = { name: "Eve", email: "eve@example.com" };
  expect((await service.send(forged.out.trim(), "POST", "/customers", { body })).status).toBe(201);
  const [find = ""] = blocks("privacy", "Find");
  expect((await paste(find)).out).toMatch(/ stored +email /);
  const [exporting = ""] = blocks("privacy", "Export");
  expect(await paste(exporting)).toEqual({ code: 0, out: "", err: "" });
  expect(JSON.parse(readFileSync(`${place.path}/ada.json`, "utf8")).customers[0].customer.name).toBe("Ada");
  expect((await paste("customers-server backup night.db")).code).toBe(0);
  const [erase = ""] = blocks("privacy", "Erase");
  expect((await paste(erase)).code).toBe(0);
  expect(await names(service)).toEqual(["Eve"]);
  const [list = "", again = ""] = blocks("privacy", "Backups");
  expect((await paste(list)).code).toBe(0);
  await service.end();
  // As where the database that is replaced is gone.
  await paste(`rm ${place.database}*; customers-server restore night.db`);
  expect(await paste(again)).toMatchObject({ code: 0, out: expect.stringContaining("erased: the customer") });
  expect(await names(await place.start({ services: 1 }))).toEqual(["Eve"]);
});
