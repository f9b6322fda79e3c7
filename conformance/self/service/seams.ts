/**
 * The decisions of the sound server, one function each, so that a fault can replace one and leave the rest
 * alone. `soundSeams` is the specification; section numbers are its.
 */

import type { Reply, Request } from "./http-socket.ts";
import type { Deployment, Field, Shown } from "./sound-options.ts";
import { FIELDS } from "./sound-options.ts";

export type Caller = "main" | "limited" | "other";

export type Customer = {
  id: string;
  tenant: "a" | "b";
  /** Who made it. */
  owner: Caller;
  name: string;
  email: string;
  status: string;
  createdAt: string;
  /** Counts accepted writes over the whole store, so that no two states share it. */
  version: number;
  tag: string;
  /** Oldest first; what a fault may wrongly honour. */
  formerTags: string[];
  removed: boolean;
};

export type Check = "if-match" | "exists" | "current" | "body";
export type Counter = "required" | "failed";
export type Change = Partial<Record<"name" | "email" | "status" | "id" | "createdAt", string | null>>;

/** A write under way. `decide` and `apply` are synchronous: one after the other they are one atomic step. */
export type Attempt = {
  request: Request;
  /** Waits until the body is here and read. */
  bodyRead: () => Promise<void>;
  /** @returns the refusal that the state of this moment demands, or undefined. */
  decide: () => Reply | undefined;
  apply: () => Reply;
};

export type Seams = {
  /** Field lines of If-Match, untrimmed, to the value that is compared; undefined when there is none. */
  ifMatch: (lines: string[], request: Request) => string | undefined;
  isMissing: (sent: string | undefined, request: Request) => boolean;
  isCurrent: (sent: string, customer: Customer, request: Request) => boolean;
  order: (request: Request) => Check[];
  readOrder: (request: Request) => ("fields" | "exists")[];
  mint: (version: number, before: Customer | undefined, after: Customer) => string;
  shownTag: (customer: Customer, fields: Shown, caller: Caller, request: Request) => string | undefined;
  commit: (attempt: Attempt) => Promise<Reply>;
  store: (customer: Customer, change: Change, request: Request) => void;
  /** Which members of a request body may change a customer. */
  writable: (request: Request) => (keyof Change)[];
  fieldNames: (query: string) => string[] | undefined;
  known: (name: string, names: string[]) => Field | "createdAt" | "rowVersion" | undefined;
  mayRead: (caller: Caller, field: string, spelled: string, request: Request) => boolean;
  shape: (
    customer: Customer,
    shown: Exclude<Shown, "default">,
    caller: Caller,
    request: Request,
  ) => Record<string, unknown>;
  sees: (caller: Caller, customer: Customer, request: Request) => boolean;
  /** Which counters one reply moves; twice in the list, moved twice. */
  counted: (reply: Reply, request: Request) => Counter[];
  scrape: (exposition: string) => string;
  /** What stands before the service: proxies, caches, gateways. */
  around: (request: Request, next: (request: Request) => Promise<Reply>) => Promise<Reply>;
};

const WRITES = new Set(["PUT", "PATCH", "DELETE"]);
export const isWrite = (request: Request): boolean => WRITES.has(request.method);

/** One turn of the event loop: what a query to a database costs at least. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export function trimBlanks(value: string): string {
  return value.replace(/^[ \t]+|[ \t]+$/g, "");
}

/** Raw values of `fields` in a query, percent-decoded, in order. */
export function fieldsParameter(query: string): string[] {
  return query
    .split("&")
    .filter((pair) => pair.split("=")[0] === "fields")
    .map((pair) => decodeURIComponent(pair.slice("fields=".length).replaceAll("+", " ")));
}

export function soundSeams(deployment: Deployment): Seams {
  return {
    ifMatch(lines) {
      if (lines.length === 0) return undefined;
      const joined = lines.map(trimBlanks).join(", ");
      return deployment.trim === "ows" ? trimBlanks(joined) : joined.trim();
    },
    isMissing: (sent) => sent === undefined || sent === "", // 4.2, first check
    isCurrent: (sent, customer) => sent === customer.tag, // 4.2: exact, case-sensitive, quotes included
    order: () =>
      deployment.bodyJudged === "early"
        ? ["if-match", "body", "exists", "current"]
        : ["if-match", "exists", "current", "body"],
    readOrder: () => ["fields", "exists"], // 4.1.5
    mint: (version, _before, after) => deployment.tag(version, after.id),
    shownTag: (customer) => customer.tag, // 2.4.7
    async commit({ bodyRead, decide, apply }) {
      await bodyRead();
      await turn();
      return decide() ?? apply(); // no await between: 4.2, one atomic step
    },
    store: (customer, change) => void Object.assign(customer, change),
    writable: (request) => (request.method === "PATCH" ? ["name", "email", "status"] : ["name", "email"]),
    fieldNames(query) {
      const values = fieldsParameter(query);
      if (values.length === 0) return undefined;
      return values.join(",").split(",").map(trimBlanks);
    },
    known: (name) => FIELDS.find((field) => field === name.toLowerCase()),
    mayRead: (caller, field) => !(caller === "limited" && field === "email"),
    shape: (customer, shown) =>
      Object.fromEntries(
        shown.map((field) => [
          field === "rowVersion" ? "RowVersion" : deployment.members[field],
          field === "rowVersion"
            ? customer.tag.slice(1, -1)
            : field === "status"
              ? deployment.showStatus(customer.status)
              : customer[field],
        ]),
      ),
    sees: (caller, customer) => (caller === "other" ? "b" : "a") === customer.tenant,
    counted(reply, request) {
      if (!isWrite(request)) return [];
      if (reply.status === 428) return ["required"];
      return reply.status === 412 ? ["failed"] : [];
    },
    scrape: (exposition) => exposition,
    around: (request, next) => next(request),
  };
}
