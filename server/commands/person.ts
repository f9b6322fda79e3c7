import type { Command } from "commander";
import { CommandRefused } from "../domain/command-refused.ts";
import { parseCustomerId } from "../domain/customer-id.ts";
import { openStorage } from "../storage/database-url/open-storage.ts";
import { exportCustomer } from "../storage/person-export.ts";
import { type FoundCustomer, findPerson, isMeant } from "../storage/person-search.ts";
import type { Storage } from "../storage/storage.ts";
import { DATABASE_SETTINGS, existingDatabaseOf } from "./database.ts";
import { withSettings } from "./setting-options.ts";
import { table } from "./table.ts";

type Options = Readonly<Record<string, unknown>> & {
  readonly tenant?: readonly string[];
  readonly json?: boolean;
  readonly yes?: boolean;
};

export function addPersonCommands(program: Command): void {
  const person = program
    .command("person")
    .description("Find, export and erase what is stored of a person, over all tenants.");
  const command = (name: string) =>
    withSettings(person.command(name), DATABASE_SETTINGS)
      .argument("<who...>", "an email, in any case, or the id of a customer; several are allowed")
      .option("--tenant <name>", "in this tenant alone; may be repeated", collect);
  command("find")
    .description("List the customers with an email now, or earlier as far as the audit trail keeps values.")
    .option("--json", "one JSON object a line, for each customer")
    .action((who: string[], options: Options) =>
      withFound(who, options, async (_, found) => {
        if (options.json === true) for (const one of found) console.log(JSON.stringify(jsonOf(one)));
        else console.log(tableOf(found));
      }),
    );
  command("export")
    .description("Print all that is stored of a person as one JSON document, to send to the person.")
    .action((who: string[], options: Options) =>
      withFound(who, options, async (storage, found) => {
        const meant = meantOf(found);
        const customers = [];
        for (const one of meant) customers.push(await exportCustomer(storage, one));
        const document = { exportedAt: new Date().toISOString(), askedFor: who, customers };
        console.log(JSON.stringify(document, null, 2));
      }),
    );
  command("erase")
    .description(
      "Erase what is stored of a person, but for the fact that there was a customer and who wrote.",
    )
    .option("--yes", "erase; without it only print what would be erased")
    .option("--json", "one JSON object a line, for each customer")
    .action((who: string[], options: Options) =>
      withFound(who, options, (storage, found) => erase(storage, meantOf(found), options)),
    );
}

function collect(name: string, names: readonly string[] = []): readonly string[] {
  return [...names, name];
}

/** @throws CommandRefused after the work, where one of those asked for was not found: a typing error must be seen */
async function withFound(
  who: readonly string[],
  options: Options,
  work: (storage: Storage, found: readonly FoundCustomer[]) => Promise<void>,
): Promise<void> {
  for (const one of who) {
    if (!one.includes("@") && parseCustomerId(one) === null)
      throw new CommandRefused(`"${one}" must be an email or the id of a customer, a UUID.`);
  }
  const { databaseUrl, storage: storageOptions } = await existingDatabaseOf(options);
  const storage = await openStorage(databaseUrl, storageOptions);
  try {
    const known = await storage.persons.tenants();
    const unknown = (options.tenant ?? []).filter((tenant) => !known.includes(tenant));
    if (unknown.length > 0) throw new CommandRefused(`No tenant ${unknown.join(", ")} ever had a customer.`);
    const found = new Map<string, FoundCustomer>();
    const missing: string[] = [];
    for (const one of who) {
      const customers = await findPerson(storage, options.tenant ?? known, one);
      if (customers.length === 0) missing.push(one);
      for (const customer of customers) {
        const key = JSON.stringify([customer.tenant, customer.id]);
        const before = found.get(key);
        if (before === undefined || !isMeant(before)) found.set(key, customer);
      }
    }
    if (found.size > 0) await work(storage, [...found.values()]);
    if (missing.length > 0) {
      throw new CommandRefused(
        `Not found: ${missing.join(", ")}. A customer who was deleted is found by its email only where the audit trail keeps values; else give its id.`,
      );
    }
  } finally {
    await storage.close();
  }
}

/** Says which of those found are left out. */
function meantOf(found: readonly FoundCustomer[]): readonly FoundCustomer[] {
  for (const { tenant, id } of found.filter((one) => !isMeant(one))) {
    console.error(
      `Left out: ${id} of ${tenant} had this email earlier and has another one now. If it is the same person, name the id too.`,
    );
  }
  return found.filter(isMeant);
}

async function erase(storage: Storage, found: readonly FoundCustomer[], options: Options): Promise<void> {
  const isErasing = options.yes === true;
  const needsRight = found.some(({ values }) => values > 0);
  // Before the first erasure: some of them erased and the others not would be hard to tell apart.
  if (isErasing && needsRight) await storage.persons.requireErasureRight();
  for (const one of found) {
    const erased = isErasing ? await storage.persons.erase(one.tenant, one.id) : null;
    const shown = { ...one, ...erased };
    if (options.json === true) console.log(JSON.stringify({ ...jsonOf(shown), erased: isErasing }));
    else console.log(`${one.id} of ${one.tenant}: ${sentenceOf(shown, isErasing)}`);
  }
  if (!isErasing) {
    console.error("Nothing was erased. Repeat with --yes to erase. It can't be undone.");
    if (needsRight) await storage.persons.requireErasureRight();
    return;
  }
  if (!(await storage.persons.emptyLog())) {
    console.error(
      "A running service still reads from the write-ahead log, which holds what was erased for a while. Repeat the command later to empty the log.",
    );
  }
  console.error(
    "The audit trail keeps the ids, who wrote, when, and the names of fields. Backups hold what was erased until they are deleted: after a restore, erase again.",
  );
}

function sentenceOf(found: FoundCustomer, isErasing: boolean): string {
  const contents = contentsOf(found);
  if (contents !== "") return isErasing ? `erased: ${contents}` : `would be erased: ${contents}`;
  if (found.state === "erased") return "was erased before";
  const noted = "deleted before, and nothing but its rows of the audit trail is left";
  return isErasing ? `${noted}; they say now that it was erased` : noted;
}

/** What there is to erase, in words. */
function contentsOf({ state, values, keptReplies }: FoundCustomer): string {
  const contents = [
    ...(state === "stored" ? ["the customer"] : []),
    ...(values === 0 ? [] : [`the values beside ${counted(values, "row")} of the audit trail`]),
    ...(keptReplies === 0 ? [] : [counted(keptReplies, "kept reply", "kept replies")]),
  ];
  return contents.join(", ");
}

function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

const HEADING = ["TENANT", "CUSTOMER", "STATE", "FOUND BY", "KEPT VALUES", "KEPT REPLIES"];

function tableOf(found: readonly FoundCustomer[]): string {
  const cells = found.map((one) => [
    ...[one.tenant, one.id, one.state, one.foundBy, String(one.values), String(one.keptReplies)],
  ]);
  return table(HEADING, cells);
}

function jsonOf({ tenant, id, state, foundBy, values, keptReplies }: FoundCustomer): Record<string, unknown> {
  return { tenant, customer: id, state, foundBy, values, keptReplies };
}
