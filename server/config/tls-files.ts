import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { readRegularFile } from "./regular-file.ts";
import { PEM_BEGIN } from "./settings.ts";

/** A certificate chain and its private key, as PEM. */
export type TlsFiles = { readonly cert: string; readonly key: string };

type TlsFault = { readonly name: "tlsCertFile" | "tlsKeyFile"; readonly what: string };
type TlsFilesResult =
  | { readonly ok: true; readonly files: TlsFiles | null }
  | { readonly ok: false; readonly faults: readonly TlsFault[] };

/** Reads both files and checks that a listener can use them together. "" for both: no TLS, and null. */
export function readTlsFiles(certFile: string, keyFile: string): TlsFilesResult {
  if (certFile === "" && keyFile === "") return { ok: true, files: null };
  const cert = readPem(certFile, "a certificate", (pem) => new X509Certificate(pem));
  const key = readPem(keyFile, "a private key without a passphrase", createPrivateKey);
  if (cert.ok && key.ok) {
    if (!cert.value.checkPrivateKey(key.value)) {
      return { ok: false, faults: [{ name: "tlsKeyFile", what: "it is not the key of TLS_CERT_FILE" }] };
    }
    const files = { cert: cert.pem, key: key.pem };
    const fault = listenerFault(files);
    return fault === null
      ? { ok: true, files }
      : { ok: false, faults: [{ name: "tlsCertFile", what: fault }] };
  }
  const faults: TlsFault[] = [];
  if (!cert.ok) faults.push({ name: "tlsCertFile", what: cert.what });
  if (!key.ok) faults.push({ name: "tlsKeyFile", what: key.what });
  return { ok: false, faults };
}

/** @returns when the first certificate of a chain (PEM) ends, in seconds since 1970; NaN without TLS */
export function certificateExpiry(tls: TlsFiles | null): number {
  const chain = tls?.cert.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  const ends = chain.map((pem) => Date.parse(new X509Certificate(pem).validTo) / 1000);
  return ends.length === 0 ? Number.NaN : Math.min(...ends);
}

/**
 * Loads both as a listener does, the whole chain included: X509Certificate reads only the first
 * certificate, and a reload with a chain that was cut off in its second one ended the process.
 */
function listenerFault(files: TlsFiles): string | null {
  try {
    createSecureContext(files);
    return null;
  } catch (error) {
    return `a listener cannot use it (${(error as Error).message})`;
  }
}

type Pem<T> =
  | { readonly ok: true; readonly pem: string; readonly value: T }
  | { readonly ok: false; readonly what: string };

function readPem<T>(file: string, noun: string, parse: (pem: string) => T): Pem<T> {
  if (file === "") return { ok: false, what: "HTTPS needs both TLS_CERT_FILE and TLS_KEY_FILE; set it too" };
  if (file.includes(PEM_BEGIN)) return { ok: false, what: "it must be the path of a file, and not its text" };
  let pem: string;
  try {
    pem = readRegularFile(file);
  } catch (error) {
    return { ok: false, what: `it cannot be read: ${(error as Error).message}` };
  }
  try {
    return { ok: true, pem, value: parse(pem) };
  } catch {
    return { ok: false, what: `it holds no PEM of ${noun}` };
  }
}
