import manifest from "../package.json" with { type: "json" };

/** Set by the release build. */
declare const BUILD_COMMIT: string | undefined;

export const VERSION: string = manifest.version;

/** What `--version` prints: version, commit and platform. */
export const VERSION_LINE = `customers ${VERSION} (${
  typeof BUILD_COMMIT === "undefined" ? "from source" : `commit ${BUILD_COMMIT}`
}, ${process.platform}-${process.arch})`;
