/**
 * The customers of a run. Only those that the kit made, or was given, are ever written. Each stands in the
 * journal before anything is done to it; at the end those made are deleted and those given get back their
 * name and email.
 */

import { headerValue } from "../http/http-reply.ts";
import type { Seen, Wire } from "../http/wire.ts";
import { CouldNotRun, KitFault, NoReply } from "../probe/outcome-signal.ts";
import { type FreshValues, fillTemplate, type Values } from "../probe/values.ts";
import type { Report } from "../report/schema.ts";
import { idBeside, idInAnswer, type Names, namesIn, registryFields } from "../target/names.ts";
import type { Profile } from "../target/profile.ts";
import { createNames, refusalAdvice, runCommand } from "./creation.ts";
import type { Journal } from "./journal.ts";

export type Customer = { readonly id: string; readonly url: string; readonly made: boolean };

const READ_RETRIES = 20;
const READ_RETRY_MS = 100;
const REMOVALS_AT_ONCE = 4;

export class Ground {
  readonly made: Customer[] = [];
  readonly fixtures: Report["fixtures"] = {
    made: 0,
    given: 0,
    removed: 0,
    restored: 0,
    left: [],
    keptByDesign: [],
    keptFailing: [],
  };
  readonly #wire: Wire;
  readonly #profile: Profile;
  readonly #values: FreshValues;
  readonly #journal: Journal | undefined;
  readonly #given: { customer: Customer; before: Partial<Record<string, unknown>> | undefined }[] = [];
  /** Ids that this run has made up. */
  readonly #nobodys = new Set<string>();
  /** Why no customer can be made; undefined: it can, as far as is known. */
  cannotMake: string | undefined;
  /** How a create body names its members; found at the first create. */
  #createBody: ((values: Values) => string) | undefined;
  /** The answer to the first create, as evidence. */
  created: Seen | undefined;

  constructor(wire: Wire, profile: Profile, values: FreshValues, journal: Journal | undefined) {
    this.#wire = wire;
    this.#profile = profile;
    this.#values = values;
    this.#journal = journal;
    if (profile.ids.length > 0 && profile.create.body === undefined && profile.create.command === undefined)
      this.cannotMake = "only given customers may be used (--customer-id)";
  }

  customerAt(id: string, made: boolean): Customer {
    return { id, made, url: `${this.#profile.baseUrl}/customers/${encodeURIComponent(id)}` };
  }

  /** An id of the right form that no customer has. */
  missing(): Customer {
    const customer = this.customerAt(crypto.randomUUID(), false);
    this.#nobodys.add(customer.id);
    return customer;
  }

  /** The one place that decides what may be written. @throws KitFault before anybody else's customer is touched */
  guard({ id }: Customer): void {
    const ours =
      this.made.some((made) => made.id === id) || this.#profile.ids.includes(id) || this.#nobodys.has(id);
    if (!ours) throw new KitFault(`the customer ${id} was neither made nor given, so it must not be written`);
  }

  given(): readonly Customer[] {
    if (this.#given.length === 0)
      this.#given.push(
        ...this.#profile.ids.map((id) => ({ customer: this.customerAt(id, false), before: undefined })),
      );
    this.fixtures.given = this.#given.length;
    return this.#given.map(({ customer }) => customer);
  }

  #second: Customer | undefined;

  /** A customer beside the main one. @throws CouldNotRun when there is none. */
  async second(): Promise<Customer> {
    this.#second ??= this.given()[1] ?? (await this.make());
    return this.#second;
  }

  /** Remembers what a given customer is to get back. Done before its first write. */
  borrow(customer: Customer, object: Readonly<Record<string, unknown>>, names: Names): void {
    const entry = this.#given.find((given) => given.customer.id === customer.id);
    if (entry === undefined || entry.before !== undefined) return;
    entry.before = registryFields(object, names);
    this.#journal?.note({ kind: "borrowed", id: customer.id, names, values: entry.before });
  }

