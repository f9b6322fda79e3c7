export type Kind = {
  readonly title: string;
  readonly method?: "PUT" | "POST" | "GET";
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body: string | null;
};

/** The most that the service reads of a body, and about the most that it gets as one header or address. */
const BODY_BYTES = 65_536;
const HEADER_BYTES = 15_000;

const filled = (before: string, unit: string, after: string, bytes = BODY_BYTES): string =>
  before + unit.repeat(Math.floor((bytes - before.length - after.length) / unit.length)) + after;
const GOOD = '"name":"Ada","email":"ada@example.com"';

/** As many members with short names of their own as a body holds. */
function manyMembers(): string {
  let text = `{${GOOD}`;
  for (let number = 0; ; number += 1) {
    const member = `,"${number.toString(36)}":0`;
    if (text.length + member.length + 1 > BODY_BYTES) return `${text}}`;
    text += member;
  }
}

const search = { method: "POST", path: "/customers/search" } as const;
const get = { method: "GET", body: null } as const;
/** Requests that try to make the service work long. A good one comes first, to compare. */
export const HOSTILE_KINDS: readonly Kind[] = [
  { title: "a good PUT", body: `{${GOOD}}` },
  { title: "one byte too long", body: "x".repeat(BODY_BYTES + 1) },
  { title: "1 MiB", body: "x".repeat(1_048_576) },
  { title: "arrays, nested and closed", body: "[".repeat(BODY_BYTES / 2) + "]".repeat(BODY_BYTES / 2) },
  { title: "arrays, nested and open", body: "[".repeat(BODY_BYTES) },
  { title: "objects, nested and closed", body: `${'{"a":'.repeat(10_900)}0${"}".repeat(10_900)}` },
  {
    title: "a name that is nested arrays",
    body: `{"email":"ada@example.com","name":${"[".repeat(32_000)}${"]".repeat(32_000)}}`,
  },
  { title: "members, as many as fit", body: manyMembers() },
  { title: "members of empty names", body: filled("{", '"":0,', `${GOOD}}`) },
  {
    title: "one name twice, at the ends",
    body: `${manyMembers().slice(0, BODY_BYTES - 20)},"name":"Ada"}`.replace(
      /,"[^"]*":?0?,"name":"Ada"}$/,
      ',"name":"Ada"}',
    ),
  },
  { title: "a name twice, spelled by escapes", body: filled(`{${GOOD},"na\\u006de":"`, "a", '"}') },
  { title: "members with names of escapes", body: filled("{", `"${"\\u0041".repeat(20)}":0,`, `${GOOD}}`) },
  { title: "a name of \\u escapes", body: filled('{"email":"ada@example.com","name":"', "\\u0041", '"}') },
  { title: "a name of backslashes", body: filled('{"email":"ada@example.com","name":"', "\\\\", '"}') },
  { title: "a name of quotes", body: filled('{"email":"ada@example.com","name":"', '\\"', '"}') },
  {
    title: "a name of lone surrogates",
    body: filled('{"email":"ada@example.com","name":"', "\\ud800", '"}'),
  },
  {
    title: "a name of control characters",
    body: filled('{"email":"ada@example.com","name":"', "\\u0000", '"}'),
  },
  { title: "a name of blanks", body: filled('{"email":"ada@example.com","name":"', " ", '"}') },
  {
    title: "a name of blanks with a letter at the end",
    body: filled('{"email":"ada@example.com","name":"', " ", 'a"}'),
  },
  { title: "a name of letters", body: filled('{"email":"ada@example.com","name":"', "a", '"}') },
  {
    title: "a name of emoji",
    body: Buffer.from(filled('{"email":"ada@example.com","name":"', "😀", '"}', 32_000)).toString(),
  },
  { title: "an address of dots", body: filled('{"name":"Ada","email":"', "a.", '@b.c"}') },
  { title: "an address of @", body: filled('{"name":"Ada","email":"', "a@", 'b"}') },
  { title: "a member with a long name", body: filled(`{${GOOD},"`, "name", '":0}') },
  { title: "a number of 60,000 digits", body: filled('{"email":"ada@example.com","name":', "9", "}") },
  { title: "a number with 60,000 decimals", body: filled('{"email":"ada@example.com","name":0.', "1", "}") },
  { title: "a number with a huge exponent", body: filled('{"email":"ada@example.com","name":1e', "9", "}") },
  { title: "an array of numbers", body: filled("[", "1,", "1]") },
  { title: "an array of empty objects", body: filled("[", "{},", "{}]") },
  { title: "blanks around an object", body: filled("", " ", `{${GOOD}}`) },
  { title: "not JSON at its last byte", body: filled(`{${GOOD},"x":"`, "a", '"') },
  { title: "search: fields with 21,000 names", ...search, body: filled('{"fields":"', "id,", 'id"}') },
  {
    title: "search: fields with 13,000 unknown names",
    ...search,
    body: filled('{"fields":"', "nmae,", 'x"}'),
  },
  { title: "search: fields with 65,000 commas", ...search, body: filled('{"fields":"', ",", '"}') },
  { title: "search: a field of blanks between letters", ...search, body: filled('{"fields":"a', " ", 'a"}') },
  { title: "search: fields as an array of 16,000", ...search, body: filled('{"fields":[', '"a",', '"a"]}') },
  { title: "search: a cursor of 65,000 letters", ...search, body: filled('{"cursor":"', "A", '"}') },
  { title: "search: an address of 65,000 letters", ...search, body: filled('{"email":"', "a", '@b.c"}') },
  {
    title: "If-Match: blanks between letters",
    headers: { "if-match": filled("a", " ", "a", HEADER_BYTES) },
    body: `{${GOOD}}`,
  },
  {
    title: "If-Match: quotes and commas",
    headers: { "if-match": filled("", '",', '"', HEADER_BYTES) },
    body: `{${GOOD}}`,
  },
  {
    title: "If-Match: commas and blanks",
    headers: { "if-match": filled('"a"', ",  ", "x", HEADER_BYTES) },
    body: `{${GOOD}}`,
  },
  {
    title: "If-Match: dashes in quotes",
    headers: { "if-match": filled('"', "-gzip", 'x"', HEADER_BYTES) },
    body: `{${GOOD}}`,
  },
  {
    title: "If-None-Match: blanks before a letter",
    ...get,
    headers: { "if-none-match": filled('"a",', " ", "x", HEADER_BYTES) },
  },
  {
    title: "If-None-Match: tags, as many as fit",
    ...get,
    headers: { "if-none-match": filled("", '"",', '""', HEADER_BYTES) },
  },
  {
    title: "Prefer: commas and blanks",
    headers: { prefer: filled("a", ",  ", "return", HEADER_BYTES) },
    body: `{${GOOD}}`,
  },
  {
    title: "Prefer: blanks before a letter",
    headers: { prefer: filled("a,", " ", "x", HEADER_BYTES) },
    body: `{${GOOD}}`,
  },
  {
    title: "User-Agent: letters",
    headers: { "user-agent": filled("a", "a", "/", HEADER_BYTES) },
    body: `{${GOOD}}`,
  },
  {
    title: "X-Request-Id: beginnings of tokens",
    headers: { "x-request-id": filled("", "cst_", "x", HEADER_BYTES) },
    body: `{${GOOD}}`,
  },
  {
    title: "Content-Type: parameters",
    headers: { "content-type": filled("application/json", ";a=b", "", HEADER_BYTES) },
    body: `{${GOOD}}`,
  },
  {
    title: "Content-Type: blanks before a letter",
    headers: { "content-type": filled("a", " ", "a", HEADER_BYTES) },
    body: `{${GOOD}}`,
  },
  {
    title: "query: parameters, as many as fit",
    ...get,
    path: `/customers?${filled("", "a&", "b", HEADER_BYTES)}`,
  },
  {
    title: "query: fields repeated",
    ...get,
    path: `/customers?${filled("", "fields=id&", "fields=id", HEADER_BYTES)}`,
  },
  {
    title: "query: a field of blanks between letters",
    ...get,
    path: `/customers?fields=${filled("a", "+", "a", HEADER_BYTES)}`,
  },
  { title: "path: a long id", ...get, path: `/customers/${"a".repeat(HEADER_BYTES)}` },
];
