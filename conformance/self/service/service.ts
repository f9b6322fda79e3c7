/**
 * A small customer resource service written from the specification alone: in memory, on raw sockets. It
 * shares no thought with the rules that judge it: the self-test wants two minds that can disagree.
 */
import { randomUUID } from "node:crypto";
import { gzipSync } from "node:zlib";
import { headerLines, type Reply, type Request } from "./http-socket.ts";
import { Counters } from "./metrics-page.ts";
import { etag, read, represent } from "./reading.ts";
import type { Attempt, Caller, Change, Customer, Seams } from "./seams.ts";
import { isWrite, soundSeams } from "./seams.ts";
import type { Deployment } from "./sound-options.ts";
import { isJson, readWriteBody } from "./write-body.ts";

/** Credentials of this server's callers; each run of the self-test is its own server, so they may be fixed. */
export const CREDENTIALS = {
  main: "k-main-5f1d9a7c",
  limited: "k-limited-0c2b66e1",
  other: "k-other-9be47d20",
  metrics: "k-metrics-e77a3b15",
} as const;

/** Replaces some decisions of the service; is given it, since a fault may need its state. */
export type Faulty = (service: Service) => Partial<Seams>;

const idInARow = (n: number) => `0000c057-0000-4000-8000-${n.toString(16).padStart(12, "0")}`;

export class Service {
  readonly customers = new Map<string, Customer>();
  readonly replicas: Counters[];
  readonly deployment: Deployment;
  readonly seams: Seams;
  readonly #keys = new Map<string, { readonly said: string; readonly reply: Reply }>();
  #version = 2000;
  #counted = 0;
  #answered = 0;

  constructor(deployment: Deployment, faulty: Faulty = () => ({})) {
    this.deployment = deployment;
    const { metrics } = deployment;
    this.replicas = Array.from({ length: metrics === "absent" ? 1 : metrics.replicas }, () => new Counters());
    this.seams = { ...soundSeams(deployment), ...faulty(this) };
  }

  async handle(request: Request): Promise<Reply> {
    if (this.deployment.latencyMs > 0) await Bun.sleep(this.deployment.latencyMs);
    const reply = await this.seams.around(request, async (inner) =>
      this.#framed(await this.#route(inner), inner),
    );
    // What was answered is counted, whatever stands before the service: it is one deployment.
    if (request.path.startsWith(`${this.deployment.basePath}/customers/`)) this.#count(reply, request);
    return reply;
  }

  #count(reply: Reply, request: Request): void {
    this.#counted += 1;
    const replica = this.replicas[this.#counted % this.replicas.length] as Counters;
    const tenant = this.caller(request) === "other" ? "b" : "a";
    for (const counter of this.seams.counted(reply, request)) replica.add(counter, request.method, tenant);
    if (!this.deployment.busyMetrics) return;
    // Others are refused now and then, at no pace of ours.
    const others = Bun.hash.crc32(`others ${this.#counted}`) % 5;
    for (let n = 0; n < others; n += 1)
      for (const counter of ["required", "failed"] as const) replica.add(counter, "PUT", "c");
  }

