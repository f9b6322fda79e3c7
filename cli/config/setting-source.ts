/** Where settings come from. */
import { readFileSync } from "node:fs";
import { UsageError } from "../outcome/failure.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** @param option the flag, for the message of the UsageError. */
export function readSettingFile(path: string, option: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new UsageError(
      `${option}: ${path} can't be read (${(error as NodeJS.ErrnoException).code ?? error})`,
    );
  }
}

/** The PEM text of --cacert, with one certificate in it at the least, and none that can't be read. */
export async function readCertificates(path: string): Promise<string> {
  const text = readSettingFile(path, "--cacert");
  const { X509Certificate } = await import("node:crypto");
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  try {
    for (const block of blocks) new X509Certificate(block);
  } catch {
    throw new UsageError(`--cacert: ${path} holds a certificate that can't be read`);
  }
  if (blocks.length > 0) return text;
  throw new UsageError(
    `--cacert: ${path} holds no certificate`,
    "Give the authority's certificate as PEM, which begins with -----BEGIN CERTIFICATE-----",
  );
}

/** A variable that is set but empty counts as not set. */
export function fromEnvironment(env: Environment, name: string): string | undefined {
  const value = env[name];
  return value === undefined || value === "" ? undefined : value;
}
