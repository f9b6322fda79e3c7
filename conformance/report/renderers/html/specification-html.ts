/** The specification as a section of the page, so that "4.1 rule 6" can be looked up where it is cited. */
import TEXT from "../../../specification/customer-resource-api.md" with { type: "text" };
import { escapeMarkup } from "../../visible.ts";

/** What stands before a numbered list within a section, and how citations call its items. */
const LISTS: Readonly<Record<string, string>> = { "Rules:": "rule", "Order of checks:": "order" };

/** Anchors of all headings and numbered items: `spec-4.1`, `spec-2.4.6`, `spec-4.1-rule-6`, `spec-4.2-order-2`. */
const ANCHORS = new Set<string>();
const HTML = specificationIn(TEXT);

function specificationIn(text: string): string {
  let section = "";
  let list = "";
  const anchored = (place: string): string => {
    ANCHORS.add(`spec-${place}`);
    return ` id="spec-${place}"`;
  };
  return Bun.markdown.render(text, {
    text: escapeMarkup,
    codespan: (code) => `<code>${code}</code>`,
    heading(title, { level }) {
      section = /^\d+(?:\.\d+)*/.exec(title)?.[0] ?? "";
      list = "";
      const tag = `h${Math.min(level + 2, 6)}`;
      return `<${tag}${section === "" ? "" : anchored(section)}>${title}</${tag}>\n`;
    },
    paragraph(sentences) {
      list = LISTS[sentences] ?? "";
      return `<p>${sentences}</p>\n`;
    },
    listItem(item, { ordered, index }) {
      if (!ordered) return `<p class="item">• ${item}</p>\n`;
      // Section 7 has a table and "Rules:", 2.4 a list of its own: `2.4.6` cites the latter.
      const place = list === "" ? `${section}.${index + 1}` : `${section}-${list}-${index + 1}`;
      return `<p class="item"${anchored(place)}>${index + 1}. ${item}</p>\n`;
    },
    table: (rows) => `<div class="scroll"><table>${rows}</table></div>\n`,
    thead: (row) => `<thead>${row}</thead>`,
    tbody: (rows) => `<tbody>${rows}</tbody>`,
    tr: (cells) => `<tr>${cells}</tr>`,
    th: (cell) => `<th>${cell}</th>`,
    td: (cell) => `<td>${cell}</td>`,
  });
}

export function specificationHtml(): string {
  return `<div class="card spec">${HTML.trimEnd()}</div>`;
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