  #framed(reply: Reply, request: Request): Reply {
    const { framing, gzip, furtherHeaders, earlyHints } = this.deployment;
    const headers = [...reply.headers, ...furtherHeaders];
    let body = reply.body;
    const accepted = headerLines(request, "accept-encoding").join(",");
    if (gzip && /gzip/.test(accepted) && body !== undefined && reply.status === 200) {
      body = gzipSync(body);
      headers.push(["Content-Encoding", "gzip"], ["Vary", "Accept-Encoding"]);
    }
    if (framing === "chunked" && reply.status !== 204) headers.push(["Transfer-Encoding", "chunked"]);
    const close = framing === "close" || reply.close === true;
    this.#answered += 1;
    const framed = { ...reply, headers, hinted: earlyHints, ...(body === undefined ? {} : { body }) };
    return framing === "hang-up" && this.#answered % 7 === 0
      ? { ...framed, hangUp: true }
      : { ...framed, close };
  }

  caller(request: Request): Caller | "metrics" | undefined {
    const { header, scheme } = this.deployment.credential;
    const sent = headerLines(request, header.toLowerCase())[0]?.trim();
    const names = Object.keys(CREDENTIALS) as (Caller | "metrics")[];
    return names.find((name) => sent === scheme + CREDENTIALS[name]);
  }

  async #route(request: Request): Promise<Reply> {
    const caller = this.caller(request);
    const { basePath, create, head, limitedMayWrite, limitedMayRead } = this.deployment;
    if (request.method === "HEAD" && head === "elsewhere")
      return { status: 200, headers: [["ETag", '"page"']], body: "" };
    if (request.path.startsWith("/metrics")) return this.#metrics(request, caller);
    if (caller === undefined || caller === "metrics") return this.refuse(401, "unauthenticated");
    const [, collection, id] = /^(.*\/customers)(?:\/([^/]+))?$/.exec(request.path) ?? [];
    if (collection !== `${basePath}/customers`) return this.refuse(404, "no-such-route");
    if (id === undefined) {
      if (create === "absent") return this.refuse(404, "no-such-route");
      return request.method === "POST" ? await this.#create(request, caller) : this.refuse(405, "method");
    }
    if (caller === "limited" && limitedMayRead === "nothing") return this.refuse(403, "no-rights");
    if (request.method === "GET" || (request.method === "HEAD" && head === "as-get")) {
      return await read(this, request, caller, id.toLowerCase());
    }
    const offered = request.method === "PUT" || this.deployment.offersPatchAndDelete;
    if (!isWrite(request) || !offered) return this.refuse(405, "method");
    if (caller === "limited" && !limitedMayWrite) return this.refuse(403, "read-only");
    if (this.deployment.plainWritesOnly) {
      if (request.query !== "") return this.refuse(400, "no-parameters");
      if (headerLines(request, "transfer-encoding").length > 0) return this.refuse(411, "length-required");
      if (request.version === "1.0") return this.refuse(505, "http-version");
    }
    const write = () => this.#write(request, caller, id.toLowerCase());
    return this.deployment.idempotencyKeys ? await this.#once(request, caller, write) : await write();
  }

  async #once(request: Request, caller: Caller, write: () => Promise<Reply>): Promise<Reply> {
    const [key] = headerLines(request, "idempotency-key");
    if (key === undefined) return await write();
    const body = (await request.body()).toString();
    const said = JSON.stringify([request.method, request.path, headerLines(request, "if-match"), body]);
    const known = this.#keys.get(`${caller} ${key}`);
    if (known !== undefined) return known.said === said ? known.reply : this.refuse(422, "key-reused");
    const reply = await write();
    if (reply.status < 300) this.#keys.set(`${caller} ${key}`, { said, reply });
    return reply;
  }

  #metrics(request: Request, caller: Caller | "metrics" | undefined): Reply {
    const { metrics } = this.deployment;
    const [, number] = /^\/metrics(?:\/(\d))?$/.exec(request.path) ?? [];
    const counters = this.replicas[Number(number ?? 0)];
    if (metrics === "absent" || counters === undefined) return this.refuse(404, "no-such-route");
    if (metrics.guarded && caller !== "metrics") return this.refuse(401, "unauthenticated");
    const type =
      metrics.format === "openmetrics"
        ? "application/openmetrics-text; version=1.0.0"
        : "text/plain; version=0.0.4";
    return {
      status: 200,
      headers: [["Content-Type", type]],
      body: this.seams.scrape(counters.render(metrics)),
    };
  }

  readonly refuse = (status: number, code: string, extra: [string, string][] = []): Reply => {
    const headers: [string, string][] = [...extra, ["Cache-Control", this.deployment.cacheControl]];
    const { problems } = this.deployment;
    if (problems === "none") return { status, headers, body: "" };
    const type = problems === "json" ? "application/json" : "application/problem+json";
    const document =
      problems === "json" ? { error: code } : { type: "about:blank", title: code, status, code };
    return { status, headers: [...headers, ["Content-Type", type]], body: JSON.stringify(document) };
  };

  readonly find = (id: string, caller: Caller, request: Request): Customer | Reply => {
    const customer = this.customers.get(id);
    if (customer === undefined) return this.refuse(404, "not-found");
    if (!this.seams.sees(caller, customer, request))
      return this.refuse(this.deployment.otherTenantStatus, "not-found");
    if (!customer.removed) return customer;
    return this.refuse(this.deployment.afterDelete === 410 ? 410 : 404, "removed");
  };

  nextVersion(): number {
    this.#version += 1;
    return this.#version;
  }

  add(owner: Caller, content: { name: string; email: string }): Customer {
    const customer: Customer = {
      id: this.deployment.ids === "random" ? randomUUID() : idInARow(this.customers.size),
      tenant: owner === "other" ? "b" : "a",
      owner,
      name: content.name,
      email: content.email,
      status: "Active",
      createdAt: new Date().toISOString(),
      version: this.nextVersion(),
      tag: "",
      formerTags: [],
      removed: false,
    };
    customer.tag = this.seams.mint(customer.version, undefined, customer);
    this.customers.set(customer.id, customer);
    return customer;
  }

  #activate(customer: Customer): void {
    customer.status = "Verified";
    customer.version = this.nextVersion();
    customer.formerTags.push(customer.tag);
    customer.tag = this.seams.mint(customer.version, customer, customer);
  }

  async #create(request: Request, caller: Caller): Promise<Reply> {
    const answer = this.deployment.create;
    if (answer === "absent") throw new Error("no route leads here");
    if (caller !== "main" && !this.deployment.othersMayCreate) return this.refuse(403, "no-rights");
    const { name, email } = readWriteBody(await request.body(), "PUT", this.deployment) ?? {};
    if (typeof name !== "string" || typeof email !== "string") {
      return this.refuse(this.deployment.invalidBodyStatus, "invalid-body");
    }
    const customer = this.add(caller, { name, email });
    if (this.deployment.activatesMs > 0)
      setTimeout(() => this.#activate(customer), this.deployment.activatesMs);
    const shown = represent(this, customer, "default", caller, request);
    const identity = JSON.stringify({ [this.deployment.members.id]: customer.id });
    const body = { customer: shown.body ?? "", id: identity, none: "" }[answer.body];
    return {
      status: answer.status,
      headers: [
        ["Location", `${this.deployment.basePath}/customers/${customer.id}`],
        ...(answer.etag ? etag(this.deployment, customer.tag) : []),
        ["Content-Type", "application/json"],
      ],
      body,
    };
  }

  async #write(request: Request, caller: Caller, id: string): Promise<Reply> {
    const sent = this.seams.ifMatch(headerLines(request, "if-match"), request);
    const { invalidBodyStatus, patch, patchMembersMax, deleteMissing } = this.deployment;
    const mediaType = headerLines(request, "content-type")[0]?.split(";")[0]?.trim().toLowerCase() ?? "";
    let change: Change | undefined = {};
    let parsed = true;
    const attempt: Attempt = {
      request,
      bodyRead: async () => {
        const bytes = await request.body();
        if (request.method === "DELETE") return;
        parsed = isJson(bytes);
        change = readWriteBody(bytes, request.method, this.deployment, this.seams.writable(request));
      },
      decide: () => {
        if (!parsed && this.deployment.bodyJudged === "early")
          return this.refuse(invalidBodyStatus, "invalid-json");
        for (const check of this.seams.order(request)) {
          if (check === "if-match" && this.seams.isMissing(sent, request)) {
            return this.refuse(428, "precondition-required");
          }
          if (check === "body") {
            if (request.method === "PATCH" && !patch.mediaTypes.includes(mediaType))
              return this.refuse(415, "media-type");
            const tooMany = Object.keys(change ?? {}).length > patchMembersMax && request.method === "PATCH";
            if (change === undefined || tooMany) return this.refuse(invalidBodyStatus, "invalid-body");
          }
          if (check !== "exists" && check !== "current") continue;
          const customer = this.find(id, caller, request);
          if ("headers" in customer) {
            if (request.method === "DELETE" && customer.status === 404 && deleteMissing === 204)
              return { status: 204, headers: [] };
            if (check === "exists") return customer;
          } else if (check === "current" && !this.seams.isCurrent(sent ?? "", customer, request)) {
            return this.refuse(412, "precondition-failed", etag(this.deployment, customer.tag));
          }
        }
        return undefined;
      },
      apply: () => {
        const customer = this.customers.get(id);
        if (customer === undefined) return this.refuse(404, "not-found");
        return this.#apply(customer, change ?? {}, caller, request);
      },
    };
    return await this.seams.commit(attempt);
  }

  /** The accepted write: new state, new token. */
  #apply(customer: Customer, change: Change, caller: Caller, request: Request): Reply {
    const before = { ...customer };
    const { putAnswer, patchAnswer, deleteAnswer, afterDelete } = this.deployment;
    customer.version = this.nextVersion();
    if (request.method !== "DELETE") this.seams.store(customer, change, request);
    else if (afterDelete === "soft") customer.status = "Deleted";
    else customer.removed = true;
    if (this.deployment.statusSettles) {
      customer.status = "Pending";
      setTimeout(() => Object.assign(customer, { status: "Active" }), 50);
    }
    customer.formerTags.push(before.tag);
    customer.tag = this.seams.mint(customer.version, before, customer);
    if (request.method === "DELETE") {
      const headers = deleteAnswer.etag ? etag(this.deployment, customer.tag) : [];
      return { status: deleteAnswer.status, headers, body: deleteAnswer.status === 204 ? "" : "{}" };
    }
    const status = request.method === "PUT" ? putAnswer : patchAnswer;
    if (status === 200) return represent(this, customer, "default", caller, request);
    return {
      status,
      headers: etag(this.deployment, this.seams.shownTag(customer, "default", caller, request)),
    };
  }
}
