import { PROBLEMS, type ProblemCode } from "../../domain/problem.ts";
import { PROBLEM_EXAMPLES } from "../../domain/problem-examples.ts";
import { preferredType } from "./accept.ts";
import { escapeHtml, htmlPage, sentenceHtml } from "./html-page.ts";
import { problemDocument } from "./problem-response.ts";
import { type Reply, replyHeaders } from "./reply.ts";

const HEADERS = { "cache-control": "public, max-age=3600", vary: "Accept" };
/** `instance` in examples. */
const EXAMPLE_ID = "0b7e9c1a-52f4-4d8e-9a63-c7d1e2f30415";

/** What a problem type means and what to do about it: a page for people, JSON for programs. */
export function problemPage(code: ProblemCode, accept: string | null, publicUrl: string): Reply {
  if (!prefersHtml(accept)) return json(problemType(code, publicUrl));
  const { status, title, meaning, action } = PROBLEMS[code];
  const example = JSON.stringify(problemExample(code, publicUrl), null, 2);
  return htmlPage(
    title,
    `<p><code>${code}</code>, HTTP status ${status}</p>
<h2>What happened</h2>
<p>${sentenceHtml(meaning)}</p>
<h2>What to do next</h2>
<p>${sentenceHtml(action)}</p>
<h2>Example</h2>
<pre>${escapeHtml(example)}</pre>
<p><a href="${publicUrl}/problems">All problems</a></p>`,
    HEADERS,
  );
}

/** All problem types. */
export function problemIndex(accept: string | null, publicUrl: string): Reply {
  const codes = Object.keys(PROBLEMS) as ProblemCode[];
  if (!prefersHtml(accept)) return json({ problems: codes.map((code) => problemType(code, publicUrl)) });
  const rows = codes.map((code) => {
    const { status, meaning } = PROBLEMS[code];
    const link = `<a href="${publicUrl}/problems/${code}"><code>${code}</code></a>`;
    return `<tr><td>${status}</td><td>${link}</td><td>${sentenceHtml(meaning)}</td></tr>`;
  });
  return htmlPage("Problems", `<table>\n${rows.join("\n")}\n</table>`, HEADERS);
}

export function problemExample(code: ProblemCode, publicUrl: string): object {
  const { detail, ...extensions } = PROBLEM_EXAMPLES[code];
  return problemDocument(code, detail, extensions, EXAMPLE_ID, publicUrl);
}

function problemType(code: ProblemCode, publicUrl: string): object {
  const { status, title, meaning, action } = PROBLEMS[code];
  const example = problemExample(code, publicUrl);
  return { type: `${publicUrl}/problems/${code}`, code, title, status, meaning, action, example };
}

function json(body: object): Reply {
  return {
    status: 200,
    headers: replyHeaders({ ...HEADERS, "content-type": "application/json" }),
    body: JSON.stringify(body),
  };
}

/** Browsers prefer text/html; programs send *\/* or what they can parse. */
export function prefersHtml(accept: string | null): boolean {
  return preferredType(accept, ["application/json", "text/html"]) === "text/html";
}
