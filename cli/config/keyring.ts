/**
 * Tokens in the system's keyring: libsecret on Linux, the Keychain on macOS. Each question has a limit in time, because
 * a locked keyring asks on a desktop that nobody may be looking at.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Environment, fromEnvironment } from "./sources/setting-source.ts";

/** `value` of the work, or why the keyring did not do it, in words that continue "the system keyring …". */
type KeyringReply<Value> = { kind: "done"; value: Value } | { kind: "failed"; why: string };

/** An unlocked keyring answers in 20 ms. */
const LIMIT_MS = 5000;

const SERVICE = "customers";

/** False where there is certainly none, so that a server or a container is not held up by looking for one. */
export function mayHaveKeyring(env: Environment): boolean {
  if (process.platform !== "linux") return true;
  const runtime = fromEnvironment(env, "XDG_RUNTIME_DIR");
  return (
    fromEnvironment(env, "DBUS_SESSION_BUS_ADDRESS") !== undefined ||
    (runtime !== undefined && existsSync(join(runtime, "bus")))
  );
}

export function storeInKeyring(entry: string, token: string): Promise<KeyringReply<void>> {
  return ask(() => Bun.secrets.set({ service: SERVICE, name: entry, value: token }));
}

/** Null where it has no such entry. */
export function readFromKeyring(entry: string): Promise<KeyringReply<string | null>> {
  return ask(() => Bun.secrets.get({ service: SERVICE, name: entry }));
}

export function deleteFromKeyring(entry: string): Promise<KeyringReply<boolean>> {
  return ask(() => Bun.secrets.delete({ service: SERVICE, name: entry }));
}

async function ask<Value>(work: () => Promise<Value>): Promise<KeyringReply<Value>> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<KeyringReply<Value>>((resolve) => {
    const why = `did not answer within ${LIMIT_MS / 1000} s`;
    timer = setTimeout(() => resolve({ kind: "failed", why }), LIMIT_MS);
  });
  const reply = work().then(
    (value): KeyringReply<Value> => ({ kind: "done", value }),
    (error: unknown): KeyringReply<Value> => ({
      kind: "failed",
      why: `refuses: ${error instanceof Error ? error.message : error}`,
    }),
  );
  try {
    return await Promise.race([reply, late]);
  } finally {
    clearTimeout(timer);
  }
}
