/** A platform for which programs are built. The id names archives and npm packages. */
export interface Platform {
  readonly id: string;
  /** What `Bun.build` calls it. */
  readonly target: Bun.Build.CompileTarget;
  /** npm's words for it: `os`, `cpu` and, on Linux, `libc` of package.json. */
  readonly os: "linux" | "darwin" | "win32";
  readonly cpu: "x64" | "arm64";
  readonly libc?: "glibc" | "musl";
}

/** Only linux-x64 is run by the tests; of the others they check the file format and the size. */
export const PLATFORMS: readonly Platform[] = [
  { id: "linux-x64", target: "bun-linux-x64", os: "linux", cpu: "x64", libc: "glibc" },
  { id: "linux-arm64", target: "bun-linux-arm64", os: "linux", cpu: "arm64", libc: "glibc" },
  { id: "linux-x64-musl", target: "bun-linux-x64-musl", os: "linux", cpu: "x64", libc: "musl" },
  { id: "linux-arm64-musl", target: "bun-linux-arm64-musl", os: "linux", cpu: "arm64", libc: "musl" },
  { id: "darwin-arm64", target: "bun-darwin-arm64", os: "darwin", cpu: "arm64" },
  { id: "darwin-x64", target: "bun-darwin-x64", os: "darwin", cpu: "x64" },
  { id: "win32-x64", target: "bun-windows-x64", os: "win32", cpu: "x64" },
];
