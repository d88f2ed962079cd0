import { link, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { GeneratedFiles } from '../config/generated-files.ts';
import { RouterError } from '../errors.ts';
import { FolderStamp } from './folder-stamp.ts';

/** The files of each directory that Holdfast owns and removes when they are no longer generated; others belong to the operator. */
const OWN: Readonly<Record<string, RegExp>> = {
  'dhcp/conf': /^[^.].*_v6\.conf$/,
  dhcp6: /^[^.].*\.conf$/,
  dns: /^[^.].*\.conf$/,
};
/** The daemons ignore names with a leading dot and this suffix. The next write removes what a killed process left. */
const LEFT_BEHIND = /^\..*\.(new|old)$/;

const AT_ONCE = 32;

/** A prepared write of generated files: every step that needs space on the disk has been done. */
export interface StagedFiles {
  /** Paths of files that are changed, added or removed. */
  readonly changed: readonly string[];
  /** Renames every file to its final path, each of them atomically. @throws HF_ROUTER_GENERATE nothing is changed then */
  commit(): Promise<void>;
  /** Restores the previous files, which needs no space on the disk. */
  undo(): Promise<void>;
  /** Removes the previous files. */
  keep(): Promise<void>;
}

/** The folder of generated files: `dhcp/conf`, `dhcp6` and `dns`. One write at a time. */
export class GeneratedFolder {
  readonly root: string;
  readonly #stamp: FolderStamp;

  constructor(root: string) {
    this.root = root;
    this.#stamp = new FolderStamp(root, Object.keys(OWN));
  }

  /** Names of the files that the DHCP daemon reads, including files that an operator placed there. */
  async dhcpFiles(): Promise<string[]> {
    return (await this.#names('dhcp/conf')).filter((name) => !name.startsWith('.')).sort();
  }

  /**
   * Writes the files that are missing or differ under temporary names.
   *
   * @throws HF_ROUTER_GENERATE nothing is changed
   */
  async stage(wanted: GeneratedFiles): Promise<StagedFiles> {
    const written: string[] = [];
    try {
      if (this.#stamp.stands(wanted)) return staged(this.root, [], []);
      const remember = this.#stamp.take(wanted);
      const gone = await this.#prepare(wanted);
      await inBatches([...wanted], async ([path, text]) => {
        if ((await this.#textOf(path)) === text) return;
        written.push(path); // before it is there: half of it must go, too
        await writeDurably(beside(join(this.root, path), 'new'), text);
      });
      if (written.length + gone.length === 0) remember();
      return staged(this.root, written, gone);
    } catch (error) {
      for (const path of written) await rm(beside(join(this.root, path), 'new'), { force: true });
      throw failure(error);
    }
  }

  /** Creates the directories and removes temporary files. @returns paths of own files that are no longer generated */
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

/** Runs a few at a time, because each waits for the disk. It throws a failure when the rest of that group has ended. */
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
          // A hard link to the present file: restoring it is a rename, so that there is a file at every moment.
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
      // The next write removes a file that stays.
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
