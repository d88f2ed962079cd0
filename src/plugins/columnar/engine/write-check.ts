import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The engine's count of writes that the system refused, and its clock in seconds. */
const FAILURES = `SELECT sum(value), toUnixTimestamp(now()) FROM system.events WHERE event = 'WriteBufferFromFileDescriptorWriteFailed'`;
/** The engine's own code for it: CANNOT_WRITE_TO_FILE_DESCRIPTOR. */
const CODE = '75';

/** The queries of a check, on the connection of its insert. */
export interface WriteCheckAccess {
  /** @returns rows of plain values */
  read(sql: string): Promise<readonly (readonly string[])[]>;
  command(sql: string): Promise<void>;
}

/** The newest check after which a table was whole. */
interface Checked {
  readonly failures: string;
  /** Seconds of the engine's clock. */
  readonly at: number;
  /** Counts the parts that were dropped. */
  readonly dropped: number;
}

/**
 * The embedded engine continues when the system refuses a write (a quota, a limit of file size, a disk that another
 * program fills between the engine's check and its write): the insert succeeds, and its files are incomplete. The engine
 * counts such failures, so each insert reads that count. If it has risen, the parts that are newer than the last check are
 * checked; incomplete ones are dropped, with their deduplication tokens, and the insert fails and may be repeated.
 */
export class WriteCheck {
  readonly #checked = new Map<string, Checked>();
  #opened: Checked | undefined;
  #sweeps: Promise<void> = Promise.resolve();

  /** Once, before any insert. */
  async begin(access: WriteCheckAccess): Promise<void> {
    this.#opened ??= { ...(await failuresOf(access)), dropped: 0 };
  }

  /**
   * @param table with its database
   * @throws what the insert throws; an error of the engine when its rows may not be on the disk
   */
  async insert(table: string, access: WriteCheckAccess, work: () => Promise<void>): Promise<void> {
    const before = this.#of(table);
    await work();
    const { failures, at } = await failuresOf(access);
    if (failures !== before.failures) await this.#sweep(table, before.at, access);
    const { dropped } = this.#of(table);
    this.#checked.set(table, { failures, at, dropped });
    if (dropped === before.dropped) return;
    const text = 'the system refused a part of it, so all of it was dropped';
    throw Object.assign(new Error(text), { code: CODE, type: 'INSERT' });
  }

  /** Sweeps run one after another, because each must count what the one before has dropped. */
  #sweep(table: string, since: number, access: WriteCheckAccess): Promise<void> {
    const sweep = this.#sweeps.then(async () => {
      for (const part of await brokenParts(table, since, access)) {
        // Counted before and after: meanwhile an insert of the same rows may have been refused as a duplicate of this part.
        this.#count(table);
        await access.command(`ALTER TABLE ${table} DROP PART '${part}'`);
        this.#count(table);
      }
    });
    this.#sweeps = sweep.catch(() => {});
    return sweep;
  }

  #count(table: string): void {
    const checked = this.#of(table);
    this.#checked.set(table, { ...checked, dropped: checked.dropped + 1 });
  }

  #of(table: string): Checked {
    const checked = this.#checked.get(table) ?? this.#opened;
    if (!checked) throw new Error('an insert before begin()');
    return checked;
  }
}

async function failuresOf({ read }: WriteCheckAccess): Promise<{ failures: string; at: number }> {
  const [[failures = '', at = '0'] = []] = await read(FAILURES);
  return { failures, at: Number(at) };
}

/** Names of parts that inserts made since, and that are not whole. @param since seconds of the engine's clock */
async function brokenParts(table: string, since: number, { read }: WriteCheckAccess): Promise<string[]> {
  const [database = '', name = ''] = table.split('.');
  const parts = await read(
    `SELECT name, path FROM system.parts WHERE active AND level = 0 AND database = '${database}' AND table = '${name}'
     AND modification_time >= toDateTime(${Math.max(0, since - 1)})`,
  );
  const broken: string[] = [];
  for (const [part = '', path = ''] of parts) {
    const answer = await read(
      `CHECK TABLE ${table} PART '${part}' SETTINGS check_query_single_value_result = 0`,
    );
    const isWhole = answer.every(([, passed]) => String(passed) === '1') && (await areNamesWhole(path));
    if (!isWhole) broken.push(part);
  }
  return broken;
}

/** Two files have no checksum; the engine reads them only at its next start, and sets the part aside if they are broken. */
async function areNamesWhole(path: string): Promise<boolean> {
  const text = (name: string) =>
    readFile(join(path, name), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw error;
    });
  if ((await text('metadata_version.txt')) === '') return false;
  const names = await text('columns_substreams.txt');
  return names === undefined || areSubstreamsWhole(names);
}

/** Whether the file has as many lines as its header states. */
export function areSubstreamsWhole(text: string): boolean {
  const lines = text.split('\n');
  if (lines.pop() !== '') return false;
  const columns = Number(/^(\d+) columns:$/.exec(lines[1] ?? '')?.[1]);
  const counts = lines.flatMap((line) => /^(\d+) substreams for column /.exec(line)?.[1] ?? []);
  const substreams = counts.reduce((sum, count) => sum + Number(count), 0);
  return counts.length === columns && lines.length === 2 + columns + substreams;
}
