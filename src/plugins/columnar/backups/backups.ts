/** Makes and drills backups of the embedded columnar database. The work is done by the running instance's engine: no second process can open its folder. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { ColumnarBackup, ColumnarDrill } from '../../../machines/columnar/backups.ts';
import { parseAnswer } from '../answer.ts';
import type { Bounds, Engine } from '../engine/engine.ts';
import { EMBEDDED_DATABASE } from '../engine/grants.ts';
import { ColumnarError } from '../errors.ts';
import { partsIn, sha256Of } from './archive.ts';
import { type Ask, differences, digestOf, tablesOf } from './digest.ts';

const DATABASE = EMBEDDED_DATABASE;
const SECONDS = 3_600;
const LARGEST_ANSWER = 4 * 1024 * 1024;
const NAME = /^columnar-(\d{4})-(\d\d)-(\d\d)-(\d\d)-(\d\d)-(\d\d)\.tar$/;
const PARTIAL = 'partial-';

/** How a backup's file differs from what was recorded when it was made. */
export interface FileFault {
  readonly code: 'gone' | 'size' | 'content';
  readonly reason: string;
}

/** The files of backups in one folder. */
export class ColumnarBackups {
  readonly #engine: Engine;
  /** The only folder that the engine may write backups to. */
  readonly folder: string;
  #running: Promise<unknown> = Promise.resolve();

  /** @param folder absolute path; made with mode 0700 when it is not there */
  constructor(engine: Engine, folder: string) {
    this.#engine = engine;
    this.folder = folder;
  }

  /**
   * Backs up every table, consistently, and reads what was backed up from the live tables: merges are stopped
   * meanwhile, so that the parts in the file still exist.
   *
   * @param at epoch milliseconds, which the name contains
   * @throws HF_COLUMNAR_BACKUP
   */
  make(at: number, signal: AbortSignal): Promise<ColumnarBackup> {
    return this.#alone(async () => {
      await this.#tidy();
      const name = `columnar-${new Date(at).toISOString().slice(0, 19).replaceAll(/[T:]/g, '-')}.tar`;
      const partial = join(this.folder, `${PARTIAL}${name}`);
      const bounds: Bounds = { seconds: SECONDS, signal };
      const ask = this.#asking(bounds);
      const tables = await tablesOf(DATABASE, ask);
      const merges = async (verb: 'START' | 'STOP', within: Bounds) => {
        for (const table of tables) {
          await this.#engine.command(`SYSTEM ${verb} MERGES ${DATABASE}.\`${table}\``, within);
        }
      };
      try {
        await merges('STOP', bounds);
        // Files of equal content are all kept, so that each part is seen in the archive.
        await this.#engine.command(
          `BACKUP DATABASE ${DATABASE} TO File('${partial.replace(/[\\']/g, '\\$&')}') SETTINGS deduplicate_files = 0`,
          bounds,
        );
        const parts = await partsIn(partial, DATABASE);
        const digests = [];
        for (const table of tables)
          digests.push(await digestOf(DATABASE, table, ask, parts.get(table) ?? []));
        const sha256 = await sha256Of(partial);
        const { size } = await stat(partial);
        await onDisk(partial);
        await rename(partial, join(this.folder, name));
        await onDisk(this.folder);
        return { name, at: timeOf(name) ?? at, size, sha256, tables: digests };
      } finally {
        // Also when the caller has given up.
        await merges('START', { seconds: SECONDS, signal: new AbortController().signal });
      }
    });
  }

  /**
   * Compares a backup's file with its record, restores it into a scratch folder, and compares every table.
   *
   * @param now epoch milliseconds
   */
  drill(backup: ColumnarBackup, now: number, signal: AbortSignal): Promise<ColumnarDrill> {
    return this.#alone(async () => {
      const reasons = await this.#reasonsAgainst(backup, signal).catch((error: unknown) => {
        if (signal.aborted) throw signal.reason;
        return [reasonOf(error)];
      });
      return { at: now, name: backup.name, proven: reasons.length === 0, reasons };
    });
  }

  /**
   * Reads a backup's file again.
   *
   * @returns what is not as recorded; undefined when the file has the bytes that were recorded
   * @throws what the file system throws, or the signal's reason
   */
  async fileFault(
    { name, sha256, size }: Pick<ColumnarBackup, 'name' | 'sha256' | 'size'>,
    signal: AbortSignal,
  ): Promise<FileFault | undefined> {
    const file = join(this.folder, basename(name));
    const found = await stat(file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
    if (!found) return { code: 'gone', reason: 'its file is gone' };
    if (found.size !== size)
      return { code: 'size', reason: `its file has ${found.size} bytes, and ${size} were recorded` };
    if ((await sha256Of(file, signal)) === sha256) return undefined;
    return { code: 'content', reason: 'its file is not the one that was written (SHA-256)' };
  }

  /** Names of the files, newest first; without those that are being made. */
  async list(): Promise<string[]> {
    const names = await readdir(this.folder).catch(() => []);
    return names.filter((name) => timeOf(name) !== undefined).toSorted((a, b) => (a < b ? 1 : -1));
  }

  /** @param name one of the list: other files are not touched */
  async delete(name: string): Promise<void> {
    if (timeOf(name) !== undefined) await rm(join(this.folder, name), { force: true });
  }

  async #reasonsAgainst(backup: ColumnarBackup, signal: AbortSignal): Promise<string[]> {
    const { name, tables } = backup;
    const file = join(this.folder, basename(name));
    const fault = await this.fileFault(backup, signal);
    if (fault?.code === 'gone') return [fault.reason];
    const reasons = fault ? [fault.reason] : [];
    const restored = await restoreElsewhere(file, this.folder, signal);
    if ('reason' in restored) return [...reasons, `it cannot be restored: ${restored.reason}`];
    return [...reasons, ...differences(tables, restored.tables)];
  }

  /** Removes the files that a killed run left. */
  async #tidy(): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    for (const name of await readdir(this.folder)) {
      if (name.startsWith(PARTIAL) || name.startsWith('scratch-')) {
        await rm(join(this.folder, name), { recursive: true, force: true });
      }
    }
  }

  /** One run at a time, because a second one would delete the unfinished file of the first. */
  #alone<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#running.then(work).catch((error: unknown) => {
      if (isCoded(error)) throw error;
      throw new ColumnarError('HF_COLUMNAR_BACKUP', { reason: reasonOf(error) }, { cause: error });
    });
    this.#running = result.catch(() => {});
    return result;
  }

  #asking(bounds: Bounds): Ask {
    return async (sql) => {
      const { columns, rows } = await parseAnswer(
        await this.#engine.read(sql, {}, bounds),
        this.#engine.place,
      );
      return rows.map((row) => Object.fromEntries(columns.map(({ name }, at) => [name, row[at]])));
    };
  }
}