  /** @throws CouldNotRun when the deployment lets the kit make none. */
  async make(): Promise<Customer> {
    if (this.cannotMake !== undefined) throw new CouldNotRun(`no customer can be made: ${this.cannotMake}`);
    const values = this.#values.next();
    this.#journal?.note({ kind: "making", email: values.email });
    const { command } = this.#profile.create;
    let id: string;
    try {
      id = command === undefined ? await this.#post(values) : await runCommand(command, values);
    } catch (error) {
      // A refusal made nothing; without any answer that is not known.
      if (error instanceof CouldNotRun) this.#journal?.note({ kind: "not-made", email: values.email });
      throw error;
    }
    const customer = this.customerAt(id, true);
    this.made.push(customer);
    this.fixtures.made += 1;
    this.#journal?.note({ kind: "made", id });
    return customer;
  }

  async #post(values: Values): Promise<string> {
    const { create } = this.#profile;
    const bodies =
      this.#createBody !== undefined
        ? [this.#createBody]
        : create.body !== undefined
          ? [(v: Values) => fillTemplate(create.body ?? "", v)]
          : createNames(this.#profile.json).map(
              ([name, email]) =>
                (v: Values) =>
                  JSON.stringify({ [name]: v.name, [email]: v.email }),
            );
    let last: Seen | undefined;
    for (const body of bodies) {
      last = await this.#wire.send({
        rule: "set-up",
        purpose: "make a customer",
        // The first write is the first that could be answered by 100 Continue, which undici does not survive.
        ...(this.created === undefined ? { via: "socket" as const } : {}),
        caller: "main",
        method: "POST",
        url: `${this.#profile.baseUrl}${create.path}`,
        headers: [
          ["Content-Type", "application/json"],
          ...create.headers.map(({ name, value }): [string, string] => [name, value]),
        ],
        body: body(values),
      });
      if (last.status >= 200 && last.status < 300) {
        const id = idInAnswer(last.object, last.text, headerValue(last.headers, "location"));
        if (id === undefined) {
          this.created = last;
          this.cannotMake = `POST ${create.path} answered ${last.status}, with no id in body or Location; is the base URL right? Else give --customer-id, or [customers] in a profile`;
          throw new CouldNotRun(this.cannotMake);
        }
        this.#createBody = body;
        this.created ??= last;
        return id;
      }
      if (![400, 415, 422].includes(last.status)) break;
    }
    const status = last?.status ?? 0;
    const why = `POST ${create.path} answered ${status}${refusalAdvice(status)}`;
    if (this.created === undefined) {
      this.cannotMake = why;
      this.created = last;
    }
    throw new CouldNotRun(`no customer can be made: ${why}`);
  }

  /**
   * The id of a customer that a create without an answer may have made, where the deployment happens to list
   * customers. The specification shows no list, so finding none proves nothing.
   */
  async findByEmail(email: string): Promise<string | undefined> {
    const seen = await this.#wire.send({
      rule: "clean-up",
      purpose: "look for a customer whose create was not answered",
      caller: "main",
      method: "GET",
      url: `${this.#profile.baseUrl}${this.#profile.create.path}`,
      headers: [],
    });
    return seen.status === 200 ? idBeside(seen.text, email) : undefined;
  }

  /** The first read; a service may need a moment after a create. */
  async firstRead(customer: Customer): Promise<Seen> {
    for (let attempt = 0; ; attempt += 1) {
      const seen = await this.#wire.send({
        rule: "set-up",
        purpose: "first read",
        caller: "main",
        method: "GET",
        url: customer.url,
        headers: [],
      });
      if (seen.status !== 404 || !customer.made || attempt >= READ_RETRIES) return seen;
      await Bun.sleep(READ_RETRY_MS);
    }
  }

  /** Leaves the first of these that is still there in place when cleaning up; the journal keeps it for `cleanup`. */
  async keepOne(urls: readonly string[]): Promise<void> {
    for (const customer of urls.flatMap((url) => this.made.find((made) => url.startsWith(made.url)) ?? [])) {
      try {
        // One that a DELETE has removed has nothing to show.
        if ((await this.firstRead({ ...customer, made: false })).status !== 200) continue;
      } catch (error) {
        if (!(error instanceof NoReply) && !(error instanceof CouldNotRun)) throw error;
        return;
      }
      this.made.splice(this.made.indexOf(customer), 1);
      this.fixtures.keptFailing?.push(customer.id);
      return;
    }
  }

  /** Deletes what was made and gives back what was given. Never throws: what is left stands in `fixtures`. */
  async cleanUp(
    deleteOffered: boolean | undefined,
    put: (customer: Customer, tag: string, fields: Partial<Record<string, unknown>>) => Promise<number>,
  ): Promise<void> {
    const queue = [...this.made];
    const worker = async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift())
        await this.#remove(next, deleteOffered);
    };
    await Promise.all(Array.from({ length: REMOVALS_AT_ONCE }, worker));
    for (const { customer, before } of this.#given)
      if (before !== undefined) await this.#restore(customer, before, put);
    const { left, keptFailing = [] } = this.fixtures;
    if (left.length + keptFailing.length === 0) this.#journal?.remove();
  }

  async #remove(customer: Customer, deleteOffered: boolean | undefined): Promise<void> {
    if (deleteOffered === false) {
      this.fixtures.keptByDesign.push(customer.id);
      return;
    }
    const why = await removeCustomer(this.#wire, customer.url);
    if (why === undefined) {
      this.fixtures.removed += 1;
      this.#journal?.note({ kind: "settled", id: customer.id });
    } else this.fixtures.left.push({ id: customer.id, why });
  }

  async #restore(
    customer: Customer,
    before: Partial<Record<string, unknown>>,
    put: (customer: Customer, tag: string, fields: Partial<Record<string, unknown>>) => Promise<number>,
  ): Promise<void> {
    try {
      const now = await this.firstRead(customer);
      const names = namesIn(now.object ?? {}, this.#profile.json);
      const fields = registryFields(now.object ?? {}, names);
      if (fields.name !== before["name"] || fields.email !== before["email"]) {
        const status = await put(customer, now.tag ?? "", before);
        if (status < 200 || status > 299) {
          this.fixtures.left.push({ id: customer.id, why: `PUT of its former values answered ${status}` });
          return;
        }
      }
      this.fixtures.restored += 1;
      this.#journal?.note({ kind: "settled", id: customer.id });
    } catch (error) {
      this.fixtures.left.push({
        id: customer.id,
        why: error instanceof Error ? error.message : String(error),
      });
    }
  }
}

const REMOVAL_ATTEMPTS = 3;

/** DELETE with the tag of now. @returns why it is still there; undefined: it is gone. */
export async function removeCustomer(wire: Wire, url: string): Promise<string | undefined> {
  const ask = { rule: "clean-up", caller: "main", url } as const;
  let why = "";
  for (let attempt = 0; attempt < REMOVAL_ATTEMPTS; attempt += 1) {
    try {
      const read = await wire.send({ ...ask, purpose: "read before removal", method: "GET", headers: [] });
      if (read.status === 404 || read.status === 410) return undefined;
      const removal = await wire.send({
        ...ask,
        purpose: "removal",
        method: "DELETE",
        headers: read.tag === undefined ? [] : [["If-Match", read.tag]],
      });
      if ((removal.status >= 200 && removal.status < 300) || removal.status === 404 || removal.status === 410)
        return undefined;
      why = `DELETE answered ${removal.status}`;
    } catch (error) {
      if (!(error instanceof NoReply) && !(error instanceof CouldNotRun)) throw error;
      why = error.message;
    }
  }
  return why;
}
