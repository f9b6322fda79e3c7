import { Database } from "bun:sqlite";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { standardOutput } from "../../../commands/common/print.ts";
import { runCommand as runCommandHere } from "../../../commands/program.ts";
import { SETTING_NAMES, variableOf } from "../../../config/settings.ts";
import { openStorage } from "../../../storage/database-url/open-storage.ts";
import { checkPostgres } from "../../../storage/postgres/postgres-check.ts";
import { checkDatabase } from "../../../storage/sqlite/files/check.ts";
import { ENGINE, postgresUrlOf, runOnPostgres } from "../postgres/postgres-databases.ts";
import { type Reply, replyOf } from "./test-service.ts";

const MAIN = new URL("../../../main.ts", import.meta.url).pathname;
/** The whole test run compiles the service once: it then starts in less than half of the processor time. */
const { TEST_SERVER } = process.env;
const PROGRAM = TEST_SERVER === undefined ? [process.execPath, MAIN] : [TEST_SERVER];

/** What .ci/check.ts sets for the JavaScript runtime, the same for the service. */
const RUNTIME = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => name.startsWith("BUN_JSC_")),
);

type Environment = Readonly<Record<string, string>>;
type LaunchOptions = {
  readonly env?: Environment;
  readonly cwd?: string;
  /** The limit of file descriptors. */
  readonly descriptors?: number;
  /** A program that starts it, such as strace, with its arguments. */
  readonly under?: readonly string[];
};
export type ServeOptions = LaunchOptions & {
  /** Further flags of `serve`. */
  readonly args?: readonly string[];
  /** Without --print-url. */
  readonly isForPeople?: boolean;
  /** How many services share the port and the database. */
  readonly services?: number;
};
export type CommandOutcome = { readonly code: number; readonly stdout: string; readonly stderr: string };

/** A directory of its own under the system's temporary one. @returns its path, and what removes it */
export function temporaryDirectory(): { readonly path: string; readonly remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), "customers-test-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** A directory with a database, and the services and commands that are run on it. */
export class Workplace {
  readonly path: string;
  /** May be set to another file. */
  database: string;
  readonly #remove: () => void;
  readonly #services: ServerProcess[] = [];

  constructor() {
    const { path, remove } = temporaryDirectory();
    this.path = path;
    this.#remove = remove;
    this.database = `${path}/data/customers.db`;
  }

  /** Makes what a first start makes, samples included, without a process. */
  async prepare(): Promise<void> {
    this.makeDirectory();
    const umask = process.umask(0o077);
    const directory = process.cwd();
    // On PostgreSQL the token goes to data/ of the current directory.
    process.chdir(this.path);
    const storage = await openStorage(this.databaseUrl);
    await storage.firstStart(true, Date.now());
    await storage.close();
    process.chdir(directory);
    process.umask(umask);
  }

  /** Makes the directory of the database, as `start` does by itself. */
  makeDirectory(): void {
    mkdirSync(dirname(this.database), { recursive: true, mode: 0o700 });
  }

  async start(options: ServeOptions = {}): Promise<ServerProcess> {
    const service = await ServerProcess.start(this.database, options);
    this.#services.push(service);
    return service;
  }

  /** Runs a command on the database, in the directory. */
  run(
    args: readonly string[],
    env: Environment = {},
    { under = [] }: Pick<LaunchOptions, "under"> = {},
  ): Promise<CommandOutcome> {
    return runCommand(args, { cwd: this.path, env: { DATABASE_URL: this.databaseUrl, ...env }, under });
  }

  /** The same in this process, one at a time: for what a process of its own would not show any better. */
  async command(args: readonly string[], env: Environment = {}): Promise<CommandOutcome> {
    const { error } = console;
    const former = { ...standardOutput };
    const before = { env: { ...process.env }, directory: process.cwd(), umask: process.umask(0o077) };
    const written = { stdout: "", stderr: "" };
    standardOutput.isDiscarded = () => false;
    standardOutput.write = (text) => {
      written.stdout += text;
    };
    console.error = (line: string) => {
      written.stderr += `${line}\n`;
    };
    for (const name of SETTING_NAMES) delete process.env[variableOf(name)];
    Object.assign(process.env, { DATABASE_URL: this.databaseUrl, ...env });
    process.chdir(this.path);
    try {
      const code = await runCommandHere(["bun", "main.ts", ...args]);
      return { code, ...written };
    } finally {
      process.chdir(before.directory);
      for (const name of SETTING_NAMES) delete process.env[variableOf(name)];
      Object.assign(process.env, before.env);
      process.umask(before.umask);
      Object.assign(standardOutput, former);
      console.error = error;
    }
  }

