// The ceiling: Bun.serve with a constant body and the headers that the service sends.
const headers = {
  "cache-control": "private, no-cache, no-transform",
  vary: "Authorization",
  etag: '"AAAAAAAAAAAAAAAA"',
  "content-type": "application/json",
  "x-content-type-options": "nosniff",
  "x-request-id": "00000000-0000-4000-8000-000000000000",
};
const body = JSON.stringify({ name: "Customer 0000000", email: "customer0000000@example.com" });
const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(body, { headers }) });
console.log(JSON.stringify({ url: `http://127.0.0.1:${server.port}` }));
