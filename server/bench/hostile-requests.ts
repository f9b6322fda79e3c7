/**
 * How long one hostile request of each kind is answered by an idle service, which holds up everyone else at
 * most that long: one name of 64 KiB of blanks once took seconds. Compare with the first row, a good PUT.
 *
 *     bun run bench:bodies [rounds]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SqliteStorage } from "../storage/sqlite/sqlite-storage.ts";
import { median } from "./measure.ts";
import { startServer } from "./targets.ts";

/** The most that the service reads of a body, and about the most that it gets as one header or address. */
const BODY_BYTES = 65_536;
const HEADER_BYTES = 15_000;
const GOOD = '"name":"Ada","email":"ada@example.com"';

function filled(before: string, unit: string, after: string, bytes = BODY_BYTES): string {
  const room = bytes - Buffer.byteLength(before + after);
  return before + unit.repeat(Math.floor(room / Buffer.byteLength(unit))) + after;
}
const named = (unit: string, end = ""): string =>
  filled('{"email":"ada@example.com","name":"', unit, `${end}"}`);
const header = (before: string, unit: string, after: string): string =>
  filled(before, unit, after, HEADER_BYTES);

/** As many members with different names as fit. */
const MANY = Array.from({ length: 7_000 }, (_, n) => `"${n.toString(36)}":0`).join();

const PUTS: Record<string, string> = {
  "a good PUT": `{${GOOD}}`,
  "one byte too long": "x".repeat(BODY_BYTES + 1),
  "1 MiB": "x".repeat(1_048_576),
  "arrays, nested and closed": "[".repeat(BODY_BYTES / 2) + "]".repeat(BODY_BYTES / 2),
  "arrays, nested and open": "[".repeat(BODY_BYTES),
  "objects, nested and closed": `${'{"a":'.repeat(10_900)}0${"}".repeat(10_900)}`,
  "a name that is nested arrays": `{"name":${"[".repeat(32_000)}${"]".repeat(32_000)}}`,
  "a list of empty strings": filled("[", '"",', '""]'),
  "members with many names": `{${GOOD},${MANY}}`,
  "members of empty names": filled("{", '"":0,', `${GOOD}}`),
  "one name twice, at the ends": `{${GOOD},${MANY},"name":"Ada"}`,
  "a name twice, spelled by escapes": filled(`{${GOOD},"na\\u006de":"`, "a", '"}'),
  "members with names of escapes": filled("{", `"${"\\u0041".repeat(20)}":0,`, `${GOOD}}`),
  "a name of \\u escapes": named("\\u0041"),
  "a name of backslashes": named("\\\\"),
  "a name of lone surrogates": named("\\ud800"),
  "a name of blanks": named(" "),
  "a name of blanks with a letter at the end": named(" ", "a"),
  "a name of emoji": named("😀"),
  "an address of dots": filled('{"name":"Ada","email":"', "a.", '@b.c"}'),
  "an address of @": filled('{"name":"Ada","email":"', "a@", 'b"}'),
  "a member with a long name": filled(`{${GOOD},"`, "name", '":0}'),
  "a number of 60,000 digits": filled('{"name":', "9", "}"),
  "a number with a huge exponent": filled('{"name":1e', "9", "}"),
  "an array of empty objects": filled("[", "{},", "{}]"),
  "blanks around an object": filled("", " ", `{${GOOD}}`),
  "not JSON at its last byte": filled(`{${GOOD},"x":"`, "a", '"'),
};
const SEARCHES: Record<string, string> = {
  "fields with 21,000 names": filled('{"fields":"', "id,", 'id"}'),
  "fields with 13,000 unknown names": filled('{"fields":"', "nmae,", 'x"}'),
  "fields with 65,000 commas": filled('{"fields":"', ",", '"}'),
  "a field of blanks between letters": filled('{"fields":"a', " ", 'a"}'),
  "a cursor of 65,000 letters": filled('{"cursor":"', "A", '"}'),
  "an address of 65,000 letters": filled('{"email":"', "a", '@b.c"}'),
};
const HEADERS: readonly (readonly [name: string, what: string, value: string])[] = [
  ["If-Match", "blanks between letters", header("a", " ", "a")],
  ["If-Match", "quotes and commas", header("", '",', '"')],
  ["If-Match", "commas and blanks", header('"a"', ",  ", "x")],
  ["If-Match", "dashes in quotes", header('"', "-gzip", 'x"')],
  ["If-None-Match", "blanks before a letter", header('"a",', " ", "x")],
  ["If-None-Match", "tags, as many as fit", header("", '"",', '""')],
  ["Prefer", "commas and blanks", header("a", ",  ", "return")],
  ["User-Agent", "letters", header("a", "a", "/")],
  ["X-Request-Id", "beginnings of tokens", header("", "cst_", "x")],
  ["Content-Type", "parameters", header("application/json", ";a=b", "")],
  ["Content-Type", "blanks before a letter", header("a", " ", "a")],
];
const PATHS: Record<string, string> = {
  "query: parameters, as many as fit": `/customers?${header("", "a&", "b")}`,
  "query: fields repeated": `/customers?${header("", "fields=id&", "fields=id")}`,
  "query: a field of blanks between letters": `/customers?fields=${header("a", "+", "a")}`,
  "path: a long id": `/customers/${"a".repeat(HEADER_BYTES)}`,
};

