/** When backups of the embedded columnar database are made and drilled, and what is recorded of them. */
import { Cron } from 'croner';
import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import { askInstance } from '../../../core/host/operations/control-client.ts';
import { serveOperation } from '../../../core/host/operations/serve.ts';
import type { PluginContext, Services } from '../../../core/host/plugin/definition.ts';
import type { CheckDefinition, CheckResult } from '../../../core/host/plugin/diagnosis.ts';
import { defineActor } from '../../../core/kernel/actors/definition.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { JsonObject } from '../../../core/kernel/json.ts';
import { isAhead, isRecent } from '../../../machines/backup-age.ts';
import {
  type ColumnarBackup,
  type ColumnarBackupsContext,
  type ColumnarBackupsEvent,
  type ColumnarDrill,
  columnarBackups,
} from '../../../machines/columnar/backups.ts';
import { ColumnarError } from '../errors.ts';
import type { ColumnarOptions } from '../options.ts';
import { describeColumnarBackup } from '../words.ts';
import type { ColumnarBackups } from './backups.ts';

const KEY = 'embedded';
const HOUR_MS = 3_600_000;
/** A proof of a backup of long ago says nothing of the newest. */
const DRILL_MS = 31 * 24 * HOUR_MS;
/** Every hour, because the timers of a machine stop while it sleeps. */
const CHECK_CRON = '41 * * * *';
/** After the surfaces have started. */
const FIRST_CHECK_MS = 60_000;
/** A check of doctor is given up after 20 s. */
const INSPECT_MS = 15_000;
export const BACKUPS_PATH = '/columnar/backups';

const digest = z.object({ table: z.string(), rows: z.string(), sum: z.string(), xor: z.string() });
const made = z.object({
  name: z.string(),
  at: z.number(),
  size: z.number(),
  sha256: z.string(),
  tables: z.array(digest).readonly(),
});
const changed = defineTopic(
  'columnar.backups_changed',
  z.discriminatedUnion('type', [
    z.object({ type: z.literal('MADE'), backup: made }),
    z.object({ type: z.literal('FAILED'), at: z.number(), reason: z.string() }),
    z.object({ type: z.literal('GONE'), names: z.array(z.string()).readonly() }),
    z.object({
      type: z.literal('DRILLED'),
      at: z.number(),
      name: z.string(),
      proven: z.boolean(),
      reasons: z.array(z.string()).readonly(),
    }),
    z.object({ type: z.literal('CHECKED'), at: z.number() }),
  ]),
  'A backup of the embedded columnar database was made, failed, was deleted or was drilled.',
);
const noFields: z.ZodType<Record<string, never>> = z.object({});
const backupDue = defineTopic(
  'columnar.backup_due',
  noFields,
  'A backup of the embedded columnar database is due.',
);
const drillDue = defineTopic('columnar.drill_due', noFields, 'A drill of the newest such backup is due.');
const checkDue = defineTopic(
  'columnar.backup_check_due',
  noFields,
  'The hourly check of these backups is due.',
);

const actor = defineActor({
  type: 'columnar.backups',
  machine: columnarBackups,
  version: 1,
  describe: describeColumnarBackup,
});

const backupRequest = z.discriminatedUnion('op', [
  z.strictObject({ op: z.literal('make') }),
  z.strictObject({ op: z.literal('drill'), name: z.string().max(200).optional() }),
  z.strictObject({ op: z.literal('list') }),
  z.strictObject({ op: z.literal('inspect') }),
]);

/** What a plugin that keeps backups has started. */
export interface StartedBackups {
  /** Undefined for a server elsewhere: its operator backs it up. */
  readonly backups: BackupSchedule | undefined;
}

export function registerBackups(context: PluginContext<StartedBackups>, options: ColumnarOptions): void {
  const { backup, url } = options;
  context.actor({ ...actor, input: () => ({ staleMs: backup.staleHours * HOUR_MS }) });
  context.route(changed, actor, ({ payload }) => [{ key: KEY, event: payload as ColumnarBackupsEvent }]);
  context.schedule(backup.cron, backupDue);
  context.schedule(backup.drillCron, drillDue);
  context.schedule(CHECK_CRON, checkDue);
  context.control((surface, { backups }) =>
    serveOperation(surface, BACKUPS_PATH, backupRequest, async (request, { signal }) => {
      if (!backups)
        throw new ColumnarError('HF_COLUMNAR_BACKUP', {
          reason: 'the database is a server elsewhere, which its operator backs up',
        });
      if (request.op === 'make') return backups.make(signal);
      if (request.op === 'drill') return backups.drill(request.name, signal);
      return request.op === 'inspect' ? backups.inspect(signal) : backups.status();
    }),
  );
  context.health('columnar_backups', ({ backups }) => backups?.health());
  if (url === undefined) context.check(backupCheck());
}

/** Makes, drills and prunes at the scheduled times and on request, and records each result. */
export class BackupSchedule {
  readonly #services: Services;
  readonly #options: ColumnarOptions;
  readonly #files: ColumnarBackups;
  readonly #closing = new AbortController();
  #isDue = false;