  get databaseUrl(): string {
    return databaseUrlOf(this.database);
  }

  /** Runs one statement in the database, which exists. */
  execute(sql: string): void {
    if (ENGINE === "postgres") {
      runOnPostgres(this.database, `SET search_path = customers; ${sql}`);
      return;
    }
    const db = new Database(this.database, { readwrite: true, create: false });
    db.run("PRAGMA busy_timeout = 60000"); // A service may note the use of a token at this moment.
    db.run(sql);
    db.close();
  }

  /** What `check` finds wrong. */
  async faults(): Promise<readonly string[]> {
    const isPostgres = ENGINE === "postgres";
    const report = isPostgres ? await checkPostgres(this.databaseUrl, {}) : checkDatabase(this.database);
    return report.faults;
  }

  /** The token of the first start. */
  get adminToken(): string {
    return readFileSync(join(dirname(this.database), "admin.token"), "utf8").trim();
  }

  /** Ends what still runs. */
  async endAll(): Promise<void> {
    for (const service of this.#services.splice(0)) await service.end("SIGKILL");
  }

  /** Ends what still runs and removes everything. */
  async clear(): Promise<void> {
    await this.endAll();
    this.#remove();
  }
}

/** Runs one command of server/main.ts to its end. */
export async function runCommand(
  args: readonly string[],
  options: LaunchOptions = {},
): Promise<CommandOutcome> {
  const child = launch(args, options);
  const [code, stdout, stderr] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { code, stdout, stderr };
}

/**
 * The service as a process of its own: `bun server/main.ts
 * serve`, as an operator runs it. Or as several on one port.
 */
export class ServerProcess {
  readonly url: string;
  /** All of stdout so far, and of stderr. */
  readonly stdout: Output;
  readonly stderr: Output;
  /** The exit code; of several the worst. */
  readonly exited: Promise<number>;
  readonly #children: readonly Child[];

  private constructor(children: readonly Child[], url: string, stdout: Output, stderr: Output) {
    this.#children = children;
    this.url = url;
    this.stdout = stdout;
    this.stderr = stderr;
    this.exited = Promise.all(children.map((child) => child.exited)).then((codes) => Math.max(...codes));
  }

  /** Starts it without waiting for anything. */
  static launch(database: string, { args = [], ...options }: ServeOptions = {}): Child {
    return launch(["serve", "--print-url", ...args], inDatabase(database, options));
  }

  /**
   * Starts it on a free port and waits until it listens.
   *
   * @param database its file
   */
  static async start(database: string, options: ServeOptions = {}): Promise<ServerProcess> {
    const { args = [], isForPeople = false, services = SERVICES, ...launching } = options;
    const command = ["serve", ...(isForPeople ? [] : ["--print-url"]), ...args];
    const children: Child[] = [];
    const stdouts: Output[] = [];
    const stderr = new Output();
    let url = "";
    for (let started = 0; started < services; started += 1) {
      const shared: Environment =
        services === 1 ? {} : { REUSE_PORT: "1", ...(url === "" ? {} : { PORT: new URL(url).port }) };
      const env = { ...launching.env, ...shared };
      const child = launch(command, inDatabase(database, { ...launching, env }));
      const stdout = new Output(child.stdout);
      children.push(child);
      stdouts.push(stdout);
      stderr.add(child.stderr);
      const line = await stdout.line((text) => /^(?:\{|Listening on )/.test(text));
      url = /https?:[^"\s]+/.exec(line ?? "")?.[0] ?? "";
      if (url === "") throw new Error(`the service did not start: ${stderr.text}`);
    }
    const [stdout = new Output()] = stdouts;
    return new ServerProcess(children, url, stdout, stderr);
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  /** What the log has so far, a line each. */
  get log(): Record<string, unknown>[] {
    return this.stderr.lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  /** Sends one request on a connection of its own: one that is kept could be tried again unseen. */
  async send(
    token: string | null,
    method: string,
    path: string,
    { headers = {}, body }: { headers?: Record<string, string>; body?: unknown } = {},
  ): Promise<Reply> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      keepalive: false,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return await replyOf(response);
  }

  /** How many processes it is. */
  get services(): number {
    return this.#children.length;
  }

  /** From now on. @returns what asks how much resident memory grew at most, in the process that grew most */
  watchMemory(): { readonly grownMiB: () => number } {
    const statusOf = ({ pid }: Child, field: string): number => {
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)?.[1]);
    };
    const before = this.#children.map((child) => {
      writeFileSync(`/proc/${child.pid}/clear_refs`, "5"); // The peak begins anew.
      return statusOf(child, "VmRSS");
    });
    return {
      grownMiB: () =>
        Math.max(...this.#children.map((child, n) => statusOf(child, "VmHWM") - (before[n] ?? Number.NaN))) /
        1024,
    };
  }

