import { expect, test } from "bun:test";
import { parse } from "smol-toml";
import { editToml } from "./toml-edit.ts";

const FILE = `# profiles of the support team
current = "a" # staging by default

# staging
[profiles.a]
# behind the gateway
url = "http://a" # "old": http://b
token = "x"
later = 1

[profiles.a.headers]
X-A = "1"

# production!
[profiles."b c"]
url = "http://b"
protected = true
`;

type Content = { current?: string; profiles: Record<string, Record<string, unknown>> };
const content = () => parse(FILE) as Content;

test.each<[string, (content: Content) => void, string[], string[]]>([
  [
    "a value that changes keeps its comment",
    (c) => Object.assign(c.profiles["a"] ?? {}, { url: "http://new" }),
    ['url = "http://new" # "old": http://b\ntoken = "x"'],
    ['url = "http://a"'],
  ],
  [
    "a new setting stands behind the last one",
    (c) => Object.assign(c.profiles["a"] ?? {}, { insecure: true }),
    ["later = 1\ninsecure = true\n\n[profiles.a.headers]"],
    [],
  ],
  [
    "a setting is removed",
    (c) => void delete c.profiles["a"]?.["token"],
    ['b"\nlater = 1'.replace('b"', 'url = "http://a" # "old": http://b')],
    ["token"],
  ],
  [
    "a profile is removed with its headers and the comment above it",
    (c) => void delete c.profiles["a"],
    ["# profiles of the support team", "# production!"],
    ["[profiles.a", "# staging\n"],
  ],
  [
    "a profile is renamed in its place",
    (c) => {
      c.profiles["z"] = c.profiles["a"] ?? {};
      delete c.profiles["a"];
    },
    ["# staging\n[profiles.z]\n# behind", "[profiles.z.headers]\nX-A"],
    ["[profiles.a"],
  ],
  [
    "a new profile stands at the end",
    (c) => Object.assign(c.profiles, { n: { url: "http://n", headers: { Q: "1" } } }),
    ['protected = true\n\n[profiles.n]\nurl = "http://n"\n\n[profiles.n.headers]\nQ = "1"\n'],
    [],
  ],
  [
    "headers of a profile stand behind it",
    (c) => Object.assign(c.profiles["b c"] ?? {}, { headers: { Q: "1" } }),
    ['protected = true\n\n[profiles."b c".headers]\nQ = "1"\n'],
    [],
  ],
  [
    "the current profile changes",
    (c) => Object.assign(c, { current: "b c" }),
    ['current = "b c" # staging by default'],
    [],
  ],
])("%s", (_, change, present, absent) => {
  const wanted = content();
  change(wanted);
  const edited = editToml(FILE, content(), wanted);
  expect(Bun.deepEquals(parse(edited), wanted)).toBe(true);
  for (const text of present) expect(edited).toContain(text);
  for (const text of absent) expect(edited).not.toContain(text);
  expect(edited).toContain("# profiles of the support team\n");
});

test.each<[string, string]>([
  ["an empty file", ""],
  ["a file of comments", "# mine\n\n# and mine\n"],
])("%s gets its first profile", (_, text) => {
  const wanted = { current: "a", profiles: { a: { url: "http://a" } } };
  const edited = editToml(text, {}, wanted);
  expect(parse(edited)).toEqual(wanted);
  for (const line of text.split("\n")) expect(edited).toContain(line);
});
