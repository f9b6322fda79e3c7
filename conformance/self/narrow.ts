/**
 * Faults on one path of the code alone: whatever is wrong happens in one situation and nowhere else, so that
 * exactly one assertion can see it. They show that no assertion is decoration.
 */

import { customerOf, type Fault, membersOf, withIfMatch } from "./fault.ts";
import { headerLines, type Reply, type Request } from "./service/http-socket.ts";
import { type Customer, isWrite, trimBlanks } from "./service/seams.ts";
import type { Service } from "./service/service.ts";
import type { Deployment } from "./service/sound-options.ts";

/** How If-Match stands to the current tag. */
export type Relation =
  | "none"
  | "stand-in"
  | "empty"
  | "blank"
  | "current"
  | "padded"
  | "previous"
  | "older"
  | "weak"
  | "unquoted"
  | "case"
  | "star"
  | "list"
  | "two-lines"
  | "suffix"
  | "spelling"
  | "next"
  | "foreign"
  | "pattern"
  | "other";

/** One request and what the sound service made of it. */
export type Turn = {
  request: Request;
  reply: Reply;
  service: Service;
  /** The customer as it was when the request came; undefined where there was none. */
  before: Customer | undefined;
  relation: Relation;
  /** Another request for the same customer was under way meanwhile. */
  contended: boolean;
  /** Members of the body; none where it is no JSON object. */
  body: Record<string, unknown>;
  /** The body is what a write needs. */
  goodBody: boolean;
  /** Carries a request out after all. */
  send: (request: Request) => Promise<Reply>;
};

function versionOf(tag: string): bigint | undefined {
  const text = /^"([A-Za-z0-9+/]{11}=)"$/.exec(tag)?.[1];
  return text === undefined ? undefined : Buffer.from(text, "base64").readBigUInt64BE();
}

