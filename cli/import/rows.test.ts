import { expect, test } from "bun:test";
import { join } from "node:path";
import fc from "fast-check";
import { formatJson } from "../client/json.ts";
import { readCell, textCell } from "../output/csv-cell.ts";
import { temporaryDirectory } from "../tests/support/client.ts";
import { writeFailedRows } from "./failed-rows.ts";
import { detectFormat, type Header, InputError, type Row, readRows } from "./rows.ts";

async function rowsOf(content: string | Uint8Array, format: "csv" | "ndjson" = "csv"): Promise<Row[]> {
  using directory = temporaryDirectory();
  const path = join(directory.path, "input");
  await Bun.write(path, content);
  return await Array.fromAsync(readRows(path, format));
}

const valuesOf = (rows: Row[]) => rows.map((row) => formatJson(row.values));

test.each([
  ["a byte order mark and CRLF", "\uFEFFname,email\r\nAda,a@b\r\n", ['{"name":"Ada","email":"a@b"}']],
  [
    "quotes, commas and line ends in a cell",
    'name\n"Ada, ""Countess""\r\nLovelace"\n',
    ['{"name":"Ada, \\"Countess\\"\\r\\nLovelace"}'],
  ],
  ["wide and combining characters", "name\n田中 é 👩‍🚀\n", ['{"name":"田中 é 👩‍🚀"}']],
  ["blank cells, which set nothing", "name,email\n,a@b\n", ['{"email":"a@b"}']],
  ["blank lines and rows of blank cells", "name,email\n\n,\nAda,\n , \n", ['{"name":"Ada"}']],
  [
    "formula cells, without the apostrophe that guards them",
    "name\n'=1+1\n''+x\n'plain\n",
    ['{"name":"=1+1"}', '{"name":"\'+x"}', '{"name":"\'plain"}'],
  ],
  ["no line end after the last row", "name\nAda", ['{"name":"Ada"}']],
])("CSV with %s is read", async (_, content, expected) => {
  expect(valuesOf(await rowsOf(content))).toEqual(expected);
});

test("id and etag, in any case, are of the row; reason is ignored", async () => {
  const [csv] = await rowsOf('Id,ETag,Name,Reason\n7,"""v1""",Ada,stale\n');
  expect(csv).toMatchObject({ number: 1, line: 2, id: "7", etag: '"v1"' });
  expect(valuesOf([csv as Row])).toEqual(['{"Name":"Ada"}']);
  const [ndjson] = await rowsOf(
    '{"etag":"\\"v1\\"","customer":{"id":"7","name":"Ada"},"reason":"stale"}\n',
    "ndjson",
  );
  expect(ndjson).toMatchObject({ id: "7", etag: '"v1"' });
  expect(valuesOf([ndjson as Row])).toEqual(['{"name":"Ada"}']);
});

test("NDJSON values come as they are: numbers as written, null and empty strings too", async () => {
  const rows = await rowsOf('{"n":1.10,"a":null,"s":""}\n\n{"n":9007199254740993}', "ndjson");
  expect(valuesOf(rows)).toEqual(['{"n":1.10,"a":null,"s":""}', '{"n":9007199254740993}']);
  expect(rows.map((row) => [row.number, row.line])).toEqual([
    [1, 1],
    [2, 3],
  ]);
});