  signal(name: NodeJS.Signals): void {
    for (const child of this.#children) child.kill(name);
  }

  /** Ends it and reads what it had written. @returns the exit code; 137 after SIGKILL */
  async end(name: NodeJS.Signals = "SIGTERM"): Promise<number> {
    this.signal(name);
    const [code] = await Promise.all([this.exited, this.stdout.over(), this.stderr.over()]);
    return code;
  }
}

/** Streams of text, collected as they come; the text of each stays whole. */
export class Output {
  readonly #texts: string[] = [];
  readonly #collecting: Promise<void>[] = [];
  #open = 0;
  #wake: (() => void)[] = [];

  constructor(...streams: readonly ReadableStream<Uint8Array>[]) {
    for (const stream of streams) this.add(stream);
  }

  add(stream: ReadableStream<Uint8Array>): void {
    this.#open += 1;
    this.#collecting.push(this.#collect(stream, this.#texts.push("") - 1));
  }

  get text(): string {
    return this.#texts.join("");
  }

  /** Every whole line so far. */
  get lines(): string[] {
    return this.#texts.flatMap((text) => text.split("\n").slice(0, -1));
  }

  /** Waits until every stream has ended. */
  async over(): Promise<void> {
    await Promise.all(this.#collecting);
  }

  /** Waits for a whole line that is like this. @returns it, or null when the streams ended without one */
  async line(isWanted: (line: string) => boolean): Promise<string | null> {
    for (;;) {
      const found = this.lines.find(isWanted);
      if (found !== undefined) return found;
      if (this.#open === 0) return null;
      await new Promise<void>((wake) => this.#wake.push(wake));
    }
  }

  async #collect(stream: ReadableStream<Uint8Array>, index: number): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      this.#texts[index] += decoder.decode(chunk, { stream: true });
      this.#wakeAll();
    }
    this.#open -= 1;
    this.#wakeAll();
  }

  #wakeAll(): void {
    const waiting = this.#wake;
    this.#wake = [];
    for (const wake of waiting) wake();
  }
}

/**
 * `bun run test:services` runs every test that starts the service as a process with two of them on one port.
 */
const SERVICES = Number(process.env["TEST_SERVICES"] ?? 1);

function inDatabase(database: string, options: LaunchOptions): LaunchOptions {
  // An fsync of a disk that others use took more than five seconds, and another service waits for its lock.
  const fixed = { PORT: "0", SAMPLES: "1", STOP_GRACE: "0", LOCK_WAIT: "60" };
  if (options.env?.["DATABASE_URL"] !== undefined) return { ...options, env: { ...fixed, ...options.env } };
  mkdirSync(dirname(database), { recursive: true, mode: 0o700 });
  // On PostgreSQL the token of the first start is in data/ of the current directory.
  const cwd = ENGINE === "postgres" ? { cwd: dirname(dirname(database)) } : {};
  return { ...cwd, ...options, env: { ...fixed, DATABASE_URL: databaseUrlOf(database), ...options.env } };
}

function databaseUrlOf(database: string): string {
  return ENGINE === "postgres" ? postgresUrlOf(database) : `sqlite:${database}`;
}

type Child = ReturnType<typeof launch>;

/** Starts server/main.ts without waiting for anything. */
export function launch(args: readonly string[], { env = {}, cwd, descriptors, under = [] }: LaunchOptions) {
  const { PATH = "", HOME = "" } = process.env;
  const limit = descriptors === undefined ? [] : ["sh", "-c", 'ulimit -n "$0"; exec "$@"', `${descriptors}`];
  return Bun.spawn([...limit, ...under, ...PROGRAM, ...args], {
    // Nothing of the surroundings but what finds programs: a PORT set outside must not change a test.
    env: { PATH, HOME, ...RUNTIME, ...env },
    cwd: cwd ?? tmpdir(),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
}
