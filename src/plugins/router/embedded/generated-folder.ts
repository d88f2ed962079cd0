import { link, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { GeneratedFiles } from '../config/generated-files.ts';
import { RouterError } from '../errors.ts';

/** The files of each directory that are ours, and so go when nothing generates them; the others are the operator's. */
const OWN: Readonly<Record<string, RegExp>> = {
  'dhcp/conf': /^[^.].*_v6\.conf$/,
  dhcp6: /^[^.].*\.conf$/,
  dns: /^[^.].*\.conf$/,
};
/** Leading dot and suffix: the daemons pass over them. A kill leaves them behind, the next write takes them away. */
const LEFT_BEHIND = /^\..*\.(new|old)$/;

const AT_ONCE = 32;

/** A write of generated files, prepared: all that can fail for want of room has been done. */
export interface StagedFiles {
  /** Paths that get another text, come or go. */
  readonly changed: readonly string[];
  /** Puts every file in its place, each whole or not at all. @throws HF_ROUTER_GENERATE nothing is changed then */
  commit(): Promise<void>;
  /** Back to what stood before, which needs no room on the disk. */
  undo(): Promise<void>;
  /** What stood before is no longer wanted. */
  keep(): Promise<void>;
}

/** The folder of generated files: `dhcp/conf`, `dhcp6` and `dns`. One write at a time. */
export class GeneratedFolder {
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  /** Names of the files that the DHCP daemon reads, those put there by hand included. */
  async dhcpFiles(): Promise<string[]> {
    return (await this.#names('dhcp/conf')).filter((name) => !name.startsWith('.')).sort();
  }

  /**
   * Writes what is wanted and is not there beside its place.
   *
   * @throws HF_ROUTER_GENERATE nothing is changed
   */
  async stage(wanted: GeneratedFiles): Promise<StagedFiles> {
    const written: string[] = [];
    try {
      const gone = await this.#prepare(wanted);
      await inBatches([...wanted], async ([path, text]) => {
        if ((await this.#textOf(path)) === text) return;
        written.push(path); // before it is there: half of it must go, too
        await writeDurably(beside(join(this.root, path), 'new'), text);
      });
      return staged(this.root, written, gone);
    } catch (error) {
      for (const path of written) await rm(beside(join(this.root, path), 'new'), { force: true });
      throw failure(error);
    }
  }

  /** Makes the directories, clears what a kill left. @returns paths of own files that nothing generates any more */
  async #prepare(wanted: GeneratedFiles): Promise<string[]> {
    const gone: string[] = [];
    for (const [dir, own] of Object.entries(OWN)) {
      await mkdir(join(this.root, dir), { recursive: true, mode: 0o755 });
      for (const name of await this.#names(dir)) {
        if (LEFT_BEHIND.test(name)) await rm(join(this.root, dir, name), { force: true });
        else if (own.test(name) && !wanted.has(`${dir}/${name}`)) gone.push(`${dir}/${name}`);
      }
    }
    return gone;
  }

  async #textOf(path: string): Promise<string | undefined> {
    return absentIsFine(readFile(join(this.root, path), 'utf8'));
  }

  async #names(dir: string): Promise<string[]> {
    return (await absentIsFine(readdir(join(this.root, dir)))) ?? [];
  }
}

/** Runs a few at a time, because each waits for the disk. A failure is thrown when none of its group is still running. */
async function inBatches<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let first = 0; first < items.length; first += AT_ONCE) {
    const batch = await Promise.allSettled(items.slice(first, first + AT_ONCE).map(work));
    for (const one of batch) if (one.status === 'rejected') throw one.reason;
  }
}

function staged(root: string, written: readonly string[], gone: readonly string[]): StagedFiles {
  const changed = [...written, ...gone].sort();
  const at = (path: string) => join(root, path);
  const had = new Set<string>();
  const begun: string[] = [];
  const undo = async (): Promise<void> => {
    for (const path of begun.splice(0).reverse()) {
      if (had.has(path)) await rename(beside(at(path), 'old'), at(path));
      else await rm(at(path), { force: true });
    }
    for (const path of written) await rm(beside(at(path), 'new'), { force: true });
    await syncDirectories(root, changed);
  };
  return {
    changed,
    undo,
    async commit() {
      try {
        for (const path of changed) {
          // A second name for what stands there: taking it back is a rename, and there is never no file.
          const existed = await absentIsFine(link(at(path), beside(at(path), 'old')).then(() => true));
          if (existed) had.add(path);
          begun.push(path);
          if (gone.includes(path)) await rm(at(path));
          else await rename(beside(at(path), 'new'), at(path));
        }
        await syncDirectories(root, changed);
      } catch (error) {
        await undo();
        throw failure(error);
      }
    },
    async keep() {
      // One that stays is taken away by the next write.
      for (const path of had) await rm(beside(at(path), 'old'), { force: true }).catch(() => {});
    },
  };
}

function beside(file: string, suffix: 'new' | 'old'): string {
  return join(dirname(file), `.${file.slice(dirname(file).length + 1)}.${suffix}`);
}

async function writeDurably(file: string, text: string): Promise<void> {
  const handle = await open(file, 'w', 0o644);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** A rename is durable when its directory is. */
async function syncDirectories(root: string, paths: readonly string[]): Promise<void> {
  for (const dir of new Set(paths.map((path) => dirname(join(root, path))))) {
    const handle = await open(dir, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  }
}

async function absentIsFine<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function failure(error: unknown): unknown {
  if (!(error instanceof Error) || !('code' in error)) return error;
  const reasons: Readonly<Record<string, string>> = {
    ENOSPC: 'the disk is full',
    EDQUOT: 'the quota is used up',
    EROFS: 'the disk is read-only',
    EACCES: 'this user may not write there',
  };
  const reason = reasons[String(error.code)] ?? String(error.code);
  return new RouterError('HF_ROUTER_GENERATE', { what: 'the generated files', reason }, { cause: error });
}
