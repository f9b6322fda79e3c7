/** Maximum number of versions of one client that metrics name. */
export const CLIENT_VERSIONS_MAX = 20;

/** The versions of each client that labels name: those that were seen last. */
export class ClientVersions {
  /** The versions of a client, the least recently seen first. */
  readonly #seen = new Map<string, Set<string>>();

  /** Notes that a version was seen. @returns the version that gives up its place for it, or null */
  note(client: string, version: string): string | null {
    const versions = this.#seen.getOrInsertComputed(client, () => new Set());
    const isKnown = versions.delete(version);
    versions.add(version);
    if (isKnown || versions.size <= CLIENT_VERSIONS_MAX) return null;
    const [oldest = ""] = versions;
    versions.delete(oldest);
    return oldest;
  }

  /** A version that no label names any more. */
  forget(client: string, version: string): void {
    const versions = this.#seen.get(client);
    if (versions?.delete(version) === true && versions.size === 0) this.#seen.delete(client);
  }
}

/**
 * @returns the version of a User-Agent such as `billing-sync/1.2.3 (linux)`; "" without one. Numbers,
 *   dots and a short suffix (`2.0.0-rc.1`) only: no label may hold an id that a client puts there.
 */
export function versionOf(userAgent: string | null): string {
  return USER_AGENT.exec(userAgent ?? "")?.[1] ?? "";
}

const USER_AGENT = /^[A-Za-z0-9._-]+\/(\d{1,6}(?:\.\d{1,6}){0,3}(?:[-+][A-Za-z0-9.+-]{1,16})?)(?:\s|$)/;
