/** IFM: what is taken for the current tag (2.4.5, 4.2 rules, 5.6). */
import { accepting, customerOf, deciding, type Fault } from "../../fault.ts";
import { trimBlanks } from "../../service/seams.ts";

export const bare = (tag: string) => tag.replaceAll('"', "");
export const members = (sent: string) => sent.split(",").map(trimBlanks);

/** Every spelling that a comparison may wrongly take for the current tag. */
const TAKEN: [id: string, rule: string, does: string, wrongly: Parameters<typeof accepting>[0]][] = [
  [
    "takes-star",
    "IFM-12",
    "honours If-Match: * as RFC 9110 does, where 4.2 wants equality",
    (sent) => sent === "*",
  ],
  [
    "takes-list",
    "IFM-13",
    "finds the tag anywhere in a list",
    (sent, { tag }) => sent.includes(",") && members(sent).includes(tag),
  ],
  [
    "takes-first-of-list",
    "IFM-13",
    "compares the first member of a list",
    (sent, { tag }) => sent.includes(",") && members(sent)[0] === tag,
  ],
  [
    "takes-last-of-list",
    "IFM-13",
    "compares the last member of a list",
    (sent, { tag }) => sent.includes(",") && members(sent).at(-1) === tag,
  ],
  [
    "takes-weak",
    "IFM-09",
    "compares weakly: W/ before the tag is ignored",
    (sent, { tag }) => sent === `W/${tag}`,
  ],
  ["takes-small-w", "IFM-09", "cuts w/ off and knows W/ for weak", (sent, { tag }) => sent === `w/${tag}`],
  ["takes-quoted-star", "IFM-12", "takes a star in quotes for If-Match: *", (sent) => sent === '"*"'],
  [
    "takes-percent-encoded-quotes",
    "IFM-10",
    "decodes what a browser has encoded",
    (sent, { tag }) => sent.replaceAll("%22", '"') === tag,
  ],
  ["takes-zero", "IFM-20", "takes version 0 for any version", (sent) => sent === '"0"'],
  [
    "takes-final-comma",
    "IFM-13",
    "cuts a comma off the end",
    (sent, { tag }) => sent.replace(/,+$/, "") === tag,
  ],
  [
    "takes-first-comma",
    "IFM-13",
    "cuts a comma off the beginning",
    (sent, { tag }) => sent.replace(/^,+/, "") === tag,
  ],
  [
    "takes-final-semicolon",
    "IFM-15",
    "cuts a semicolon off the end",
    (sent, { tag }) => sent.replace(/;+$/, "") === tag,
  ],
  [
    "takes-doubled-quotes",
    "IFM-10",
    "reads a doubled quote as one",
    (sent, { tag }) => sent !== tag && sent.replaceAll('""', '"') === tag,
  ],
  ["takes-unquoted", "IFM-10", "compares without quotes", (sent, { tag }) => sent === bare(tag)],
  [
    "takes-half-quoted",
    "IFM-10",
    "cuts a quote from either end, where there is one",
    (sent, { tag }) => sent !== bare(tag) && bare(sent) === bare(tag) && !sent.startsWith("W/"),
  ],
  [
    "takes-single-quoted",
    "IFM-10",
    "takes single quotes for double ones",
    (sent, { tag }) => sent === `'${bare(tag)}'`,
  ],
  [
    "takes-any-case",
    "IFM-11",
    "compares without regard to case",
    (sent, { tag }) => sent.toLowerCase() === tag.toLowerCase(),
  ],
  [
    "takes-prefix-of-header",
    "IFM-15",
    "asks whether the header begins with the tag",
    (sent, { tag }) => sent.startsWith(tag) && !sent.includes(","),
  ],
  [
    "takes-longer-token",
    "IFM-15",
    "asks whether the sent token begins with the current one",
    (sent, { tag }) => /^"[^"]*"$/.test(sent) && sent.startsWith(tag.slice(0, -1)),
  ],
  [
    "takes-gzip-suffix",
    "IFM-15",
    "tolerates -gzip within the quotes, as Apache writes it",
    (sent, { tag }) => sent === tag.replace(/"$/, '-gzip"'),
  ],
  [
    "takes-shorter-token",
    "IFM-15",
    "asks whether the current token begins with the sent one",
    (sent, { tag }) => /^"[^"]{2,}"$/.test(sent) && tag.startsWith(sent.slice(0, -1)),
  ],
  [
    "compares-first-8-characters",
    "IFM-03",
    "keeps eight characters of a token in its column",
    (sent, { tag }) => sent.slice(0, 9) === tag.slice(0, 9),
  ],
  [
    "takes-inner-blanks",
    "IFM-15",
    "trims blanks inside the quotes too",
    (sent, { tag }) => sent.includes(" ") && sent.replaceAll(" ", "") === tag,
  ],
  [
    "takes-percent-encoded",
    "IFM-16",
    "percent-decodes the header",
    (sent, { tag }) => sent !== tag && decodeURIComponentSafely(sent) === tag,
  ],
  [
    "takes-other-base64",
    "IFM-16",
    "decodes the token and compares bytes, so that padding and spare bits do not count",
    (sent, { tag }) =>
      /^"[^"]+"$/.test(sent) && Buffer.from(bare(sent), "base64").equals(Buffer.from(bare(tag), "base64")),
  ],
  [
    "takes-like-patterns",
    "IFM-20",
    "compares with SQL LIKE, so that % equals everything",
    (sent) => /^"%+"$/.test(sent),
  ],
  [
    "takes-regular-expressions",
    "IFM-20",
    "compares with a regular expression made of the header",
    (sent, { tag }) => matchesAsPattern(sent, tag),
  ],
  ["takes-weak-with-blank", "IFM-09", "cuts W/ and a blank off", (sent, { tag }) => sent === `W/ ${tag}`],
  [
    "takes-weak-former",
    "IFM-09",
    "looks a weak tag up in its history",
    (sent, { formerTags }) => sent.startsWith("W/") && formerTags.includes(sent.slice(2)),
  ],
  [
    "takes-padded-star",
    "IFM-12",
    "knows * as it is sent, and lets it pass between blanks",
    (sent, _, { headers }) =>
      sent === "*" && headers.some(([name, value]) => name === "If-Match" && /^\s{2}/.test(value)),
  ],
  [
    "takes-list-with-star",
    "IFM-13",
    "looks for * in a list",
    (sent) => sent.includes(",") && members(sent).includes("*"),
  ],
  [
    "takes-middle-of-list",
    "IFM-13",
    "compares the second of three",
    (sent, { tag }) => members(sent).length === 3 && members(sent)[1] === tag,
  ],
  [
    "takes-html-quotes",
    "IFM-10",
    "decodes HTML, as a form of its own pages sends it",
    (sent, { tag }) => sent !== tag && sent.replaceAll("&quot;", '"') === tag,
  ],
  [
    "takes-curly-quotes",
    "IFM-10",
    "takes curly quotes for straight ones",
    (sent, { tag }) =>
      sent !== tag &&
      Buffer.from(sent, "latin1")
        .toString("utf8")
        .replace(/[\u201c\u201d]/g, '"') === tag,
  ],
  [
    "takes-gzip-parameter",
    "IFM-15",
    "tolerates ;gzip within the quotes, as Jetty writes it",
    (sent, { tag }) => sent === tag.replace(/"$/, ';gzip"'),
  ],
  [
    "takes-comment",
    "IFM-15",
    "removes comments from every header",
    (sent, { tag }) => sent !== tag && sent.replace(/\(.*\)/, "").trim() === tag,
  ],
  [
    "takes-accents",
    "IFM-16",
    "compares in a database whose collation knows no accents",
    (sent, { tag }) => sent !== tag && sent.normalize("NFD").replace(/[\u0300-\u036f]/g, "") === tag,
  ],
  [
    "takes-soft-hyphens",
    "IFM-16",
    "compares by a collation that ignores invisible characters",
    (sent, { tag }) => sent !== tag && sent.replaceAll("\u00ad", "") === tag,
  ],
  [
    "takes-full-width",
    "IFM-16",
    "decodes headers as UTF-8 and compares in a database whose collation knows no widths",
    (sent, { tag }) => sent !== tag && Buffer.from(sent, "latin1").toString("utf8").normalize("NFKC") === tag,
  ],
  ["takes-not", "IFM-15", "reads Not as WebDAV does", (sent) => /^not /i.test(sent)],
  ["takes-quoted-blank", "IFM-20", "takes a quoted blank for no precondition", (sent) => sent === '" "'],
  [
    "takes-empty-list",
    "IFM-48",
    "splits the header at its commas, and finds no condition in an empty list",
    (sent) => /^[\s,]*,[\s,]*$/.test(sent),
  ],
  [
    "takes-nothing-in-quotes",
    "IFM-48",
    "strips W/ and the quotes, and takes what is empty then for no condition",
    (sent) => sent !== "" && bare(sent.replace(/^W\//, "")) === "",
  ],
  [
    "takes-own-id",
    "IFM-48",
    "looks the row up by its id or its version",
    (sent, { id }) => bare(sent) === id,
  ],
  [
    "takes-later-date",
    "IFM-48",
    "reads a date by the helper that If-Range has, as not modified since",
    (sent) => / GMT$/.test(sent) && Date.parse(sent) > Date.now(),
  ],
  [
    "takes-weak-unquoted",
    "IFM-09",
    "refuses W/ before a quoted tag, and trims W/ and quotes of everything else",
    (sent, { tag }) => sent === `W/${bare(tag)}`,
  ],
  [
    "takes-long-list",
    "IFM-13",
    "gives a list of more than four tags up, and the condition with it",
    (sent) => members(sent).length > 4,
  ],
  [
    "takes-cut-tag",
    "IFM-15",
    "cuts a tag of more than 64 characters down to the length of its own",
    (sent, { tag }) => sent.length > 64 && sent.slice(0, tag.length - 1) === tag.slice(0, -1),
  ],
  [
    "takes-named-tag",
    "IFM-15",
    "reads name=value as cookies have it",
    (sent, { tag }) => sent !== tag && sent.replace(/^[a-z]+=/, "") === tag,
  ],
  [
    "takes-injected-sql",
    "IFM-20",
    "pastes the header into its WHERE clause",
    (sent) => /'\s*or\s/i.test(sent),
  ],
];

function matchesAsPattern(pattern: string, text: string): boolean {
  try {
    return /[.*+?]/.test(pattern) && pattern.length < 200 && new RegExp(`^(?:${pattern})$`).test(text);
  } catch {
    return false;
  }
}

function decodeURIComponentSafely(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const COMPARISON_FAULTS: Fault[] = [
  ...TAKEN.map(([id, rule, does, wrongly]): Fault => ({ id, rule, does, plant: accepting(wrongly) })),
  {
    id: "old-tags-honoured",
    rule: "IFM-18",
    does: "refuses the previous tag but honours older ones: only the last is kept for comparison",
    plant: accepting((sent, customer) => customer.formerTags.slice(0, -1).includes(sent)),
  },
  {
    id: "other-customers-tag-honoured",
    rule: "IFM-19",
    does: "looks the tag up in the whole table and not in the customer's row",
    plant: accepting((sent, customer, _request, service) =>
      [...service.customers.values()].some((each) => each.id !== customer.id && each.tag === sent),
    ),
  },
  {
    id: "compares-numbers",
    rule: "IFM-16",
    does: "parses the token as a number before it compares",
    deployment: { tag: (version) => `"${version}"` },
    plant: accepting(
      (sent, { tag }) => /^"\s*[+]?0*\d+"$/.test(sent) && Number(bare(sent)) === Number(bare(tag)),
    ),
  },
  {
    id: "takes-compatible-characters",
    rule: "IFM-16",
    does: "normalizes headers to NFKC before it compares",
    deployment: { tag: (version) => `"a${version}"` },
    plant: accepting((sent, { tag }) => sent !== tag && sent.normalize("NFKC") === tag),
  },
  {
    id: "takes-later-versions",
    rule: "IFM-17",
    does: "refuses only what is older: sent >= current",
    deployment: { tag: (version) => `"${version}"` },
    plant: accepting((sent, { tag }) => /^"\d+"$/.test(sent) && Number(bare(sent)) > Number(bare(tag))),
  },
  {
    id: "long-tag-500",
    rule: "IFM-20",
    does: "fails on an If-Match longer than its column",
    plant: deciding("isMissing", (sound, ran) => (sent, request) => {
      if ((sent?.length ?? 0) > 200) {
        ran();
        throw new Error("value too long for type character varying(200)");
      }
      return sound(sent, request);
    }),
  },
  ...(["PATCH", "DELETE"] as const).map(
    (method): Fault => ({
      id: `${method.toLowerCase()}-old-tags-honoured`,
      rule: method === "PATCH" ? "IFM-37" : "IFM-47",
      does: `refuses the previous tag of a ${method}, whose audit row it finds, and honours older ones`,
      plant: accepting(
        (sent, { formerTags }, request) =>
          request.method === method && formerTags.slice(0, -1).includes(sent),
      ),
    }),
  ),
  {
    id: "tag-of-fifty-writes-ago-honoured",
    mode: "full",
    rule: "IFM-18",
    does: "knows a stale tag by its history of fifty versions: an older one is none",
    plant: accepting((sent, { formerTags }) => formerTags.slice(0, -50).includes(sent)),
  },
  {
    id: "tag-of-ten-writes-ago-honoured",
    rule: "IFM-18",
    does: "deletes the history of a customer beyond ten versions, and refuses what it finds there",
    plant: accepting((sent, { formerTags }) => formerTags.slice(0, -10).includes(sent)),
  },
  {
    id: "tag-before-unchanged-values-honoured",
    rule: "IFM-18",
    does: "tells a conflict by whether the last write changed a column: one that changed none is not seen",
    plant: (ran) => () => {
      const unchanged = new Set<string>();
      return {
        store(customer, change) {
          const stored = { ...customer };
          Object.assign(customer, change);
          if (Bun.deepEquals(stored, { ...customer })) unchanged.add(customer.id);
          else unchanged.delete(customer.id);
        },
        isCurrent(sent, { id, tag, formerTags }) {
          if (sent === tag) return true;
          if (!unchanged.has(id) || sent !== formerTags.at(-1)) return false;
          ran();
          return true;
        },
      };
    },
  },
  {
    id: "tag-of-the-same-values-honoured",
    rule: "IFM-18",
    does: "compares the values that were read with those that are stored, in place of the tag: A, B, A is no change",
    plant: (ran) => () => {
      const values = new Map<string, string>();
      return {
        isCurrent(sent, { tag, name, email }) {
          values.set(tag, `${name} ${email}`);
          if (sent === tag) return true;
          if (values.get(sent) !== `${name} ${email}`) return false;
          ran();
          return true;
        },
      };
    },
  },
  {
    id: "tags-sealed-by-a-key-that-changes",
    rule: "ENV-09",
    does: "seals its versions with a key that is changed while it runs",
    plant: (ran) => () => {
      let reads = 0;
      const KEPT_READS = 1500;
      const sealed = (tag: string) => (reads < KEPT_READS ? tag : `${tag.slice(0, -1)}.2"`);
      return {
        shownTag({ tag }) {
          reads += 1;
          if (reads === KEPT_READS) ran();
          return sealed(tag);
        },
        isCurrent: (sent, { tag }) => sent === sealed(tag),
      };
    },
  },
  {
    id: "versions-pushed-out-of-a-cache",
    rule: "ENV-09",
    does: "compares with the versions of the eight customers that were asked for last, and lets a former tag of any other pass",
    plant: (ran) => (service) => {
      const known = new Set<string>();
      return {
        isCurrent(sent, { id, tag, formerTags }) {
          if (sent === tag) return true;
          if (known.has(id) || !formerTags.includes(sent)) return false;
          ran();
          return true;
        },
        async around(request, next) {
          const reply = await next(request);
          const id = customerOf(request, service)?.id;
          if (id !== undefined) known.delete(id);
          if (id !== undefined) known.add(id);
          for (const oldest of known) if (known.size > 8) known.delete(oldest);
          return reply;
        },
      };
    },
  },
  {
    id: "version-forgotten-after-a-rest",
    mode: "full",
    rule: "ENV-09",
    comesAndGoes: true,
    does: "compares with a cache whose records live for two seconds, and lets pass what is not in it",
    plant: (ran) => () => {
      const written = new Map<string, number>();
      return {
        store(customer, change) {
          Object.assign(customer, change);
          written.set(customer.id, performance.now());
        },
        isCurrent(sent, { id, tag }) {
          if (sent === tag) return true;
          if (performance.now() - (written.get(id) ?? performance.now()) < 2000) return false;
          ran();
          return true;
        },
      };
    },
  },
];
