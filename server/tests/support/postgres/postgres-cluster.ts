import { chmodSync, chownSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../free-port.ts";

const BIN = "/usr/lib/postgresql/15/bin";
/** PostgreSQL refuses to run as root. */
const USER = "postgres";

type ClusterOptions = {
  /** Whether commits reach the disk. Off where a test ends no machine: it takes nine tenths of the time. */
  readonly isDurable?: boolean;
  readonly settings?: Readonly<Record<string, string>>;
  /** Files that the server reads, which must then be its own. */
  readonly ownFiles?: readonly string[];
};

/** A PostgreSQL server of its own, on a free port, in a temporary directory. It takes any password. */
export class PostgresCluster {
  readonly port: number;
  readonly directory: string;
  readonly #settings: Readonly<Record<string, string>>;
  #server: ReturnType<typeof Bun.spawn> | null = null;
  #databases = 0;

  private constructor(directory: string, port: number, settings: Readonly<Record<string, string>>) {
    this.directory = directory;
    this.port = port;
    this.#settings = settings;
  }

  /** Makes a cluster and starts it. */
  static async start({
    isDurable = false,
    settings = {},
    ownFiles = [],
  }: ClusterOptions = {}): Promise<PostgresCluster> {
    const directory = ownDirectory();
    for (const file of ownFiles) give(file, 0o600);
    const initdb = ["initdb", "-D", join(directory, "data"), "-U", USER, "-A", "trust", "-E", "UTF8"];
    await run([...initdb, "--locale=C.UTF-8", "--no-sync"]);
    const fast = isDurable ? {} : { fsync: "off", full_page_writes: "off", synchronous_commit: "off" };
    const cluster = new PostgresCluster(directory, freePort(), { ...fast, ...settings });
    await cluster.resume();
    return cluster;
  }

  /** A standby that streams from this server. It calls itself `standby`, for synchronous_standby_names. */
  async startStandby(): Promise<PostgresCluster> {
    const directory = ownDirectory();
    const source = `host=127.0.0.1 port=${this.port} user=${USER} application_name=standby`;
    await run([
      "pg_basebackup",
      "-D",
      join(directory, "data"),
      "-d",
      source,
      "-R",
      "-X",
      "stream",
      "-c",
      "fast",
    ]);
    const standby = new PostgresCluster(directory, freePort(), {
      ...this.#settings,
      synchronous_standby_names: "",
    });
    await standby.resume();
    return standby;
  }

  /** Makes a standby the primary. */
  async promote(): Promise<void> {
    await run(["pg_ctl", "promote", "-w", "-D", join(this.directory, "data")]);
  }

  /** Starts it again after {@link kill}, or for the first time. */
  async resume(): Promise<void> {
    const settings = {
      port: String(this.port),
      listen_addresses: "127.0.0.1",
      unix_socket_directories: this.directory,
      max_connections: "200",
      ...this.#settings,
    };
    const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    this.#server = Bun.spawn(
      [...asUser(), join(BIN, "postgres"), "-D", join(this.directory, "data"), ...flags],
      {
        stdio: ["ignore", "ignore", Bun.file(join(this.directory, "log"))],
        env: { PATH: process.env["PATH"] ?? "" },
      },
    );
    for (;;) {
      const ready = await this.#try(["pg_isready", "-q", "-h", "127.0.0.1", "-p", String(this.port)]);
      if (ready) return;
      if (this.#server.exitCode !== null) throw new Error(`PostgreSQL did not start:\n${this.log}`);
      await Bun.sleep(20);
    }
  }

  get log(): string {
    const file = join(this.directory, "log");
    return existsSync(file) ? readFileSync(file, "utf8") : "";
  }

  /** The process id of the postmaster. */
  get pid(): number {
    return this.#server?.pid ?? 0;
  }

  /** Of the postmaster and of every process that it has started. */
  get processIds(): number[] {
    return [this.pid, ...this.#children().map(({ pid }) => pid)];
  }

  url(database: string, user = USER): string {
    return `postgres://${user}@127.0.0.1:${this.port}/${database}`;
  }

  /** Makes an empty database. @returns its URL */
  async createDatabase(settings: Readonly<Record<string, string>> = {}): Promise<string> {
    this.#databases += 1;
    const name = `test_${process.pid}_${this.#databases}`;
    await this.query("postgres", `CREATE DATABASE ${name}`);
    for (const [setting, value] of Object.entries(settings)) {
      await this.query("postgres", `ALTER DATABASE ${name} SET ${setting} = '${value}'`);
    }
    return this.url(name);
  }

  /** @returns the rows, a line each, columns separated by | */
  async query(database: string, sql: string): Promise<string> {
    const url = database.includes("://") ? database : this.url(database);
    return (
      await run(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql])
    ).trim();
  }

  /** From now on this role connects with its password alone. */
  async requirePassword(role: string): Promise<void> {
    const file = join(this.directory, "data", "pg_hba.conf");
    writeFileSync(file, `host all ${role} all scram-sha-256\n${readFileSync(file, "utf8")}`);
    await this.query("postgres", "SELECT pg_reload_conf()");
    while (await this.#try(["psql", "-w", "-X", "-d", this.url("postgres", role), "-c", ""]))
      await Bun.sleep(20);
  }

  /** Ends it as a power cut would: the postmaster, and its children, which would go on for a moment. */
  async kill(): Promise<void> {
    const children = this.#children();
    this.#server?.kill("SIGKILL");
    for (const { pid } of children) signal(pid, "SIGKILL");
    await this.#server?.exited;
  }

  /** Stops what sends the log to standbys, as a network does that loses its way. */
  freezeReplication(): void {
    this.#signalSenders("SIGSTOP");
  }

  thawReplication(): void {
    this.#signalSenders("SIGCONT");
  }

  /** Ends it and removes everything. */
  async stop(): Promise<void> {
    // Immediate shutdown: nothing is worth a checkpoint.
    this.#server?.kill("SIGQUIT");
    await this.#server?.exited;
    rmSync(this.directory, { recursive: true, force: true });
  }

  #signalSenders(name: NodeJS.Signals): void {
    for (const { pid, title } of this.#children()) if (title.includes("walsender")) signal(pid, name);
  }

  #children(): { readonly pid: number; readonly title: string }[] {
    const { pid } = this;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
    return children.filter(Boolean).map((child) => {
      const file = `/proc/${child}/cmdline`;
      return { pid: child, title: existsSync(file) ? readFileSync(file, "utf8") : "" };
    });
  }

  async #try(command: readonly string[]): Promise<boolean> {
    const [program = "", ...args] = command;
    return (
      (await Bun.spawn([join(BIN, program), ...args], { stdio: ["ignore", "ignore", "ignore"] }).exited) === 0
    );
  }
}

function ownDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "customers-postgres-"));
  give(directory, 0o700);
  return directory;
}

/** Makes a file the server's own. */
function give(file: string, mode: number): void {
  chmodSync(file, mode);
  if (!isRoot()) return;
  const [uid = 0, gid = 0] = userIds();
  chownSync(file, uid, gid);
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended by itself.
  }
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

function userIds(): number[] {
  const line = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((text) => text.startsWith(`${USER}:`));
  if (line === undefined) throw new Error(`there is no user ${USER}: install postgresql-15`);
  return line.split(":").slice(2, 4).map(Number);
}

/** setpriv becomes the program that it starts, so that the process id is PostgreSQL's own. */
function asUser(): string[] {
  return isRoot() ? ["setpriv", `--reuid=${USER}`, `--regid=${USER}`, "--clear-groups"] : [];
}

async function run(command: readonly string[]): Promise<string> {
  const [program = "", ...args] = command;
  const child = Bun.spawn([...asUser(), join(BIN, program), ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env["PATH"] ?? "", HOME: "/nonexistent" },
  });
  const [code, stdout, stderr] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if (code !== 0) throw new Error(`${program} failed: ${stderr}`);
  return stdout;
}