/** The result of a restore. */
type Restored = { readonly tables: ColumnarBackup['tables'] } | { readonly reason: string };

async function restoreElsewhere(file: string, backups: string, signal: AbortSignal): Promise<Restored> {
  const scratch = await mkdtemp(join(backups, 'scratch-'));
  try {
    return await restoreInto(scratch, file, signal);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/**
 * Restores a backup in a process of its own.
 *
 * @param folder absolute path of an empty folder, or of one that is not there
 * @param file absolute path of the backup
 * @returns what every table holds, or why it cannot be restored
 */
export function restoreInto(folder: string, file: string, signal: AbortSignal): Promise<Restored> {
  const program = fileURLToPath(
    new URL(`./restore-child${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
  );
  const options = { signal, maxBuffer: LARGEST_ANSWER, timeout: SECONDS * 1_000, env: {} };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [program, folder, dirname(file), file, DATABASE], options, (error, stdout) => {
      if (signal.aborted) return reject(signal.reason);
      if (error)
        return resolve({ reason: `the engine ended while it restored (${error.signal ?? error.code})` });
      try {
        resolve(JSON.parse(stdout) as Restored);
      } catch {
        resolve({ reason: 'the engine said nothing' });
      }
    });
  });
}

/** @returns epoch milliseconds; undefined for a file that is no backup of ours */
export function timeOf(name: string): number | undefined {
  const [, year, month, day, hour, minute, second] = NAME.exec(name) ?? [];
  const at = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  return Number.isNaN(at) ? undefined : at;
}

async function onDisk(path: string): Promise<void> {
  const handle = await open(path);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return (text.split('\n')[0] ?? '')
    .replace(/^Code: \d+\. DB::Exception:\s*/, '')
    .replace(/\.$/, '')
    .slice(0, 500);
}
