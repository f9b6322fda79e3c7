import fc from "fast-check";

/** What a body would set, or the status that refuses it once its turn comes (check 9). */
export type Verdict = { readonly name?: string; readonly email?: string; readonly status?: string } | number;

type BodyCase = {
  /** Its bytes, shortened, so that a counterexample can be read. */
  readonly shown: string;
  readonly contentType: string | null;
  /** @param id the customer's, for bodies that name it */
  readonly bytes: (id: string) => Uint8Array;
  readonly verdict: Readonly<Record<"PUT" | "PATCH" | "POST", Verdict>>;
};

/** If-Match as header lines, made from the tag that is current (or would be) and others that are not. */
type TagCase = {
  readonly title: string;
  readonly lines: (current: string, other: string) => readonly string[];
};

const toggleCase = (text: string): string =>
  text.replace(/[a-z]|[A-Z]/g, (letter) =>
    letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
  );

const MANGLED: Record<string, (tag: string, other: string) => readonly string[]> = {
  absent: () => [],
  empty: () => [""],
  blank: () => [" \t  "],
  "padded with spaces and tabs": (tag) => [`\t  ${tag} \t`],
  former: (_, other) => [other],
  "never sent by anyone": () => ['"AAAAAAAAAAAAAAAA"'],
  weak: (tag) => [`W/${tag}`],
  "weak in lower case": (tag) => [`w/${tag}`],
  "of a compressing proxy": (tag) => [tag.replace(/"$/, '-gzip"')],
  "suffix outside": (tag) => [`${tag}-gzip`],
  unquoted: (tag) => [tag.slice(1, -1)],
  "half quoted": (tag) => [tag.slice(0, -1)],
  "in single quotes": (tag) => [`'${tag.slice(1, -1)}'`],
  "quoted twice": (tag) => [`"${tag}"`],
  "quotes escaped": (tag) => [`\\"${tag.slice(1, -1)}\\"`],
  "case changed": (tag) => [toggleCase(tag)],
  any: () => ["*"],
  "any, quoted": () => ['"*"'],
  "the empty tag": () => ['""'],
  "list with the right one last": (tag, other) => [`${other}, ${tag}`],
  "list with the right one first": (tag, other) => [`${tag}, ${other}`],
  "list of the right one twice": (tag) => [`${tag},${tag}`],
  "two lines": (tag) => [tag, tag],
  "two lines, the first blank": (tag) => ["", tag],
  "a comma after": (tag) => [`${tag},`],
  "bytes after": (tag) => [`${tag}x`],
  "bytes before": (tag) => [`x${tag}`],
  "a blank inside": (tag) => [`" ${tag.slice(1)}`],
  "padding of base64": (tag) => [tag.replace(/"$/, '=="')],
  "base64 for base64url": (tag) => [tag.replaceAll("-", "+").replaceAll("_", "/").replace(/^"./, '"+')],
  percent: (tag) => [encodeURIComponent(tag)],
  "no-break space before": (tag) => [`\u00a0${tag}`],
  "no-break space after": (tag) => [`${tag}\u00a0`],
  "next line after": (tag) => [`${tag}\u0085`],
  "DEL after": (tag) => [`${tag}\u007f`],
  "only a no-break space": () => ["\u00a0"],
  "bytes that are not ASCII": (tag) => [tag.replace(/^"./, '"\u00e9')],
  truncated: (tag) => [`${tag.slice(0, -2)}"`],
  "very long": (tag) => [tag + "A".repeat(4000)],
  undefined: () => ["undefined"],
};

/** About half of all tags are right, so that sequences get somewhere. */
export const anyTag: fc.Arbitrary<TagCase> = fc.oneof(
  { weight: 3, arbitrary: fc.constant({ title: "current", lines: (tag: string) => [tag] }) },
  {
    weight: 4,
    arbitrary: fc.constantFrom(...Object.entries(MANGLED).map(([title, lines]) => ({ title, lines }))),
  },
);

const text = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));
const JSON_TYPE = "application/json";

const goodName = fc.oneof(
  { weight: 1, arbitrary: fc.constant("😀".repeat(196)) },
  {
    weight: 9,
    arbitrary: fc
      .string({ unit: "grapheme", minLength: 1, maxLength: 12 })
      .filter(
        (name) =>
          !/^[\p{White_Space}\p{Default_Ignorable_Code_Point}\u2800]*$/u.test(name) &&
          !/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u.test(name) &&
          name.isWellFormed(),
      ),
  },
);
const goodEmail = fc.stringMatching(/^[a-z0-9+_-]{1,12}$/).map((local) => `${local}@example.com`);
const anyStatus = fc.constantFrom("active", "suspended", "closed");
const padding = fc.constantFrom("", " ", "  ");

const whole: fc.Arbitrary<BodyCase> = fc
  .record({
    name: goodName,
    email: goodEmail,
    before: padding,
    after: padding,
    naming: fc.constantFrom("no id", "id", "ID", "another id"),
    type: fc.constantFrom(
      JSON_TYPE,
      "Application/JSON; charset=utf-8",
      "application/json ; x=y",
      "application/merge-patch+json",
    ),
  })
  .map(({ name, email, before, after, naming, type }) => {
    const set = { name: `${before}${name}${after}`, email };
    const id = (own: string): object =>
      ({
        "no id": {},
        id: { id: own },
        ID: { id: own.toUpperCase() },
        "another id": { id: "01a00000-0000-7000-8000-000000000000" },
      })[naming];
    const named: Verdict = naming === "another id" ? 422 : set;
    const isPatchType = type.includes("merge-patch");
    return {
      shown: JSON.stringify({ naming, name, email }),
      contentType: type,
      bytes: (own) => text({ ...id(own), ...set }),
      verdict: {
        PUT: isPatchType ? 415 : named,
        PATCH: named,
        POST: isPatchType ? 415 : naming === "no id" ? set : 422,
      },
    };
  });

const part: fc.Arbitrary<BodyCase> = fc
  .record({ name: goodName, email: goodEmail, status: anyStatus }, { requiredKeys: [] })
  .map((change) => {
    const set: Verdict = change;
    const isWhole = change.name !== undefined && change.email !== undefined;
    return {
      shown: JSON.stringify(change),
      contentType: JSON_TYPE,
      bytes: () => text(change),
      verdict: {
        PUT: isWhole && change.status === undefined ? set : 422,
        PATCH: set,
        POST: isWhole ? set : 422,
      },
    };
  });

const refused = (
  status: number,
  bytes: string | Uint8Array,
  contentType: string | null = JSON_TYPE,
): BodyCase => ({
  shown: Buffer.from(bytes).toString("latin1").slice(0, 80),
  contentType,
  bytes: () => (typeof bytes === "string" ? Buffer.from(bytes) : bytes),
  verdict: { PUT: status, PATCH: status, POST: status },
});

const GOOD = '"name":"Ada","email":"ada@example.com"';
const BAD_BODIES: readonly BodyCase[] = [
  refused(400, ""),
  refused(400, `{${GOOD}`),
  refused(400, `{${GOOD},}`),
  refused(400, `{${GOOD}}{}`),
  refused(400, `\ufeff{${GOOD}}`),
  refused(400, Buffer.from(`{"name":"Ad\u00e9","email":"ada@example.com"}`, "latin1")),
  refused(400, `{${GOOD},"name":"Bob"}`),
  refused(400, `{${GOOD},"na\\u006de":"Bob"}`),
  refused(400, Buffer.from(`{${GOOD}}`, "utf16le")),
  refused(400, `${"[".repeat(30_000)}`),
  refused(400, `{"name":${"[".repeat(32)}${"]".repeat(32)},"email":"ada@example.com"}`),
  refused(400, `{${GOOD},${Array.from({ length: 255 }, (_, at) => `"${at}":0`).join()}}`),
  refused(413, `{${GOOD},"x":"${"a".repeat(65_536)}"}`),
  refused(413, "x".repeat(65_537), "text/plain"),
  refused(415, `{${GOOD}}`, null),
  refused(415, `{${GOOD}}`, "text/plain"),
  refused(415, `{${GOOD}}`, "application/jsonx"),
  refused(415, `{${GOOD}}`, "application/json, text/plain"),
  refused(415, "name=Ada&email=ada%40example.com", "application/x-www-form-urlencoded"),
  refused(415, "{", "application/problem+json"),
  refused(422, "[]"),
  refused(422, "null"),
  refused(422, '"name"'),
  refused(422, `[{${GOOD}}]`),
  refused(422, `{${GOOD},"nmae":"Bob"}`),
  refused(422, `{${GOOD},"createdAt":"2026-01-01"}`),
  refused(422, `{${GOOD},"__proto__":{"status":"closed"}}`),
  refused(422, `{${GOOD},"constructor":1}`),
  refused(422, `{${GOOD},"Name":"Bob"}`),
  refused(422, `{"name":null,"email":"ada@example.com"}`),
  refused(422, `{"name":1,"email":"ada@example.com"}`),
  refused(422, `{"name":"","email":"ada@example.com"}`),
  refused(422, `{"name":"   ","email":"ada@example.com"}`),
  refused(422, `{"name":"a\\u0000b","email":"ada@example.com"}`),
  refused(422, `{"name":"a\\nb","email":"ada@example.com"}`),
  refused(422, `{"name":"a\\u202eb","email":"ada@example.com"}`),
  refused(422, `{"name":"\\u200b\\u00a0","email":"ada@example.com"}`),
  refused(422, `{"name":"\\ud800","email":"ada@example.com"}`),
  refused(422, `{"name":"${"é".repeat(201)}","email":"ada@example.com"}`),
  refused(422, `{"name":"Ada","email":"ada"}`),
  refused(422, `{"name":"Ada","email":"a@b@c"}`),
  refused(422, `{"name":"Ada","email":".ada@example.com"}`),
  refused(422, `{"name":"Ada","email":"ada@-example.com"}`),
  refused(422, `{"name":"Ada","email":"ada@example-.com"}`),
  refused(422, `{"name":"Ada","email":"${"a".repeat(251)}@b.c"}`),
  refused(422, `{"name":"Ada","email":"ada@example.com","status":"Active"}`),
  refused(422, `{"name":${"[".repeat(31)}${"]".repeat(31)},"email":"ada@example.com"}`),
];

export const anyBody: fc.Arbitrary<BodyCase> = fc.oneof(
  { weight: 4, arbitrary: whole },
  { weight: 3, arbitrary: part },
  { weight: 3, arbitrary: fc.constantFrom(...BAD_BODIES) },
);

export const ADA: BodyCase = {
  ...refused(422, `{${GOOD}}`),
  verdict: { PUT: {}, PATCH: {}, POST: { name: "Ada", email: "ada@example.com" } },
};
/** Other bytes for the same customer. */
const SPACED: BodyCase = {
  ...ADA,
  bytes: () => Buffer.from(`{ "email": "ada@example.com", "name": "Ada" }`),
};

/** Bodies that come again, since an idempotency key is for those. */
export const anyCreation: fc.Arbitrary<BodyCase> = fc.oneof(fc.constantFrom(ADA, ADA, SPACED), anyBody);

/**
 * A query string, and what check 5 makes of it: a set of
 * field names, null for the default, or a problem code.
 */
export type QueryCase = { readonly query: string; readonly fields: readonly string[] | string | null };

const NAMES = ["id", "name", "email", "status"];
const spelled = fc
  .record({ name: fc.constantFrom(...NAMES), spelling: fc.nat({ max: 4 }) })
  .map(({ name, spelling }) => ({
    name,
    text: [
      name,
      name.toUpperCase(),
      `%20${name}+`,
      `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`,
      name.replace("e", "%65"),
    ][spelling],
  }));
const chosen: fc.Arbitrary<QueryCase> = fc
  .record({ names: fc.array(spelled, { minLength: 1, maxLength: 16 }), isSplit: fc.boolean() })
  .map(({ names, isSplit }) => ({
    query: `fields=${names.map((name) => name.text).join(isSplit ? "&fields=" : ",")}`,
    fields: [...new Set(names.map((name) => name.name))],
  }));

export const anyQuery: fc.Arbitrary<QueryCase> = fc.oneof(
  { weight: 3, arbitrary: fc.constant({ query: "", fields: null }) },
  { weight: 4, arbitrary: chosen },
  {
    weight: 2,
    arbitrary: fc.constantFrom<QueryCase>(
      { query: "fields=", fields: "empty-fields" },
      { query: "fields=name,,id", fields: "empty-fields" },
      { query: "fields=name&fields=", fields: "empty-fields" },
      { query: "fields=nmae", fields: "unknown-field" },
      { query: "fields=createdAt", fields: "unknown-field" },
      { query: "fields=rowVersion,name", fields: "unknown-field" },
      { query: "fields=id,toString", fields: "unknown-field" },
      { query: "fields=name%00", fields: "unknown-field" },
      { query: "fields=name%C2%A0", fields: "unknown-field" },
      { query: `fields=${"id,".repeat(16)}id`, fields: "too-many-fields" },
      { query: "field=name", fields: "unknown-parameter" },
      { query: "fields[]=name", fields: "unknown-parameter" },
      { query: "Fields=name", fields: "unknown-parameter" },
      { query: "fields=name&x=1", fields: "unknown-parameter" },
    ),
  },
);
