/**
 * What the kit has detected of the deployment: choices that the specification leaves open. Each is inferred from
 * an exchange, which is kept as its evidence, or is given by the profile.
 */

import { headerValue } from "../http/http-reply.ts";
import type { Seen, Wire } from "../http/wire.ts";
import { CouldNotRun } from "../probe/outcome-signal.ts";
import { type FreshValues, fillTemplate, type Values } from "../probe/values.ts";
import type { Report } from "../report/schema.ts";
import type { Customer, Ground } from "../run/ground.ts";
import { type Names, namesIn } from "./names.ts";
import { PATCH_TYPES, type PatchForm, patchForm } from "./patch-form.ts";
import type { Profile } from "./profile.ts";
import { FIELDS } from "./profile-file.ts";

/** Whether a method is there at all. `unknown`: it refuses what the kit can think of, so its rules can't run. */
export type Offer =
  | { readonly kind: "offered" }
  /** `status`: the answer that said so; undefined where the profile did. */
  | { readonly kind: "absent"; readonly why: string; readonly status?: number }
  | { readonly kind: "unknown"; readonly why: string };

const OFFERED: Offer = { kind: "offered" };
/** Answers of a server that does not know the method here. */
const NOT_KNOWN = [404, 405, 501];
const BAD_BODY = [400, 415, 422];
const good = (status: number) => status >= 200 && status < 300;

export class Deployment {
  readonly inferred: Report["inferred"] = [];
  /** Member names of representations, and of request bodies. */
  names: Names;
  bodyNames: Names;
  /** The query under which a read shows name and email; empty where the default set does. */
  stateQuery = "";
  readonly #wire: Wire;
  readonly #profile: Profile;
  readonly #values: FreshValues;
  #patch: PatchForm | undefined;
  #patchOffer: Promise<Offer> | undefined;
  #otherPatches: Promise<readonly PatchForm[]> | undefined;
  #deletion: Promise<Offer> | undefined;
  #readsLearned = false;
  #patchKind: Offer["kind"] = "unknown";
  #deleteOffer: Offer | undefined;

  constructor(wire: Wire, profile: Profile, values: FreshValues) {
    this.#wire = wire;
    this.#profile = profile;
    this.#values = values;
    this.names = this.bodyNames = namesIn({}, profile.json);
  }

  /** How much of the deletion is known; undefined: nobody has tried. */
  get deleteOffered(): boolean | undefined {
    return this.#deleteOffer === undefined
      ? this.#profile.delete.offered
      : this.#deleteOffer.kind !== "absent";
  }

  /** What was inferred, as data. */
  get found(): NonNullable<Report["found"]> {
    return {
      names: this.#readsLearned ? { ...this.names } : null,
      patch: this.#patchKind,
      patchMediaType: this.#patch?.mediaType ?? null,
      delete: this.#deleteOffer?.kind ?? "unknown",
    };
  }

  note(point: string, value: string, seen: Seen | undefined): void {
    const exchange = seen?.exchange;
    const evidence =
      exchange === undefined
        ? "given by the profile"
        : `${exchange.request.method} answered ${seen?.status} (exchange ${exchange.n})`;
    this.inferred.push({ point, value, evidence });
  }

  /** From the first read of a customer. */
  async learnReads(customer: Customer, first: Seen): Promise<void> {
    const object = first.object ?? {};
    this.names = this.bodyNames = namesIn(object, this.#profile.json);
    this.#readsLearned = true;
    const shown = FIELDS.filter((field) => Object.hasOwn(object, this.names[field]));
    this.note("default field set", Object.keys(object).join(", ") || "empty", first);
    this.note("JSON names", FIELDS.map((field) => this.names[field]).join(", "), first);
    if (shown.includes("name") && shown.includes("email")) return;
    // The default set is open; name and email must be seen to tell whether a write had an effect.
    const query = "?fields=name,email";
    const asked = await this.#wire.send({
      rule: "set-up",
      purpose: "find name and email",
      caller: "main",
      method: "GET",
      url: customer.url + query,
      headers: [],
    });
    if (asked.status !== 200 || asked.object === undefined)
      throw new CouldNotRun(
        `the default field set shows no name and email, and ?fields= answered ${asked.status}`,
      );
    this.names = this.bodyNames = namesIn({ ...object, ...asked.object }, this.#profile.json);
    this.stateQuery = query;
    this.note("name and email are read with", query, asked);
  }

