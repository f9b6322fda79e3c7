import stylePath from "swagger-ui-dist/swagger-ui.css" with { type: "file" };
import bundlePath from "swagger-ui-dist/swagger-ui-bundle.js" with { type: "file" };
import { type Reply, replyHeaders, SAME_OPENER } from "../reply/reply.ts";

/** Swagger UI, served by the service itself and part of the executable, so that it works without the internet. */
const FILES = {
  "swagger-ui-bundle.js": { type: "text/javascript; charset=utf-8", text: () => Bun.file(bundlePath).text() },
  "swagger-ui.css": { type: "text/css; charset=utf-8", text: () => Bun.file(stylePath).text() },
  "initializer.js": { type: "text/javascript; charset=utf-8", text: () => Promise.resolve(INITIALIZER) },
} as const;

type ReferenceFile = keyof typeof FILES;

export function isReferenceFile(name: string): name is ReferenceFile {
  return Object.hasOwn(FILES, name);
}

export async function referenceFile(name: ReferenceFile): Promise<Reply> {
  const { type, text } = FILES[name];
  return {
    status: 200,
    headers: replyHeaders({ "content-type": type, "cache-control": "public, max-age=3600" }),
    body: await text(),
  };
}

/** A file of its own, since the page's policy allows no inline script. `validatorUrl` would send the address abroad. */
const INITIALIZER = `const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  validatorUrl: null,
  persistAuthorization: false,
  defaultModelsExpandDepth: 0,
});
`;

/** The page of the reference. Its links are relative, so that it works below any path. */
export function referencePage(publicUrl: string): Reply {
  // "Try it out" sends to the server's public address, which may be another than that of the page.
  const origin = publicUrl === "" ? "" : ` ${new URL(publicUrl).origin}`;
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    `connect-src 'self'${origin}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return {
    status: 200,
    headers: replyHeaders({
      "content-type": "text/html; charset=utf-8",
      "cache-control": "public, max-age=300",
      "content-security-policy": policy.join("; "),
      ...SAME_OPENER,
    }),
    body: `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Customer resource API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
<div id="reference"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/initializer.js"></script>
</html>
`,
  };
}
