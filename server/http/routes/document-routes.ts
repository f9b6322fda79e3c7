import { isProblemCode, ok, refuse } from "../../domain/problem.ts";
import { VERSION } from "../../version.ts";
import type { Handler } from "../handler.ts";
import { isReferenceFile, referenceFile, referencePage } from "../openapi/reference.ts";
import { htmlPage } from "../reply/html-page.ts";
import { prefersHtml, problemIndex, problemPage } from "../reply/problem-pages.ts";
import { type Reply, replyHeaders } from "../reply/reply.ts";
import { withoutParameters } from "./service-routes.ts";

const CACHE = { "cache-control": "public, max-age=300" };

/** What the service says of itself: an index, its description, the reference and what problems mean. */
export function documentHandlers(publicUrl: string, describe: () => object) {
  // The same for every request: assembled once, at the first one.
  let json: string | null = null;
  let yaml: string | null = null;
  return {
    index: withoutParameters(({ request }) => ok(index(request.headers.get("accept"), publicUrl))),
    openapiJson: withoutParameters(() => {
      json ??= JSON.stringify(describe());
      return ok(document("application/json", json));
    }),
    openapiYaml: withoutParameters(() => {
      yaml ??= Bun.YAML.stringify(describe(), null, 2);
      return ok(document("application/yaml", yaml));
    }),
    reference: withoutParameters(() => ok(referencePage(publicUrl))),
    referenceFile: withoutParameters(async ({ parameter: file }) =>
      isReferenceFile(file)
        ? ok(await referenceFile(file))
        : refuse("route-not-found", "The reference has no such file. It is at /docs."),
    ),
    problemTypes: withoutParameters(({ request }) =>
      ok(problemIndex(request.headers.get("accept"), publicUrl)),
    ),
    problemType: withoutParameters(({ request, parameter: code }) =>
      isProblemCode(code)
        ? ok(problemPage(code, request.headers.get("accept"), publicUrl))
        : refuse("route-not-found", "There is no problem type of this name. All are at /problems."),
    ),
  } satisfies Record<string, Handler>;
}

function document(type: string, body: string): Reply {
  return { status: 200, headers: replyHeaders({ ...CACHE, "content-type": type }), body };
}

/** A page for people, links for programs. */
function index(accept: string | null, publicUrl: string): Reply {
  const headers = { ...CACHE, vary: "Accept" };
  const links = {
    customers: `${publicUrl}/customers`,
    reference: `${publicUrl}/docs`,
    openapi: `${publicUrl}/openapi.json`,
    problems: `${publicUrl}/problems`,
    health: `${publicUrl}/healthz`,
    readiness: `${publicUrl}/readyz`,
  };
  if (!prefersHtml(accept)) {
    return {
      status: 200,
      headers: replyHeaders({ ...headers, "content-type": "application/json" }),
      body: JSON.stringify({ name: "customers", version: VERSION, links }),
    };
  }
  return htmlPage(
    "Customers",
    `<p>An HTTP service for one resource, the customer. Every read carries an <code>ETag</code>; every write sends it back in
<code>If-Match</code>, so that no update is lost. Version ${VERSION}.</p>
<ul>
<li><a href="${links.reference}">Reference</a>: all requests, to try them out</li>
<li><a href="${links.openapi}">openapi.json</a>, <a href="${publicUrl}/openapi.yaml">openapi.yaml</a>: the same for programs</li>
<li><a href="${links.problems}">Problems</a>: what each refusal means, and what to do</li>
<li><a href="${links.readiness}">Readiness</a> and <a href="${links.health}">health</a></li>
</ul>
<h2>A token</h2>
<p>Every request to <code>/customers</code> needs one. The operator of this service makes it:</p>
<pre>customers-server token create --tenant acme --role support --client helpdesk</pre>
<p>Send it as <code>Authorization: Bearer TOKEN</code>.</p>`,
    headers,
  );
}
