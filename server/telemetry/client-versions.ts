/** The versions of one client that metrics name; further ones count as `other`. */
export const CLIENT_VERSIONS_MAX = 20;

/** Which versions of which client are named in labels: the first that were seen, so that no series ever changes its name. */
export class ClientVersions {
  readonly #max: number;
  readonly #seen = new Map<string, Set<string>>();

  constructor(max = CLIENT_VERSIONS_MAX) {
    this.#max = max;
  }

  /** @returns the version as it stands in labels: itself, `other`, or "" for none */
  named(client: string, version: string): string {
    if (version === "") return "";
    let versions = this.#seen.get(client);
    if (versions === undefined) {
      versions = new Set();
      this.#seen.set(client, versions);
    }
    if (versions.has(version)) return version;
    if (version === "other" || versions.size >= this.#max) return "other";
    versions.add(version);
    return version;
  }
}

/**
 * @returns the version of a User-Agent such as `billing-sync/1.2.3 (linux)`; "" without one. Numbers, dots and a
 *   short suffix (`2.0.0-rc.1`) only: no label may hold an id that a client puts there.
 */
export function versionOf(userAgent: string | null): string {
  return USER_AGENT.exec(userAgent ?? "")?.[1] ?? "";
}

const USER_AGENT = /^[A-Za-z0-9._-]+\/(\d{1,6}(?:\.\d{1,6}){0,3}(?:[-+][A-Za-z0-9.+-]{1,16})?)(?:\s|$)/;
