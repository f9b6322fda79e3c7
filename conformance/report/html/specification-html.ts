/** The specification as a section of the page, so that "4.1 rule 6" can be looked up where it is cited. */
import TEXT from "../../specification/customer-resource-api.md" with { type: "text" };
import { escapeMarkup, inlineCode } from "../visible.ts";

type Block = { readonly html: string; readonly anchor: string | undefined };

/** What stands before a numbered list within a section, and how citations call its items. */
const LISTS: Readonly<Record<string, string>> = { "Rules:": "rule", "Order of checks:": "order" };

/** Anchors of all headings and numbered items: `spec-4.1`, `spec-2.4.6`, `spec-4.1-rule-6`, `spec-4.2-order-2`. */
function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  let section = "";
  let list = "";
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    const heading = /^(#+) ((\d+(?:\.\d+)*)?\.?.*)$/.exec(line);
    const item = /^(\d+)\. (.*)$/.exec(line);
    if (heading !== null) {
      section = heading[3] ?? "";
      list = "";
      const level = Math.min((heading[1] ?? "").length + 2, 6);
      const anchor = section === "" ? undefined : `spec-${section}`;
      blocks.push({ anchor, html: `<h${level}${idOf(anchor)}>${inline(heading[2] ?? "")}</h${level}>` });
    } else if (item !== null) {
      const number = item[1] ?? "";
      // Section 7 has a table and "Rules:", 2.4 a list of its own: `2.4.6` cites the latter.
      const anchor = list === "" ? `spec-${section}.${number}` : `spec-${section}-${list}-${number}`;
      blocks.push({ anchor, html: `<p class="item"${idOf(anchor)}>${number}. ${inline(item[2] ?? "")}</p>` });
    } else if (line.startsWith("- "))
      blocks.push({ anchor: undefined, html: `<p class="item">• ${inline(line.slice(2))}</p>` });
    else if (line.startsWith("|")) {
      const rows: string[][] = [];
      for (; lines[at]?.startsWith("|"); at += 1) rows.push((lines[at] ?? "").split("|").slice(1, -1));
      at -= 1;
      blocks.push({ anchor: undefined, html: table(rows) });
    } else if (line.trim() !== "") {
      list = LISTS[line.trim()] ?? "";
      blocks.push({ anchor: undefined, html: `<p>${inline(line)}</p>` });
    }
  }
  return blocks;
}

const idOf = (anchor: string | undefined): string => (anchor === undefined ? "" : ` id="${anchor}"`);
const inline = (text: string): string => inlineCode(escapeMarkup(text));

function table([heads = [], , ...rows]: string[][]): string {
  const row = (cells: string[], tag: "td" | "th") =>
    `<tr>${cells.map((cell) => `<${tag}>${inline(cell.trim())}</${tag}>`).join("")}</tr>`;
  const body = rows.map((cells) => row(cells, "td")).join("");
  return `<div class="scroll"><table><thead>${row(heads, "th")}</thead><tbody>${body}</tbody></table></div>`;
}

const BLOCKS = blocksOf(TEXT);
const ANCHORS = new Set(BLOCKS.flatMap(({ anchor }) => anchor ?? []));

export function specificationHtml(): string {
  return `<div class="card spec">${BLOCKS.map(({ html }) => html).join("\n")}</div>`;
}

/** A citation such as `7 rule 4, 4.3`, each place linked to its item, or else to its section. */
export function citationHtml(citation: string): string {
  return citation
    .split(", ")
    .map((place) => {
      const anchor = anchorOf(place);
      const text = escapeMarkup(place);
      return anchor === undefined ? text : `<a href="#${anchor}">${text}</a>`;
    })
    .join(", ");
}

function anchorOf(place: string): string | undefined {
  const exact = `spec-${place.replaceAll(" ", "-")}`;
  if (ANCHORS.has(exact)) return exact;
  let section = /^\d+(?:\.\d+)*/.exec(place)?.[0] ?? "";
  while (section.includes(".") && !ANCHORS.has(`spec-${section}`))
    section = section.slice(0, section.lastIndexOf("."));
  return ANCHORS.has(`spec-${section}`) ? `spec-${section}` : undefined;
}
