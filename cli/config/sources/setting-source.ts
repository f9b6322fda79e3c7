/** Where settings come from: variables and the files that settings name. */
import { readPem, readText } from "../../files/read-text.ts";
import { systemCode } from "../../files/system-code.ts";
import { UsageError } from "../../outcome/failure.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** A variable that is set but empty counts as not set. */
export function fromEnvironment(env: Environment, name: string): string | undefined {
  const value = env[name];
  return value === undefined || value === "" ? undefined : value;
}

/** @param option the flag, for the message of the UsageError. @param read for PEM files: readPem. */
export async function readSettingFile(path: string, option: string, read = readText): Promise<string> {
  try {
    return await read(path);
  } catch (error) {
    throw new UsageError(`${option}: ${path} can't be read (${systemCode(error)})`, "Check the path.");
  }
}

/** The text of a PEM file with at least one certificate; a UsageError where it holds none or a broken one. */
export async function readCertificates(path: string, option = "--cacert"): Promise<string> {
  const text = await readSettingFile(path, option, readPem);
  const { X509Certificate } = await import("node:crypto");
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  try {
    for (const block of blocks) new X509Certificate(block);
  } catch {
    throw new UsageError(`${option}: ${path} holds a certificate that can't be read`);
  }
  if (blocks.length > 0) return text;
  throw new UsageError(
    `${option}: ${path} holds no certificate`,
    "Give the certificate as PEM, which begins with -----BEGIN CERTIFICATE-----",
  );
}

/** Both as PEM text. */
export type ClientCertificate = { cert: string; key: string };

/** The key may stand in the file of the certificate, as curl allows. Undefined where none is set. */
export async function readClientCertificate({
  cert,
  key = cert,
}: {
  cert?: string;
  key?: string;
}): Promise<ClientCertificate | undefined> {
  if (cert === undefined) {
    if (key === undefined) return undefined;
    throw new UsageError("--key is given without --cert", "Give the client certificate too: --cert PATH");
  }
  const certificates = await readCertificates(cert, "--cert");
  const keyPath = key ?? cert;
  const keyText = await readSettingFile(keyPath, "--key", readPem);
  const { createPrivateKey, X509Certificate } = await import("node:crypto");
  if (/ENCRYPTED/.test(keyText)) {
    throw new UsageError(
      `--key: ${keyPath} is protected by a passphrase, which is not supported`,
      "Give a key without one, readable only by you: openssl pkey -in KEY -out PLAIN",
    );
  }
  try {
    const privateKey = createPrivateKey(keyText);
    if (new X509Certificate(certificates).checkPrivateKey(privateKey))
      return { cert: certificates, key: keyText };
  } catch {
    throw new UsageError(
      `--key: ${keyPath} holds no private key`,
      "Give the key as PEM, with --key PATH or in the file of --cert.",
    );
  }
  throw new UsageError(`--key: ${keyPath} is not the key of the certificate in ${cert}`);
}
