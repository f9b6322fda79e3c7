import { type Reply, replyHeaders, SAME_OPENER } from "./reply.ts";

const STYLE = `body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem}
code,pre{font-size:.9em}pre{white-space:pre-wrap;overflow-wrap:anywhere;padding:.75rem;border:1px solid #8884;border-radius:.25rem}
table{border-collapse:collapse}td,th{text-align:left;vertical-align:top;padding:.25rem 1rem .25rem 0}`;

/** Nothing but the style above runs or loads, and no other page may frame this one. */
const POLICY = `default-src 'none'; style-src 'sha256-${Bun.SHA256.hash(STYLE, "base64")}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/**
 * A page for people, light or dark as they prefer.
 *
 * @param title text
 * @param content HTML
 */
export function htmlPage(title: string, content: string, headers: Readonly<Record<string, string>>): Reply {
  return {
    status: 200,
    headers: replyHeaders({
      ...headers,
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": POLICY,
      ...SAME_OPENER,
    }),
    body: `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<style>${STYLE}</style>
<h1>${escapeHtml(title)}</h1>
${content}
</html>
`,
  };
}

export function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}

/** A sentence with \`code\` in it. */
export function sentenceHtml(text: string): string {
  return escapeHtml(text).replace(/`([^`]*)`/g, "<code>$1</code>");
}