test("law: the line of a row is where it begins, whatever line breaks its cells and the file have", async () => {
  const breaks = fc.constantFrom("\n", "\r\n", "\r");
  const cell = fc.array(fc.oneof(breaks, fc.constantFrom("x", '""', ",")), { maxLength: 4 });
  const rows = fc.array(fc.tuple(cell, fc.constantFrom(0, 1)), { minLength: 1, maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(rows, fc.constantFrom("\n", "\r\n"), async (cells, end) => {
      let line = 2;
      const expected: number[] = [];
      const texts = cells.map(([parts, blank]) => {
        const text = `"N${parts.join("")}"`;
        line += blank;
        expected.push(line);
        line += 1 + (text.match(/\r\n|\r|\n/g)?.length ?? 0);
        return (blank === 1 ? end : "") + text;
      });
      const read = await rowsOf(["name", ...texts].join(end));
      expect(read.map((row) => row.line)).toEqual(expected);
    }),
  );
});

test("the line of a row is where an editor finds it", async () => {
  const rows = await rowsOf('name\n"a\nb"\n\nc\n');
  expect(rows.map((row) => row.line)).toEqual([2, 5]);
});

test.each([
  ["a file that is not UTF-8", Uint8Array.from([...Buffer.from("name\n"), 0xe9, 0x0a]), "csv", /not UTF-8/],
  ["UTF-16", Buffer.from("\uFEFFname\nAda\n", "utf16le"), "csv", /not UTF-8/],
  ["an open quote", 'name\n"Ada\n', "csv", /line 2: a quote that opens in this row is not closed/],
  ["a quote in the middle of a cell", 'name\nA"da"\n', "csv", /^line 2: a quote .* twice/],
  ["text after a quote", 'name\n"Ada"x\n', "csv", /^line 2: a quote .* twice/],
  ["a quote after rows, one with CRLF in a cell", 'name\nEve\n"A\r\nB"\nA"da"\n', "csv", /^line 5: a quote/],
  ["a row that is too long", `name\nEve\n${"x".repeat(2 ** 21)}\n`, "csv", /^line 3: .* more than 1048576/],
  ["a row with more cells", "name\nAda,x\n", "csv", /line 2: 2 cells where the header has 1/],
  ["a row after one with CRLF in a cell", 'name\n"A\r\nB"\nAda,x\n', "csv", /line 4: 2 cells/],
  ["a column twice", "name,Name\n", "csv", /line 1: the column Name appears twice/],
  ["a column without a name", "name,\n", "csv", /line 1: a column has no name/],
  ["semicolons", "name;email\nAda;x\n", "csv", /separated by commas/],
  ["nothing", "", "csv", /empty/],
  ["an etag without an id", 'name,etag\nAda,"""x"""\n', "csv", /line 2: an etag/],
  ["what is not JSON", '{"name":"Ada"}\n{"name":\n', "ndjson", /line 2: not JSON/],
  ["JSON that is no object", "[1]\n", "ndjson", /line 1: the file is one JSON array; .*jq -c/],
  ["a member twice", '{"name":"Ada","Name":"Eve"}\n', "ndjson", /line 1: the member Name appears twice/],
  ["an id that is no string", '{"id":7}\n', "ndjson", /line 1: id is not a string/],
] as const)("%s is refused with the line", async (_, content, format, message) => {
  const reading = rowsOf(content, format);
  await expect(reading).rejects.toThrow(InputError);
  await expect(reading).rejects.toThrow(message);
});

test("the format is known by the name, else by the first character", async () => {
  using directory = temporaryDirectory();
  const path = join(directory.path, "input");
  await Bun.write(path, '\uFEFF \n{"a":1}');
  expect(await detectFormat(path, "x.CSV")).toBe("csv");
  expect(await detectFormat(path, "x.jsonl")).toBe("ndjson");
  expect(await detectFormat(path, "-")).toBe("ndjson");
  await Bun.write(path, "name\n");
  expect(await detectFormat(path, "-")).toBe("csv");
});

const cellText = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc
    .tuple(fc.constantFrom("", "'", "''"), fc.constantFrom("=", "+", "-", "@", "\t", "\r", "＝"), fc.string())
    .map((parts) => parts.join("")),
);

test("law: what is written as a cell is read as the same text, and is no formula", () => {
  fc.assert(
    fc.property(cellText, (text) => {
      const cell = textCell(text);
      return readCell(cell) === text && !/^[=+\-@\t\r＝＋－＠]/.test(cell);
    }),
  );
});

test("law: failed rows, written and read again, are the same rows", async () => {
  const cell = fc.oneof(cellText, fc.constantFrom('"', "\r\n", "a,b", " x "));
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(cell, cell), { minLength: 1, maxLength: 5 }), async (cells) => {
      fc.pre(cells.every((pair) => pair.some((text) => text.trim() !== "")));
      using directory = temporaryDirectory();
      const [input, failed] = [join(directory.path, "in.csv"), join(directory.path, "failed.csv")];
      const quote = (text: string) => `"${textCell(text).replaceAll('"', '""')}"`;
      await Bun.write(input, `name,email\n${cells.map((pair) => pair.map(quote).join(",")).join("\n")}\n`);
      let header: Header = [];
      const rows = await Array.fromAsync(
        readRows(input, "csv", (columns) => {
          header = columns;
        }),
      );
      const withReasons = rows.values().map((row) => ({ row, reason: `=refused, "because"` }));
      await writeFailedRows(failed, "csv", header, stream(withReasons));
      expect(valuesOf(await Array.fromAsync(readRows(failed, "csv")))).toEqual(valuesOf(rows));
    }),
    { numRuns: 50 },
  );
});

test("a second failure of an NDJSON row has the second reason alone", async () => {
  using directory = temporaryDirectory();
  const path = join(directory.path, "failed.ndjson");
  const [row] = await rowsOf('{"id":"7","n":1.10,"reason":"first"}', "ndjson");
  await writeFailedRows(path, "ndjson", [], stream([{ row: row as Row, reason: "second" }]));
  expect(await Bun.file(path).text()).toBe('{"id":"7","n":1.10,"reason":"second"}\n');
});

async function* stream<Item>(items: Iterable<Item>) {
  yield* items;
}
