/**
 * A file that appears whole or not at all. The text goes into a draft beside the target, which is flushed to
 * the disk and then takes the target's name, so a crash leaves the old file or the new one. The draft's name
 * is random and it is created exclusively: two writers never share one, and a link that somebody put there
 * is not followed.
 */
import {
  closeSync,
  fchmodSync,
  fsyncSync,
  lstatSync,
  openSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

export type Draft = {
  path: string;
  fd: number;
  /**
   * Puts the draft in the target's place; with `onlyNew`, EEXIST is thrown where a file has appeared there.
   * The caller has written everything to `fd`.
   */
  commit(options?: { onlyNew: boolean }): void;
  /** Removes the draft; after `commit` it does nothing. */
  discard(): void;
};

/**
 * @param mode of the target; "keep": that of the file which is replaced, and 0600 for a new one. Throws
 * system errors.
 */
export function openDraft(file: string, mode: number | "keep"): Draft {
  const target = targetOf(file);
  const path = join(dirname(target), `.${basename(target)}.${crypto.randomUUID().slice(-12)}`);
  const fd = openSync(path, "wx", 0o600);
  let open = true;
  const close = () => {
    if (open) closeSync(fd);
    open = false;
  };
  return {
    path,
    fd,
    commit({ onlyNew } = { onlyNew: false }) {
      fchmodSync(fd, mode === "keep" ? modeOf(target) : mode);
      fsyncSync(fd);
      close();
      // Made here, the name is ours: a rename alone would take the place of another file, and not every file
      // system has links.
      if (onlyNew) closeSync(openSync(target, "wx", 0o600));
      renameSync(path, target);
      flushDirectory(dirname(target));
    },
    discard() {
      close();
      rmSync(path, { force: true });
    },
  };
}

/** Replaces the file with this text. Throws system errors; the old file is then as it was. */
export function writeAtomically(file: string, text: string, mode: number | "keep"): void {
  const draft = openDraft(file, mode);
  try {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; ) at += writeSync(draft.fd, bytes, at);
    draft.commit();
  } finally {
    draft.discard();
  }
}

/** A symbolic link stays a link: what it names is replaced, even where that does not exist yet. */
function targetOf(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    const isLink = lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
    return isLink ? resolve(dirname(file), readlinkSync(file)) : file;
  }
}

function modeOf(target: string): number {
  return (statSync(target, { throwIfNoEntry: false })?.mode ?? 0o600) & 0o777;
}

/** Makes the new name durable; some file systems refuse that, and then the rename alone must do. */
function flushDirectory(directory: string): void {
  const fd = openSync(directory, "r");
  try {
    fsyncSync(fd);
  } catch {
    // EINVAL on file systems without it.
  } finally {
    closeSync(fd);
  }
}
