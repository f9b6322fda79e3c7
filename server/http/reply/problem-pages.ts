import { PROBLEMS, type ProblemCode } from "../../domain/problem.ts";
import { preferredType } from "./accept.ts";
import { type Reply, replyHeaders } from "./reply.ts";

/** What a problem type means and what to do about it: a page for people, JSON for programs. */
export function problemPage(code: ProblemCode, accept: string | null, publicUrl: string): Reply {
  const headers = { "cache-control": "public, max-age=3600", vary: "Accept" };
  const { status, title, meaning, action } = PROBLEMS[code];
  // Browsers prefer text/html; programs send */* or what they can parse.
  if (preferredType(accept, ["application/json", "text/html"]) === "application/json") {
    return {
      status: 200,
      headers: replyHeaders({ ...headers, "content-type": "application/json" }),
      body: JSON.stringify({ type: `${publicUrl}/problems/${code}`, code, title, status, meaning, action }),
    };
  }
  return {
    status: 200,
    headers: replyHeaders({ ...headers, "content-type": "text/html; charset=utf-8" }),
    body: `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem}code{font-size:.95em}</style>
<h1>${title}</h1>
<p><code>${code}</code>, HTTP status ${status}</p>
<h2>What happened</h2>
<p>${html(meaning)}</p>
<h2>What to do next</h2>
<p>${html(action)}</p>
</html>
`,
  };
}

function html(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replace(/`([^`]*)`/g, "<code>$1</code>");
}