  /** Tries the first PUT, and other casings of its body where the service dislikes the first. */
  async learnPut(customer: Customer, tag: string): Promise<void> {
    const candidates = [this.names, lower(this.names), pascal(this.names), upper(this.names)];
    for (const names of candidates) {
      this.bodyNames = names;
      const seen = await this.#wire.send({
        rule: "set-up",
        purpose: "first PUT",
        via: "socket",
        caller: "main",
        method: "PUT",
        url: customer.url,
        headers: [
          ["Content-Type", "application/json"],
          ["If-Match", tag],
        ],
        body: this.putBody(this.#values.next()),
      });
      if (BAD_BODY.includes(seen.status) && this.#profile.putBody === undefined) continue;
      this.note(
        "PUT answers",
        `${seen.status}${seen.text === "" ? " without a body" : " with a body"}`,
        seen,
      );
      this.note("names in bodies", `${names.name}, ${names.email}`, seen);
      return;
    }
    this.bodyNames = this.names;
  }

  putBody({ name, email }: Values): string {
    if (this.#profile.putBody !== undefined) return fillTemplate(this.#profile.putBody, { name, email });
    return JSON.stringify({ [this.bodyNames.name]: name, [this.bodyNames.email]: email });
  }

  /** @param values one field or both. */
  patchBody(values: Partial<Values>, chosen?: PatchForm): { mediaType: string; body: string } {
    const form = chosen ?? this.#patch ?? this.#patchForms(undefined)[0];
    if (form === undefined) throw new CouldNotRun("no form of a PATCH body is known");
    return { mediaType: form.mediaType, body: form.body(values) };
  }

  #patchForms(accepted: string | undefined): PatchForm[] {
    const { mediaType, body } = this.#profile.patch;
    const form = (type: string) => patchForm(type, body, this.bodyNames);
    if (mediaType !== undefined) return [form(mediaType)];
    const named = accepted?.split(",").map((type) => type.trim().split(";")[0] ?? "") ?? [];
    const types = [...named.filter((type) => type.includes("json")), ...PATCH_TYPES];
    return [...new Set(types)].map(form);
  }

  /**
   * Further forms that PATCH takes beside the one in use, since each may have a handler of its own. Tried once, with
   * current tags. A body of the profile's own fits no other form.
   */
  async otherPatchForms(customer: Customer, tag: () => Promise<string>): Promise<readonly PatchForm[]> {
    this.#otherPatches ??= this.#tryOtherPatches(customer, tag);
    return await this.#otherPatches;
  }

