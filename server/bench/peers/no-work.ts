// What every request of the service needs from Bun before any work is done: the URL and the headers of the request,
// the address of its client, and two headers of its own in the reply.
const headers = new Headers({
  "cache-control": "private, no-cache, no-transform",
  vary: "Authorization",
  "content-type": "application/json",
  "x-content-type-options": "nosniff",
});
const body = JSON.stringify({ name: "Customer 0000000", email: "customer0000000@example.com" });
const READ = ["authorization", "if-none-match", "x-request-id"];
let requests = 0;
let charactersRead = 0;
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: (request, server) => {
    requests += 1;
    charactersRead += request.url.length + (server.requestIP(request)?.address.length ?? 0);
    for (const name of READ) charactersRead += request.headers.get(name)?.length ?? 0;
    headers.set("etag", `"${String(charactersRead).padStart(16, "A")}"`);
    headers.set("x-request-id", `00000000-0000-4000-8000-${String(requests).padStart(12, "0")}`);
    return new Response(body, { headers });
  },
});
console.log(JSON.stringify({ url: `http://127.0.0.1:${server.port}` }));