type Shot = { method?: string; path?: string; headers?: Record<string, string>; body?: string };
const SHOTS: Record<string, Shot> = {
  ...mapped(PUTS, (body) => ({ body })),
  ...mapped(SEARCHES, (body) => ({ method: "POST", path: "/customers/search", body }), "search: "),
  ...Object.fromEntries(
    HEADERS.map(([name, what, value]) => [
      `${name}: ${what}`,
      { headers: { [name.toLowerCase()]: value }, body: `{${GOOD}}` },
    ]),
  ),
  ...mapped(PATHS, (path) => ({ method: "GET", path })),
};

function mapped(rows: Record<string, string>, shotOf: (text: string) => Shot, before = ""): typeof SHOTS {
  return Object.fromEntries(Object.entries(rows).map(([title, text]) => [before + title, shotOf(text)]));
}

const rounds = Number(process.argv[2] ?? 15);
const directory = mkdtempSync(join(tmpdir(), "customers-hostile-"));
const database = join(directory, "customers.db");
const storage = SqliteStorage.open(database);
const holder = { client: "bench", role: "admin", tenant: "default" };
const { token } = await storage.tokens.create(holder, Date.now(), null);
await storage.close();
const service = await startServer("ours", [process.execPath, "../main.ts", "serve", "--print-url"], {
  cwd: import.meta.dir,
  idsFile: "",
  environment: { PORT: "0", DATABASE_URL: `sqlite:${database}`, NODE_ENV: "production" },
});
try {
  console.log(`| request | status | least ms | median of ${rounds} | most |\n|---|---|---|---|---|`);
  for (const [title, shot] of Object.entries(SHOTS)) {
    const times: number[] = [];
    let status = 0;
    for (let round = 0; round < rounds; round += 1) {
      // A customer of its own, so that a write names the tag that is current.
      const made = await send({ method: "POST", path: "/customers", body: `{${GOOD}}` });
      const headers = { "if-match": made.headers.get("etag") ?? "", ...shot.headers };
      const startedAt = performance.now();
      ({ status } = await send({ path: made.headers.get("location") ?? "", ...shot, headers }));
      times.push(performance.now() - startedAt);
    }
    const shown = [Math.min(...times), median(times), Math.max(...times)].map((ms) => ms.toFixed(2));
    console.log(`| ${[title, status, ...shown].join(" | ")} |`);
  }
} finally {
  await service.stop();
  rmSync(directory, { recursive: true, force: true });
}

async function send({ method = "PUT", path = "", headers, body }: Shot): Promise<Response> {
  const response = await fetch(`${service.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body }),
  });
  await response.arrayBuffer();
  return response;
}
