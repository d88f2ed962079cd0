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
import type {
  CleanParams,
  Drill,
  DrillEvent,
  DrillPath,
  StepParams,
} from '../../machines/restore/drill-shapes.ts';
import { DRILL_PATHS, drillEnded } from './actor.ts';
import { RestoreError } from './errors.ts';
import type { RestoreOptions } from './options.ts';
import { openPaths, type Paths } from './paths/open-paths.ts';
import type { RestorePath, StepContext } from './steps.ts';
import { ProgressBoard } from './steps.ts';
import { compare } from './verify/compare.ts';
import { expectationOf } from './verify/expectation.ts';

/** Includes making a first snapshot, and recording those of others. */
const CHOOSE_MS = 20 * 60_000;
/** Making an instance and copying a volume, beside the wait until it is ready. */
const MAKING_MS = 10 * 60_000;

/** Events that the effects of the machine answer with. */
type DrillOutcome = Exclude<DrillEvent, { type: 'REQUESTED' | 'STARTED' }>;
type RunPhase = JobRun extends infer R ? (R extends JobRun ? Omit<R, 'job' | 'at'> : never) : never;

/** Carries out the effects of the drill's machine. */
export class Drills {
  readonly #services: Services;
  readonly #options: RestoreOptions;
  readonly progress: ProgressBoard;
  readonly #paths: Paths;
  /** The step that runs, and how to abort it. */
  #running: { readonly stop: AbortController; readonly ended: Promise<unknown> } | undefined;

  constructor(services: Services, options: RestoreOptions) {
    this.#services = services;
    this.#options = options;
    this.progress = new ProgressBoard(services.clock);
    this.#paths = openPaths(services, options);
  }

