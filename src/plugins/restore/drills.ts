import { type JobRun, jobRun } from '../../core/contracts/jobs.ts';
import {
  type MemoryStores,
  MemoryStoresToken,
  type SnapshotRecords,
  SnapshotRecordsToken,
} from '../../core/contracts/memory-store.ts';
import { runFailure } from '../../core/host/job-run.ts';
import type { PluginContext, Services } from '../../core/host/plugin/definition.ts';
import type { EffectContext } from '../../core/kernel/actors/effect.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import type { LogEvent } from '../../core/kernel/log/record.ts';
import type { CleanParams, Drill, StepParams } from '../../machines/restore/drill-shapes.ts';
import { drillEnded } from './actor.ts';
import { RestoreError } from './errors.ts';
import type { RestoreOptions } from './options.ts';
import { openPaths, type Paths } from './paths/open-paths.ts';
import type { RestorePath, StepContext } from './steps.ts';
import { ProgressBoard } from './steps.ts';
import { compare } from './verify/compare.ts';

/** Where the first snapshot has to be made, that too. */
const CHOOSE_MS = 5 * 60_000;
/** What comes on top of the readiness of an instance: its making, and a copy of a volume. */
const MAKING_MS = 10 * 60_000;

type Told = JobRun extends infer R ? (R extends JobRun ? Omit<R, 'job' | 'at'> : never) : never;

/** Carries out what the restore machine asks for. */
export class Drills {
  readonly #services: Services;
  readonly #options: RestoreOptions;
  readonly progress: ProgressBoard;
  readonly #paths: Paths;
  /** The step that runs, and how it is broken off. */
  #running: { readonly stop: AbortController; readonly ended: Promise<unknown> } | undefined;

  constructor(services: Services, options: RestoreOptions) {
    this.#services = services;
    this.#options = options;
    this.progress = new ProgressBoard(services.clock);
    this.#paths = openPaths(services, options);
  }

