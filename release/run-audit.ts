const ROOT = new URL("..", import.meta.url).pathname;

/** Advisories that do not concern this project: the number or the GHSA id, and why. */
const ACCEPTED: Readonly<Record<string, string>> = {};

/** As `bun audit --json` prints them, by package. */
type Advisories = Readonly<
  Record<
    string,
    readonly {
      readonly id: number;
      readonly url: string;
      readonly title: string;
      readonly severity: string;
      readonly vulnerable_versions: string;
    }[]
  >
>;

type Audit = {
  /** What there is to say, for people. */
  readonly lines: readonly string[];
  /** Whether no advisory was found; true also where nobody could be asked. */
  readonly isClean: boolean;
};

/** @param env of `bun audit`; BUN_CONFIG_REGISTRY is the registry */
export async function runAudit(env: Readonly<Record<string, string | undefined>>): Promise<Audit> {
  const ignored = Object.keys(ACCEPTED).map((id) => `--ignore=${id}`);
  const child = Bun.spawn([process.execPath, "audit", "--json", ...ignored], {
    cwd: ROOT,
    env: { ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  const advisories = parsed(stdout);
  if (advisories === null) {
    const reason = stderr.trim().split("\n").at(-1) ?? "";
    return { lines: [`NOT AUDITED: the registry gave no advisories (${reason})`], isClean: true };
  }
  const found = Object.entries(advisories).flatMap(([name, list]) =>
    list.map(
      ({ severity, title, url, vulnerable_versions: versions }) =>
        `${name} ${versions}: ${severity}: ${title} (${url})`,
    ),
  );
  if (found.length === 0) return { lines: ["no known vulnerability in bun.lock"], isClean: true };
  return { lines: [`known vulnerabilities in bun.lock: ${found.length}`, ...found], isClean: false };
}

function parsed(text: string): Advisories | null {
  try {
    return JSON.parse(text) as Advisories;
  } catch {
    return null;
  }
}
