import { COMMANDER_WITHOUT_NODE_UTIL, type LeftOut, UNDICI_WITHOUT_NODE_HTTP } from "./left-out.ts";

/** The three programs that a release consists of. */
export interface Program {
  /** The name of the executable, and of the archive. */
  readonly name: string;
  /** The npm package that installs it. */
  readonly npmName: string;
  readonly description: string;
  /** Paths from the project's root: the entry point, then workers that it starts. */
  readonly entrypoints: readonly [string, ...string[]];
  /** What is imported by `import()` is a part of its own: a run reads the parts that it needs, and starts faster. */
  readonly splitting?: boolean;
  /** What its packages load without need. */
  readonly leftOut?: readonly LeftOut[];
  /** Names that stand for a value. */
  readonly define?: Readonly<Record<string, string>>;
  /** The folder with its README.md and docs/. */
  readonly documents: string;
  /** What else in that folder its documents link to: glob patterns. */
  readonly linked: readonly string[];
  /** The shells for which it prints completion scripts. */
  readonly completionShells: readonly string[];
  /**
   * The client does not: it guards tokens and its undo journal with file modes, and replaces files with an fsync of their
   * directory, neither of which Windows has. Nobody has run the kit there either, but it needs nothing of that.
   */
  readonly runsOnWindows: boolean;
}

export const PROGRAMS: readonly Program[] = [
  {
    name: "customers",
    npmName: "customers-cli",
    description: "Command line client of the customer resource API",
    entrypoints: ["cli/main.ts"],
    splitting: true,
    leftOut: [...UNDICI_WITHOUT_NODE_HTTP, ...COMMANDER_WITHOUT_NODE_UTIL],
    // undici's own switch: without its second parser of HTTP/1.1, an experiment that is off.
    define: { esbuildDetection: "true" },
    documents: "cli",
    linked: ["client/README.md"],
    completionShells: ["bash", "zsh", "fish"],
    runsOnWindows: false,
  },
  {
    name: "customers-conformance",
    npmName: "customers-conformance",
    description: "Conformance kit of the customer resource API",
    entrypoints: ["conformance/main.ts"],
    documents: "conformance",
    linked: ["RULES.md", "MUTANTS.md", "specification/*.md", "report/*.json"],
    completionShells: [],
    runsOnWindows: true,
  },
  {
    name: "customers-server",
    npmName: "customers-server",
    description: "Customer resource service with ETag and If-Match, on SQLite or PostgreSQL",
    entrypoints: [
      "server/main.ts",
      "server/storage/sqlite/commit/writer-thread-worker.ts",
      "server/storage/sqlite/files/vacuum-thread-worker.ts",
    ],
    splitting: true,
    documents: "server",
    linked: ["PERFORMANCE.md", "deploy/**/*", "telemetry/prometheus/customers.rules.yml"],
    completionShells: [],
    runsOnWindows: false,
  },
];
