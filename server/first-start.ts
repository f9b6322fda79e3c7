import type { FirstStart } from "./storage/storage.ts";

/** Two lines to paste: a read, and a write under the version that a read gave. */
export function curlLines({ tokenFile, sampleId }: FirstStart, url: string, isTls: boolean): string[] {
  const curl = isTls ? "curl -k" : "curl";
  const authorization = `-H "Authorization: Bearer $(cat ${shellWord(tokenFile)})"`;
  if (sampleId === null) return [`${curl} -i ${authorization} '${url}/customers'`];
  const customer = `'${url}/customers/${sampleId}'`;
  const etag = `$(${curl} -s -I ${authorization} ${customer} | tr -d '\\r' | awk 'tolower($1) == "etag:" {print $2}')`;
  return [
    `${curl} -i ${authorization} '${url}/customers/${sampleId}?fields=name,email'`,
    `${curl} -i -X PUT ${authorization} -H "If-Match: ${etag}" -H 'Content-Type: application/json' -d '{"name":"Ada King","email":"ada@example.com"}' ${customer}`,
  ];
}

function shellWord(text: string): string {
  return /^[A-Za-z0-9_./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
