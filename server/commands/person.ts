import type { Command } from "commander";
import { CommandRefused } from "../domain/command-refused.ts";
import { parseCustomerId } from "../domain/customer/customer-id.ts";
import { exportPerson } from "../storage/person-export.ts";
import { type FoundCustomer, findPerson, isSelected } from "../storage/person-search.ts";
import type { Storage } from "../storage/storage.ts";
import { DATABASE_SETTINGS, existingDatabaseOf, withStorage } from "./common/named-database.ts";
import { noTenant } from "./common/no-tenant.ts";
import { print } from "./common/print.ts";
import { type CommandOptions, withSettings } from "./common/setting-options.ts";
import { table } from "./common/table.ts";

type Options = CommandOptions & {
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
        if (options.json === true) for (const one of found) print(JSON.stringify(jsonOf(one)));
        else if (found.length > 0) print(tableOf(found));
        return [];
      }),
    );
  command("export")
    .description("Print all that is stored of a person as one JSON document, to send to the person.")
    .action((who: string[], options: Options) =>
      withSelected(who, options, async (storage, selected) => {
        if (selected.length === 0) return;
        for await (const piece of exportPerson(storage, who, selected)) print(piece);
      }),
    );
  command("erase")
    .description(
      "Erase what is stored of a person, but for the fact that there was a customer and who wrote.",
    )
    .option("--yes", "erase; without it only print what would be erased")
    .option("--json", "one JSON object a line, for each customer")
    .action((who: string[], options: Options) =>
      withSelected(who, options, (storage, selected) =>
        options.yes === true ? erase(storage, selected, options) : showErasure(storage, selected, options),
      ),
    );
}

function collect(name: string, names: readonly string[] = []): readonly string[] {
  return [...names, name];
}

/**
 * @param work returns sentences that say why the command fails although the work was done
 * @throws CommandRefused after the work, where one of those asked for was not found: a typing error must be seen
 */
async function withFound(
  who: readonly string[],
  options: Options,
  work: (storage: Storage, found: readonly FoundCustomer[]) => Promise<readonly string[]>,
): Promise<void> {
  for (const one of who) {
    if (!one.includes("@") && parseCustomerId(one) === null)
      throw new CommandRefused(`"${one}" must be an email or the id of a customer, a UUID.`);
  }
  await withStorage(await existingDatabaseOf(options), async (storage) => {
    const known = await storage.persons.tenants();
    const unknown = (options.tenant ?? []).filter((tenant) => !known.includes(tenant));
    if (unknown.length > 0) throw new CommandRefused(noTenant(unknown));
    const found = new Map<string, FoundCustomer>();
    const missing: string[] = [];
    for (const one of who) {
      const customers = await findPerson(storage, options.tenant ?? known, one);
      if (customers.length === 0) missing.push(one);
      for (const customer of customers) {
        const key = JSON.stringify([customer.tenant, customer.id]);
        const before = found.get(key);
        if (before === undefined || !isSelected(before)) found.set(key, customer);
      }
    }
    const faults = [...(await work(storage, [...found.values()]))];
    if (missing.length > 0) {
      faults.push(
        `Not found: ${missing.join(", ")}. A customer who was deleted is found by its email only where the audit trail keeps values; else give its id.`,
      );
    }
    if (faults.length > 0) throw new CommandRefused(faults.join("\n"));
  });
}

/** Says which of those found are left out, and which may hold values of someone else. */
async function withSelected(
  who: readonly string[],
  options: Options,
  work: (storage: Storage, selected: readonly FoundCustomer[]) => Promise<void>,
): Promise<void> {
  await withFound(who, options, async (storage, found) => {
    for (const { tenant, id, state, foundBy, hasOtherEmail } of found) {
      const isLeftOut = foundBy === "earlier-email";
      if (isLeftOut)
        console.error(
          `Left out: ${id} of ${tenant} had this email earlier, and ${state === "stored" ? "has another one now" : "perhaps another one afterwards"}. If it is the same person, name the id too.`,
        );
      else if (hasOtherEmail)
        console.error(
          `Check: ${id} of ${tenant} had another email too. If that one was another person's, its history has values of both: see \`customers-server audit --customer ${id}\`.`,
        );
    }
    const selected = found.filter(isSelected);
    await work(storage, selected);
    return found.length > 0 && selected.length === 0 ? ["All customers that were found are left out."] : [];
  });
}

async function showErasure(
  { persons }: Storage,
  found: readonly FoundCustomer[],
  options: Options,
): Promise<void> {
  for (const one of found) printOne(one, false, options);
  if (found.length > 0) console.error("Nothing was erased. Repeat with --yes to erase. It can't be undone.");
  if (found.some(({ values }) => values > 0)) await persons.requireErasureRight();
}

/** Empties the log also where nothing is found: an earlier erasure may have left it. */
async function erase({ persons }: Storage, found: readonly FoundCustomer[], options: Options): Promise<void> {
  // Before the first erasure: which of several were erased would be hard to see.
  if (found.some(({ values }) => values > 0)) await persons.requireErasureRight();
  try {
    for (const one of found)
      printOne({ ...one, ...(await persons.erase(one.tenant, one.id)) }, true, options);
  } catch (error) {
    console.error(`The erasure was cut off. ${repetition(found, options)}`);
    throw error;
  }
  if (!(await persons.emptyLog())) {
    console.error(
      `A running service reads from the write-ahead log, which still holds what was erased. ${repetition(found, options)}`,
    );
  }
  if (found.length === 0) return;
  console.error(
    "The audit trail keeps the ids, who wrote, when, and the names of fields. Backups hold what was erased until they are deleted: after a restore, erase again.",
  );
}

/** Names the ids: what was erased is no longer found by its email. */
function repetition(found: readonly FoundCustomer[], { tenant = [] }: Options): string {
  if (found.length === 0) return "Repeat the command.";
  const tenants = tenant.map((name) => `--tenant ${name} `).join("");
  return `Repeat: \`customers-server person erase --yes ${tenants}${found.map(({ id }) => id).join(" ")}\`.`;
}

function printOne(one: FoundCustomer, isErased: boolean, options: Options): void {
  if (options.json === true) print(JSON.stringify({ ...jsonOf(one), erased: isErased }));
  else print(`${one.id} of ${one.tenant}: ${sentenceOf(one, isErased)}`);
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

function jsonOf({ id, ...one }: FoundCustomer): Record<string, unknown> {
  const { tenant, state, foundBy, hasOtherEmail, values, keptReplies } = one;
  return { tenant, customer: id, state, foundBy, hasOtherEmail, values, keptReplies };
}