  async choose({ drill }: StepParams, effect: EffectContext): Promise<LogEvent> {
    this.#tell(drill, effect, { phase: 'started' });
    return this.#step(drill, effect, async (context) => {
      const source = await this.#pathOf(drill.path).choose(drill, context);
      return { type: 'CHOSEN', source } as unknown as LogEvent;
    });
  }

  async prepare({ drill, source }: StepParams, effect: EffectContext): Promise<LogEvent> {
    return this.#step(drill, effect, async (context) => {
      const prepared = await this.#pathOf(drill.path).prepare(drill, known(source), context);
      return { type: 'PREPARED', ...prepared } as unknown as LogEvent;
    });
  }

  async recover({ drill, source, url }: StepParams, effect: EffectContext): Promise<LogEvent> {
    return this.#step(drill, effect, async (context) => {
      const reached = await this.#pathOf(drill.path).recover(drill, known(source), url, context);
      return { type: 'RECOVERED', url: reached };
    });
  }

  async verify({ drill, source, url, copied }: StepParams, effect: EffectContext): Promise<LogEvent> {
    return this.#step(drill, effect, async ({ signal, progress }) => {
      const stores = this.#stores();
      const records: SnapshotRecords | undefined = this.#services.find(SnapshotRecordsToken);
      const report = await compare({
        live: stores.live,
        restored: stores.at(known(url)),
        collection: stores.collection,
        record: records?.of(known(source).name),
        copied,
        seeds: records?.seeds ?? [],
        fingerprint: (content) => this.#services.vault.fingerprint(content),
        sample: this.#options.sample,
        listed: this.#options.listed,
        progress,
        signal,
      });
      const { ok } = report;
      const text = report.verdict.slice(0, 1_000);
      this.#tell(drill, effect, {
        phase: 'ended',
        ...(ok ? { outcome: 'succeeded' } : { outcome: 'failed', cause: 'exit' }),
        text,
      });
      return { type: 'VERIFIED', report } as unknown as LogEvent;
    });
  }

  /** Also breaks off the step that may still run, for what it makes would be left behind. */
  async clean({ ids }: CleanParams, { signal }: EffectContext): Promise<LogEvent> {
    this.#running?.stop.abort(new RestoreError('HF_RESTORE_FAILED', { reason: 'the drill was given up' }));
    await this.#running?.ended;
    this.progress.begin('removing what the drill made');
    const paths = this.#paths.all();
    try {
      for (const id of ids) {
        for (const path of paths) await path.remove(id, signal).catch((error) => notRemoved(id, error));
      }
    } finally {
      this.progress.end();
    }
    return { type: 'CLEANED', at: this.#services.clock.now(), removed: [...ids] };
  }

  /** What earlier runs left, as far as it can be told. */
  async leftovers(signal: AbortSignal): Promise<readonly string[]> {
    const found = new Set<string>();
    for (const path of this.#paths.all()) {
      try {
        for (const id of await path.leftovers(signal)) found.add(id);
      } catch (error) {
        // A store or cluster that is away at a start is no reason not to start.
        const reason = isCoded(error) ? error.what : String(error);
        this.#services.logger.warn({ reason }, 'restore.sweep_skipped');
      }
    }
    return [...found];
  }

  /** A drill is one run: it begins with its choice, and ends with its verdict or the first step that fails. */
  #tell({ path }: Drill, { correlation, cause }: EffectContext, run: Told): void {
    const { bus, clock } = this.#services;
    const at = clock.now();
    const meta = { correlation, cause };
    bus.publish(jobRun, { job: 'memory-restore-drill', at, ...run } as JobRun, meta);
    if (run.phase === 'ended') bus.publish(drillEnded, { path, at }, meta);
  }

  #stores(): MemoryStores {
    return this.#services.get(MemoryStoresToken);
  }

  #pathOf(path: 'a' | 'b'): RestorePath {
    return path === 'a' ? this.#paths.a() : this.#paths.b();
  }

  async #step(
    drill: Drill,
    effect: EffectContext,
    work: (context: StepContext) => Promise<LogEvent>,
  ): Promise<LogEvent> {
    const stop = new AbortController();
    const signal = AbortSignal.any([effect.signal, stop.signal]);
    const done = work({ signal, progress: this.progress });
    this.#running = { stop, ended: done.catch(() => {}) };
    try {
      return await done;
    } catch (error) {
      this.#tell(drill, effect, {
        phase: 'ended',
        outcome: 'failed',
        ...runFailure(signal.aborted ? signal.reason : error),
      });
      if (isCoded(error) && !signal.aborted) throw error;
      if (signal.aborted && isCoded(signal.reason)) throw signal.reason;
      const reason = error instanceof Error ? error.message : String(error);
      throw new RestoreError('HF_RESTORE_FAILED', { reason }, { cause: error });
    } finally {
      this.#running = undefined;
      this.progress.end();
    }
  }
}

/** Registers the effects of the machine. A step that a crash interrupted is not repeated: the machine cleans up. */
export function registerEffects(context: PluginContext, options: RestoreOptions, drills: () => Drills): void {
  const { readyMs, recoverMs, verifyMs, cleanMs } = options;
  const asks = { onRecovery: 'fail', adapter: 'memory.stores' } as const;
  const makes = { onRecovery: 'fail', adapter: 'memory.scratch' } as const;
  context.effect<StepParams>('restore.choose', (params, effect) => drills().choose(params, effect), {
    ...asks,
    deadlineMs: CHOOSE_MS,
  });
  context.effect<StepParams>('restore.prepare', (params, effect) => drills().prepare(params, effect), {
    ...makes,
    deadlineMs: readyMs + MAKING_MS,
  });
  context.effect<StepParams>('restore.recover', (params, effect) => drills().recover(params, effect), {
    ...asks,
    deadlineMs: recoverMs,
  });
  context.effect<StepParams>('restore.verify', (params, effect) => drills().verify(params, effect), {
    ...asks,
    deadlineMs: verifyMs,
  });
  context.effect<CleanParams>('restore.clean', (params, effect) => drills().clean(params, effect), {
    onRecovery: 'retry',
    adapter: 'memory.scratch',
    deadlineMs: cleanMs,
  });
}

function known<T>(value: T | undefined): T {
  if (value === undefined)
    throw new RestoreError('HF_RESTORE_FAILED', { reason: 'a step came out of order' });
  return value;
}

function notRemoved(id: string, error: unknown): never {
  if (isCoded(error, 'HF_RESTORE_CLEAN')) throw error;
  const reason = isCoded(error) ? error.what.replace(/\.$/, '') : (error as Error).message;
  throw new RestoreError('HF_RESTORE_CLEAN', { id, reason }, { cause: error });
}