  constructor(services: Services, options: ColumnarOptions, files: ColumnarBackups) {
    this.#services = services;
    this.#options = options;
    this.#files = files;
  }

  start(): void {
    const { bus, clock, logger } = this.#services;
    const attempt = (work: () => Promise<unknown>) => () =>
      void work().catch((error: unknown) => logger.warn({ err: error }, 'columnar.backup'));
    bus.stream(backupDue, 'columnar').subscribe(attempt(() => this.make(this.#closing.signal)));
    bus.stream(drillDue, 'columnar').subscribe(attempt(() => this.drill(undefined, this.#closing.signal)));
    const check = attempt(() => this.#check());
    bus.stream(checkDue, 'columnar').subscribe(check);
    const cancel = clock.after(FIRST_CHECK_MS, check);
    this.#closing.signal.addEventListener('abort', cancel, { once: true });
  }

  stop(): void {
    this.#closing.abort(new Error('the instance stops'));
  }

  /** @throws HF_COLUMNAR_BACKUP and what the engine throws; it is recorded, too */
  async make(signal: AbortSignal): Promise<ColumnarBackup> {
    const { clock } = this.#services;
    try {
      const backup = await this.#files.make(clock.now(), AbortSignal.any([signal, this.#closing.signal]));
      this.#record({ type: 'MADE', backup });
      await this.#prune([backup, ...this.#state.good]);
      return backup;
    } catch (error) {
      const reason = isCoded(error) ? error.what.replace(/\.$/, '') : String(error);
      if (!this.#closing.signal.aborted) this.#record({ type: 'FAILED', at: clock.now(), reason });
      throw error;
    }
  }

  /** @param name the newest good one unless given @throws HF_COLUMNAR_BACKUP there is none */
  async drill(name: string | undefined, signal: AbortSignal): Promise<ColumnarDrill> {
    const { good } = this.#state;
    const backup = name === undefined ? good[0] : good.find((one) => one.name === name);
    if (!backup) {
      const reason = name === undefined ? 'there is no backup yet' : `there is no record of ${name}`;
      throw new ColumnarError('HF_COLUMNAR_BACKUP', { reason });
    }
    const now = this.#services.clock.now();
    const drill = await this.#files.drill(backup, now, AbortSignal.any([signal, this.#closing.signal]));
    this.#record({ type: 'DRILLED', ...drill });
    return drill;
  }

  status(): JsonObject {
    const { good, fault, isStale, drill } = this.#state;
    return {
      folder: this.#files.folder,
      backups: good.map(({ name, at, size, sha256, tables }) => ({
        ...{ name, at: new Date(at).toISOString(), size, sha256 },
        rows: tables.reduce((sum, { rows }) => sum + Number(rows), 0),
      })),
      stale: isStale,
      isAhead: good[0] !== undefined && isAhead(good[0].at, this.#services.clock.now()),
      ...(fault !== undefined && { fault }),
      ...(drill && {
        drill: {
          ...drill,
          at: new Date(drill.at).toISOString(),
          reasons: [...drill.reasons],
          isOld: !isRecent(drill.at, this.#services.clock.now(), DRILL_MS),
        },
      }),
    };
  }

  /** As `status`, after the newest file was read again. */
  async inspect(signal: AbortSignal): Promise<JsonObject> {
    const [newest] = this.#state.good;
    if (!newest) return this.status();
    const limit = AbortSignal.any([signal, this.#closing.signal, AbortSignal.timeout(INSPECT_MS)]);
    let file: FileReading;
    try {
      const fault = await this.#files.fileFault(newest, limit);
      file = fault === undefined ? { state: 'ok' } : { state: 'fail', reason: fault.reason };
    } catch (error) {
      const late = `it could not be read within ${INSPECT_MS / 1_000} s`;
      file = { state: 'unknown', reason: limit.aborted ? late : `it could not be read: ${String(error)}` };
    }
    return { ...this.status(), file };
  }

  /** For the health page. */
  health(): JsonObject {
    const { good, fault, isStale, drill } = this.#state;
    const [newest] = good;
    const proof = drill && `, ${drill.proven ? 'proven by a drill' : 'which a drill did not prove'}`;
    const made = newest
      ? `the newest is ${newest.name}${proof ?? ''}; ${good.length} kept`
      : 'none was made yet';
    return {
      text: [
        `${made}${isStale ? ', and one is overdue' : ''}`,
        ...(fault === undefined ? [] : [`the newest attempt failed: ${fault}`]),
      ].join('; '),
      ...(newest && { newest: newest.name }),
      kept: good.length,
      stale: isStale,
      ...(fault !== undefined && { fault }),
      ...(drill && { proven: drill.proven }),
    };
  }

  get #state(): ColumnarBackupsContext {
    return (
      this.#services.actors.get(actor, KEY)?.context ?? {
        staleMs: this.#options.backup.staleHours * HOUR_MS,
        good: [],
        isStale: false,
      }
    );
  }

  async #check(): Promise<void> {
    const at = this.#services.clock.now();
    const files = new Set(await this.#files.list());
    const gone = this.#state.good.filter(({ name }) => !files.has(name)).map(({ name }) => name);
    if (gone.length > 0) this.#record({ type: 'GONE', names: gone });
    this.#record({ type: 'CHECKED', at });
    const newest = this.#state.good.find(({ name, at: madeAt }) => files.has(name) && !isAhead(madeAt, at));
    const due = new Cron(this.#options.backup.cron, { paused: true, timezone: 'UTC' }).previousRuns(
      1,
      new Date(at),
    )[0];
    // A run that was missed, because the machine slept or was down.
    if (this.#isDue || (newest?.at ?? 0) >= (due?.getTime() ?? 0)) return;
    this.#isDue = true;
    try {
      await this.make(this.#closing.signal);
    } finally {
      this.#isDue = false;
    }
  }

  /** Keeps the newest; files without a record are not ours to delete. */
  async #prune(good: readonly ColumnarBackup[]): Promise<void> {
    // The newest one may be in the state already.
    const byName = new Map(good.map((backup) => [backup.name, backup]));
    const newestFirst = [...byName.values()].toSorted((a, b) => b.at - a.at);
    const names = new Set(newestFirst.slice(this.#options.backup.keep).map(({ name }) => name));
    if (names.size === 0) return;
    for (const name of names) await this.#files.delete(name);
    this.#record({ type: 'GONE', names: [...names] });
  }

  #record(event: z.input<(typeof changed)['schema']>): void {
    this.#services.bus.publish(changed, event);
  }
}

/** Whether the newest file has the bytes that were recorded. A type, because only types count as JSON. */
type FileReading = { readonly state: 'ok' | 'fail' | 'unknown'; readonly reason?: string };

/** What the running instance lists of its backups. */
type Listed = JsonObject & {
  readonly backups?: readonly { readonly name: string }[];
  readonly drill?: ListedDrill;
  /** Absent when no file was read. */
  readonly file?: FileReading;
};

/** As `status` gives it: `at` is ISO 8601. */
type ListedDrill = Partial<Omit<ColumnarDrill, 'at'>> & { readonly at?: string; readonly isOld?: boolean };

function backupCheck(): CheckDefinition {
  const lookedAt = 'backups of the embedded columnar database';
  return {
    name: 'stack.columnar_backups',
    async run({ dataDir, signal }) {
      let status: Listed;
      try {
        status = await askInstance(
          { dataDir, signal },
          BACKUPS_PATH,
          { op: 'inspect' },
          'it has no columnar database',
        );
      } catch (error) {
        if (!isCoded(error)) throw error;
        return { state: 'unknown', lookedAt, found: `not checked: ${error.what}`, remedy: error.remedy };
      }
      return judgeBackups(lookedAt, status);
    },
  };
}

const MAKE = 'Run `holdfast backup columnar`; it says why none can be made.';
const CHECK_DISK = 'Make a new one and drill it; check the disk under the backups.';
const DRILL = 'Run `holdfast backup columnar --drill`; a backup is proven by restoring it.';

/** Pure; of what the running instance lists. */
export function judgeBackups(
  lookedAt: string,
  { backups = [], stale, isAhead, fault, drill, file }: Listed,
): CheckResult {
  const [newest] = backups;
  if (typeof fault === 'string')
    return { state: 'fail', lookedAt, found: `the last one failed: ${fault}`, remedy: MAKE } as const;
  if (stale === true)
    return { state: 'fail', lookedAt, found: 'there was no good one for too long', remedy: MAKE } as const;
  if (!newest) return { state: 'warn', lookedAt, found: 'none was made yet', remedy: MAKE } as const;
  if (isAhead === true) {
    const found = `${newest.name} is dated in the future, so it is not known how old it is`;
    return { state: 'fail', lookedAt, found, remedy: 'Set the clock; then make a new one.' };
  }
  if (file?.state === 'fail') {
    const found = `${newest.name}: ${file.reason}`;
    return { state: 'fail', lookedAt, found, remedy: CHECK_DISK };
  }
  if (drill === undefined)
    return {
      state: 'warn',
      lookedAt,
      found: `${newest.name} was made, and none was ever restored`,
      remedy: DRILL,
    } as const;
  if (drill.proven !== true) {
    const found = `${drill.name} is not proven: ${(drill.reasons ?? []).join('; ')}`;
    return {
      state: 'fail',
      lookedAt,
      found,
      remedy: CHECK_DISK,
    } as const;
  }
  const proof = `a drill has proven ${drill.name} at ${drill.at}`;
  if (file?.state !== 'ok') {
    const reason = file?.reason ?? 'its file was not read';
    return { state: 'unknown', lookedAt, found: `${newest.name}: ${reason}; ${proof}`, remedy: DRILL };
  }
  const found = `${newest.name} is the newest, with the bytes that were recorded; ${proof}`;
  if (drill.isOld !== false) {
    return {
      state: 'warn',
      lookedAt,
      found: `${found}, not within the last 31 days`,
      remedy: DRILL,
    } as const;
  }
  return { state: 'ok', lookedAt, found } as const;
}
