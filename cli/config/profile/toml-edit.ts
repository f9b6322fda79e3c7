/**
 * Changes single settings in the text of the profile file, so that comments, order and unknown keys stay. It knows the
 * layout that people write and this program writes: `[table]` headings and one `key = value` a line. The caller parses
 * the result and compares it with what was intended, so another layout is refused and never damaged.
 */
import { parse, stringify } from "smol-toml";
import { asTable } from "./profile-settings.ts";

type Table = Record<string, unknown>;
type Section = { path: readonly string[]; heading: string[]; lines: string[] };

/** @returns the text with the changes from `before` to `after` made in it. */
export function editToml(text: string, before: Table, after: Table): string {
  const sections = sectionsOf(text);
  change(sections, [], before, after);
  const edited = sections.flatMap(({ heading, lines }) => [...heading, ...lines]).join("\n");
  return edited === "" || edited.endsWith("\n") ? edited : `${edited}\n`;
}

function change(sections: Section[], path: readonly string[], earlier: Table, after: Table): void {
  const before = renamed(sections, path, earlier, after);
  for (const name of Object.keys(before)) {
    if (Object.hasOwn(after, name)) continue;
    if (asTable(before[name]) === undefined) removeKey(sections, path, name);
    else removeTable(sections, [...path, name]);
  }
  for (const [name, value] of Object.entries(after)) {
    const table = asTable(value);
    const old = before[name];
    if (table === undefined) {
      if (!Bun.deepEquals(old, value)) setKey(sections, path, name, value);
    } else {
      if (old === undefined && path.length > 0) addSection(sections, [...path, name]);
      change(sections, [...path, name], asTable(old) ?? {}, table);
    }
  }
}

/** A table that vanishes while an equal one appears is renamed in its place. */
function renamed(sections: Section[], path: readonly string[], before: Table, after: Table): Table {
  const gone = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  const come = Object.keys(after).filter((name) => !Object.hasOwn(before, name));
  const [from, to] = [gone[0], come[0]];
  if (from === undefined || to === undefined || gone.length > 1 || come.length > 1) return before;
  if (asTable(before[from]) === undefined || !Bun.deepEquals(before[from], after[to])) return before;
  for (const section of sections) {
    if (!startsWith(section.path, [...path, from])) continue;
    section.path = [...path, to, ...section.path.slice(path.length + 1)];
    const line = section.heading.pop() ?? "";
    section.heading.push(
      `${line.match(/^\s*/)?.[0] ?? ""}${headingText(section.path)}${trailingComment(line)}`,
    );
  }
  const { [from]: table, ...rest } = before;
  return { ...rest, [to]: table };
}

function headingText(path: readonly string[]): string {
  return stringify(nested(path)).trim().split("\n").at(-1) ?? "";
}

/** Comments directly above a heading belong to it. */
function sectionsOf(text: string): Section[] {
  const sections: Section[] = [{ path: [], heading: [], lines: [] }];
  for (const line of text.replace(/\n$/, "").split("\n")) {
    const path = headingPath(line);
    const last = sections.at(-1) as Section;
    if (path === undefined) {
      last.lines.push(line);
      continue;
    }
    let at = last.lines.length;
    while (at > 0 && /^\s*#/.test(last.lines[at - 1] ?? "")) at -= 1;
    // A comment at the top of the file describes the file, not the first table.
    if (sections.length === 1 && at === 0) at = last.lines.length;
    sections.push({ path, heading: [...last.lines.splice(at), line], lines: [] });
  }
  return sections;
}

function headingPath(line: string): string[] | undefined {
  if (!/^\s*\[(?!\[)/.test(line)) return undefined;
  const heading = parsed(line);
  if (heading === undefined) return undefined;
  let table: Table = heading;
  const path: string[] = [];
  for (;;) {
    const name: string | undefined = Object.keys(table)[0];
    if (name === undefined) return path;
    path.push(name);
    table = asTable(table[name]) ?? {};
  }
}

function parsed(line: string): Table | undefined {
  try {
    return parse(line);
  } catch {
    return undefined;
  }
}

function setKey(sections: Section[], path: readonly string[], name: string, value: unknown): void {
  const section = sectionAt(sections, path) ?? addSection(sections, path);
  const written = stringify({ [name]: value }).trimEnd();
  const at = lineOf(section, name);
  if (at !== undefined) {
    section.lines[at] = written + trailingComment(section.lines[at] ?? "");
    return;
  }
  // Behind the last key, so that blank lines and comments before the next heading stay where they are.
  const last = section.lines.findLastIndex((line) => !/^\s*(?:#|$)/.test(line));
  section.lines.splice(last < 0 && path.length === 0 ? leadingComment(section) : last + 1, 0, written);
}

function leadingComment({ lines }: Section): number {
  const at = lines.findIndex((line) => !/^\s*#/.test(line));
  return at < 0 ? lines.length : at;
}

function removeKey(sections: Section[], path: readonly string[], name: string): void {
  const section = sectionAt(sections, path);
  const at = section === undefined ? undefined : lineOf(section, name);
  if (at !== undefined) section?.lines.splice(at, 1);
}

function removeTable(sections: Section[], path: readonly string[]): void {
  for (let at = sections.length - 1; at > 0; at -= 1) {
    if (startsWith(sections[at]?.path ?? [], path)) sections.splice(at, 1);
  }
}

function addSection(sections: Section[], path: readonly string[]): Section {
  const section: Section = { path, heading: [headingText(path)], lines: [] };
  // A table stands behind its parent and the parent's other tables.
  const parent = path.slice(0, -1);
  const behind = parent.length < 2 ? -1 : sections.findLastIndex((one) => startsWith(one.path, parent));
  const at = behind < 0 ? sections.length : behind + 1;
  const previous = sections[at - 1];
  if (previous !== undefined && hasText(previous) && previous.lines.at(-1) !== "") previous.lines.push("");
  if (at < sections.length) section.lines.push("");
  sections.splice(at, 0, section);
  return section;
}

function hasText({ heading, lines }: Section): boolean {
  return heading.length > 0 || lines.some((line) => line !== "");
}

function nested(path: readonly string[]): Table {
  const [first, ...rest] = path;
  return first === undefined ? {} : { [first]: nested(rest) };
}

function sectionAt(sections: readonly Section[], path: readonly string[]): Section | undefined {
  return sections.find((section) => Bun.deepEquals(section.path, path));
}

function lineOf({ lines }: Section, name: string): number | undefined {
  const at = lines.findIndex((line) => {
    const table = /^\s*(?:#|$)/.test(line) ? undefined : parsed(line);
    return table !== undefined && Object.keys(table)[0] === name;
  });
  return at < 0 ? undefined : at;
}

/** What follows the value: from the first # before which the line is complete. */
function trailingComment(line: string): string {
  for (let at = line.indexOf("#"); at >= 0; at = line.indexOf("#", at + 1)) {
    const value = line.slice(0, at);
    if (parsed(value) !== undefined) return ` ${line.slice(at)}`;
  }
  return "";
}

function startsWith(path: readonly string[], prefix: readonly string[]): boolean {
  return prefix.every((name, at) => path[at] === name);
}