  /** The paths that are configured. */
  get paths(): readonly DrillPath[] {
    return DRILL_PATHS.filter((path) => this.#paths.has(path));
  }

  async choose({ drill }: StepParams, effect: EffectContext): Promise<DrillOutcome> {
    this.#publish(drill, effect, { phase: 'started' });
    return this.#step(drill, effect, async (context) => {
      const source = await this.#pathOf(drill.path).choose(drill, context);
      return { type: 'CHOSEN', source };
    });
  }

  async prepare({ drill, source }: StepParams, effect: EffectContext): Promise<DrillOutcome> {
    return this.#step(drill, effect, async (context) => {
      const prepared = await this.#pathOf(drill.path).prepare(drill, required(source), context);
      return { type: 'PREPARED', ...prepared };
    });
  }

  async recover({ drill, source, url }: StepParams, effect: EffectContext): Promise<DrillOutcome> {
    return this.#step(drill, effect, async (context) => {
      const reached = await this.#pathOf(drill.path).recover(drill, required(source), url, context);
      return { type: 'RECOVERED', url: reached };
    });
  }

  async verify({ drill, source, url, copied }: StepParams, effect: EffectContext): Promise<DrillOutcome> {
    return this.#step(drill, effect, async ({ signal, progress }) => {
      const stores = this.#stores();
      const records: SnapshotRecords | undefined = this.#services.find(SnapshotRecordsToken);
      const { kind, name } = required(source);
      const record = records?.of(name);
      const { vault } = this.#services;
      const report = await compare({
        live: stores.live,
        restored: stores.at(required(url)),
        collection: stores.collection,
        expectation: expectationOf(records, record, copied),
        record,
        hasFile: kind !== 'volume' || record !== undefined,
        digest: records && (() => records.digest(name, signal)),
        seeds: record?.seeds.map(({ id }) => id) ?? records?.seeds ?? [],
        fingerprint: ({ id, digest }) => vault.fingerprint([id, digest]),
        listed: this.#options.listed,
        progress,
        signal,
      });
      const { ok } = report;
      const text = report.verdict.slice(0, 1_000);
      this.#publish(drill, effect, {
        phase: 'ended',
        ...(ok ? { outcome: 'succeeded' } : { outcome: 'failed', cause: 'exit' }),
        text,
      });
      return { type: 'VERIFIED', report };
    });
  }

  /** Aborts a step that still runs, because what it makes would be left behind. */
  async clean({ ids }: CleanParams, { signal }: EffectContext): Promise<DrillOutcome> {
    this.#running?.stop.abort(new RestoreError('HF_RESTORE_FAILED', { reason: 'the drill was cancelled' }));
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

  /** Ids of scratch instances that earlier runs left, as far as they can be found. */
  async leftovers(signal: AbortSignal): Promise<readonly string[]> {
    const found = new Set<string>();
    for (const path of this.#paths.all()) {
      try {
        for (const id of await path.leftovers(signal)) found.add(id);
      } catch (error) {
        // A store or cluster that cannot be reached must not keep the plugin from starting.
        const reason = isCoded(error) ? error.what : String(error);
        this.#services.logger.warn({ reason }, 'restore.sweep_skipped');
      }
    }
    return [...found];
  }

  /** A drill is one job run: it begins with the choice, and ends with the verdict or the first step that fails. */
  #publish({ path }: Drill, { correlation, cause }: EffectContext, run: RunPhase): void {
    const { bus, clock } = this.#services;
    const at = clock.now();
    const meta = { correlation, cause };
    bus.publish(jobRun, { job: 'memory-restore-drill', at, ...run }, meta);
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
    work: (context: StepContext) => Promise<DrillOutcome>,
  ): Promise<DrillOutcome> {
    const stop = new AbortController();
    const signal = AbortSignal.any([effect.signal, stop.signal]);
    const done = work({ signal, progress: this.progress });
    this.#running = { stop, ended: done.catch(() => {}) };
    try {
      return await done;
    } catch (error) {
      this.#publish(drill, effect, {
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

/** A step that a crash interrupted is not repeated: the machine cleans up. */
export function registerEffects(
  context: PluginContext<{ readonly drills: Drills }>,
  options: RestoreOptions,
): void {
  const { readyMs, recoverMs, verifyMs, cleanMs } = options;
  const onStores = { onRecovery: 'fail', adapter: 'memory.stores' } as const;
  const onScratch = { onRecovery: 'fail', adapter: 'memory.scratch' } as const;
  context.effect<StepParams>(
    'restore.choose',
    (params, effect, { drills }) => drills.choose(params, effect),
    {
      ...onStores,
      deadlineMs: CHOOSE_MS,
    },
  );
  context.effect<StepParams>(
    'restore.prepare',
    (params, effect, { drills }) => drills.prepare(params, effect),
    {
      ...onScratch,
      deadlineMs: readyMs + MAKING_MS,
    },
  );
  context.effect<StepParams>(
    'restore.recover',
    (params, effect, { drills }) => drills.recover(params, effect),
    {
      ...onStores,
      deadlineMs: recoverMs,
    },
  );
  context.effect<StepParams>(
    'restore.verify',
    (params, effect, { drills }) => drills.verify(params, effect),
    {
      ...onStores,
      deadlineMs: verifyMs,
    },
  );
  context.effect<CleanParams>('restore.clean', (params, effect, { drills }) => drills.clean(params, effect), {
    onRecovery: 'retry',
    adapter: 'memory.scratch',
    deadlineMs: cleanMs,
  });
}

/** The result of an earlier step. */
function required<T>(value: T | undefined): T {
  if (value === undefined)
    throw new RestoreError('HF_RESTORE_FAILED', { reason: 'a step came out of order' });
  return value;
}

function notRemoved(id: string, error: unknown): never {
  if (isCoded(error, 'HF_RESTORE_CLEAN')) throw error;
  const reason = isCoded(error) ? error.what.replace(/\.$/, '') : String(error);
  throw new RestoreError('HF_RESTORE_CLEAN', { id, reason }, { cause: error });
}