export function relationOf(request: Request, customer: Customer | undefined, service: Service): Relation {
  const lines = headerLines(request, "if-match");
  const tag = customer?.tag ?? "";
  const [line = ""] = lines;
  const sent = trimBlanks(line);
  const bare = tag.replaceAll('"', "");
  if (lines.length === 0) {
    const others = ["etag", "x-etag", "x-if-match", "if-none-match", "if-unmodified-since"];
    return others.some((name) => headerLines(request, name).length > 0) ||
      /(etag|if-match|version)=/.test(request.query)
      ? "stand-in"
      : "none";
  }
  if (lines.length > 1) return "two-lines";
  if (sent === "") return line.length <= 1 && line !== "\t" ? "empty" : "blank";
  if (sent === tag) return line.replace(/^ /, "") === tag ? "current" : "padded";
  if (sent === customer?.formerTags.at(-1)) return "previous";
  if (customer?.formerTags.includes(sent) === true) return "older";
  if (sent === "*") return "star";
  if (sent === `W/${tag}`) return "weak";
  if (sent.includes(",") && sent.includes(tag)) return "list";
  if (sent === bare || sent === `'${bare}'` || sent === `"${bare}` || sent === `${bare}"`) return "unquoted";
  if (sent === `"${bare}-gzip"`) return "suffix";
  if (/%/.test(sent) && /^"[%.]/.test(sent) && sent.length < 8) return "pattern";
  const [mine, theirs] = [versionOf(tag), versionOf(sent)];
  if (mine !== undefined && mine === theirs) return "spelling";
  if (mine !== undefined && theirs === mine + 1n) return "next";
  if (sent.toLowerCase() === tag.toLowerCase()) return "case";
  const elsewhere = [...service.customers.values()].some(
    (each) => each.id !== customer?.id && each.tag === sent,
  );
  return elsewhere ? "foreign" : "other";
}

/** Who is under way at one address at a time. */
export class Crowd {
  readonly #under = new Map<string, Set<{ contended: boolean }>>();

  /** @returns whether others were there meanwhile, and how to leave. */
  enter(path: string): { contended: boolean; leave: () => void } {
    const all = this.#under.get(path) ?? new Set();
    const mine = { contended: false, leave: () => void all.delete(mine) };
    this.#under.set(path, all.add(mine));
    if (all.size > 1) for (const each of all) each.contended = true;
    return mine;
  }
}

type Path = {
  /** The one assertion that sees it. */
  cause: string;
  does: string;
  when: (turn: Turn) => boolean;
  act: (turn: Turn) => Reply | Promise<Reply>;
  deployment?: Partial<Deployment>;
};

const identify = (cause: string): string => `only-${cause.toLowerCase().replace(".", "-")}`;

/** A fault that is seen by one assertion alone, made by changing what happens in one situation. */
export function onPath({ cause, does, when, act, deployment }: Path): Fault {
  return {
    id: identify(cause),
    rule: cause.slice(0, 6),
    cause,
    does,
    ...(deployment === undefined ? {} : { deployment }),
    plant: (ran) => (service) => {
      const crowd = new Crowd();
      return {
        async around(request, next) {
          const customer = customerOf(request, service);
          const before =
            customer === undefined ? undefined : { ...customer, formerTags: [...customer.formerTags] };
          const relation = relationOf(request, before, service);
          const mine = crowd.enter(request.path);
          try {
            const reply = await next(request);
            const body = isWrite(request) ? await membersOf(request) : {};
            const { name, email } = service.deployment.members;
            const strings = (...members: string[]) =>
              members.every((member) => typeof body[member] === "string");
            const goodBody =
              request.method === "DELETE" ||
              (request.method === "PATCH" ? Object.keys(body).length > 0 : strings(name, email));
            const turn: Turn = {
              request,
              reply,
              service,
              before,
              relation,
              contended: mine.contended,
              body,
              goodBody,
              send: next,
            };
            if (!when(turn)) return reply;
            ran();
            return await act(turn);
          } finally {
            mine.leave();
          }
        },
      };
    },
  };
}

/** A fault that is seen by one assertion alone, planted by hand. */
export function planted(
  cause: string,
  does: string,
  plant: Fault["plant"],
  deployment?: Partial<Deployment>,
): Fault {
  return {
    id: identify(cause),
    rule: cause.slice(0, 6),
    cause,
    does,
    plant,
    ...(deployment === undefined ? {} : { deployment }),
  };
}

/** A fault that is seen by one assertion alone: some requests never reach the service. */
export function intercepted({
  cause,
  does,
  when,
  status,
}: {
  cause: string;
  does: string;
  when: (request: Request, customer: Customer | undefined, relation: Relation) => boolean;
  status: number;
}): Fault {
  return planted(cause, does, (ran) => (service) => ({
    async around(request, next) {
      const customer = customerOf(request, service);
      if (!when(request, customer, relationOf(request, customer, service))) return await next(request);
      ran();
      return service.refuse(status, "refused");
    },
  }));
}

/** A quiet write by the main caller to a customer that is there. */
export function quietWrite({ request, before, contended, goodBody, service }: Turn, method: string): boolean {
  return (
    request.method === method &&
    before?.removed === false &&
    !contended &&
    goodBody &&
    service.caller(request) === "main" &&
    !headerLines(request, "accept-encoding").join("").includes("gzip")
  );
}

/** The refusal stands, and the write is carried out all the same. */
export async function appliedToo({ request, reply, service, send }: Turn): Promise<Reply> {
  const tag = customerOf(request, service)?.tag;
  const headers = request.headers.filter(
    ([name]) => !/^(x-if-match|x-etag|etag|if-none-match|if-unmodified-since)$/i.test(name),
  );
  await send(withIfMatch({ ...request, headers, query: "" }, tag));
  return reply;
}

export const answered =
  (status: number) =>
  ({ service }: Turn): Reply =>
    service.refuse(status, "refused");