  async #tryOtherPatches({ url }: Customer, tag: () => Promise<string>): Promise<PatchForm[]> {
    const inUse = this.#patch;
    const taken: PatchForm[] = [];
    if (inUse === undefined || this.#profile.patch.body !== undefined) return taken;
    for (const type of PATCH_TYPES.filter((each) => each !== inUse.mediaType)) {
      const form = patchForm(type, this.#profile.patch.body, this.bodyNames);
      const seen = await this.#wire.send({
        rule: "set-up",
        purpose: `is PATCH taken as ${type}`,
        caller: "main",
        method: "PATCH",
        url,
        headers: [
          ["Content-Type", type],
          ["If-Match", await tag()],
        ],
        body: form.body({ name: this.#values.next().name }),
      });
      if (!good(seen.status)) continue;
      taken.push(form);
      this.note("PATCH takes as well", type, seen);
    }
    return taken;
  }

  /** Whether PATCH is there, and in which form; tried once on a customer that may be written. */
  async patchOffer(customer: Customer, tag: () => Promise<string>): Promise<Offer> {
    if (this.#profile.patch.offered === false)
      return { kind: "absent", why: "the profile says that PATCH is not offered" };
    // Kept as a promise, so that rules that ask at once ask the deployment once.
    this.#patchOffer ??= this.#tryPatch(customer, tag);
    return await this.#patchOffer;
  }

  async #tryPatch(customer: Customer, tag: () => Promise<string>): Promise<Offer> {
    let forms = this.#patchForms(undefined);
    let asked = false;
    let last = 0;
    for (let form = forms.shift(); form !== undefined; form = forms.shift()) {
      const seen = await this.#wire.send({
        rule: "set-up",
        purpose: "first PATCH",
        caller: "main",
        method: "PATCH",
        url: customer.url,
        headers: [
          ["Content-Type", form.mediaType],
          ["If-Match", await tag()],
        ],
        body: form.body({ name: this.#values.next().name }),
      });
      last = seen.status;
      if (BAD_BODY.includes(seen.status)) {
        const accepted = headerValue(seen.headers, "accept-patch");
        if (accepted !== undefined && !asked) {
          asked = true;
          forms = this.#patchForms(accepted).filter(({ mediaType }) => mediaType !== form?.mediaType);
        }
        continue;
      }
      const offer = this.#offer("PATCH", seen);
      this.#patchKind = offer.kind;
      if (offer.kind === "offered") this.#patch = form;
      this.note(
        "PATCH",
        offer.kind === "offered" ? `${form.mediaType}, answers ${seen.status}` : offer.why,
        seen,
      );
      return offer;
    }
    const why = `PATCH answered ${last} to every form of body tried; give patch.media-type and patch.body in a profile`;
    this.inferred.push({ point: "PATCH", value: "unknown", evidence: why });
    return { kind: "unknown", why };
  }

  /** Whether DELETE is there; tried once, on a customer made for it. */
  async deleteOffer(ground: Ground, tagOf: (customer: Customer) => Promise<string>): Promise<Offer> {
    return await this.#askDelete(async () => {
      const customer = await ground.make();
      return this.#delete(customer, "first DELETE", [["If-Match", await tagOf(customer)]]);
    });
  }

  /** The same where no customer can be made and given ones are never deleted: asked of one that nobody has. */
  async deleteOfferOnMissing(ground: Ground): Promise<Offer> {
    const offer = await this.#askDelete(() => this.#delete(ground.missing(), "is DELETE known", []));
    if (offer.kind !== "absent" || offer.status !== 404) return offer;
    return {
      kind: "unknown",
      why: "DELETE of a missing customer answered 404: without a customer to delete the kit can't tell whether DELETE is offered",
    };
  }

  async #askDelete(ask: () => Promise<Seen>): Promise<Offer> {
    if (this.#profile.delete.offered === false)
      return { kind: "absent", why: "the profile says that DELETE is not offered" };
    this.#deletion ??= ask().then((seen) => {
      const offer = this.#offer("DELETE", seen);
      this.note("DELETE", offer.kind === "offered" ? `answers ${seen.status}` : offer.why, seen);
      this.#deleteOffer = offer;
      return offer;
    });
    return await this.#deletion;
  }

  #delete({ url }: Customer, purpose: string, headers: [string, string][]): Promise<Seen> {
    return this.#wire.send({ rule: "set-up", purpose, caller: "main", method: "DELETE", url, headers });
  }

  #offer(method: string, seen: Seen): Offer {
    if (good(seen.status)) return OFFERED;
    if (NOT_KNOWN.includes(seen.status))
      return {
        kind: "absent",
        why: `${method} answered ${seen.status}: not offered here`,
        status: seen.status,
      };
    if (seen.status === 403)
      return { kind: "unknown", why: `${method} answered 403: the main caller may not use it` };
    // Offered and broken: the rules of the method say how.
    return OFFERED;
  }
}

function lower(names: Names): Names {
  return mapped(names, (name) => name.charAt(0).toLowerCase() + name.slice(1));
}

function pascal(names: Names): Names {
  return mapped(names, (name) => name.charAt(0).toUpperCase() + name.slice(1));
}

function upper(names: Names): Names {
  return mapped(names, (name) => name.toUpperCase());
}

function mapped(names: Names, change: (name: string) => string): Names {
  return {
    id: change(names.id),
    name: change(names.name),
    email: change(names.email),
    status: change(names.status),
  };
}
