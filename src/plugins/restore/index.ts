/**
 * Restore drills of the memory store: a backup is restored into a scratch instance, compared with what was recorded of it
 * and with the live store, and removed again. `machines/restore/drill.ts` decides, and `machines/restore/overdue.ts` when
 * a drill is overdue. `paths/` are the ways from a backup to an instance, `scratch/` the sources of instances, `verify/`
 * the comparison; `safety.ts` keeps the live store from being a target.
 */
import { KubernetesToken } from '../../core/contracts/kubernetes.ts';
import {
  MemoryStoresToken,
  ScratchStoresToken,
  SnapshotRecordsToken,
} from '../../core/contracts/memory-store.ts';
import { definePlugin, type Services } from '../../core/host/plugin/definition.ts';
import { newCorrelation } from '../../core/kernel/clock.ts';
import {
  DRILL_KEY,
  DRILL_PATHS,
  drillActor,
  drillCancelled,
  drillDue,
  drillEnded,
  drillId,
  drillRequested,
  overdueActor,
  registerMetrics,
} from './actor.ts';
import { drillCommand, statusCommand } from './commands.ts';
import { registerControl } from './control.ts';
import { drillsCheck, drillsFact, drillsHealth } from './doctor.ts';
import { Drills, registerEffects } from './drills.ts';
import { RestoreError } from './errors.ts';
import { type RestoreOptions, restoreOptions } from './options.ts';

/**
 * The plugin `restore`: restore drills into scratch instances.
 *
 * @example restore({ schedule: { a: '0 5 * * 0' }, overdueMs: 8 * 24 * 3_600_000 })
 * @public
 */
export const restore = definePlugin({
  name: 'restore',
  about: {
    area: 'Memory store',
    what: 'restore drills into scratch instances',
    docs: 'restore-drills.md',
  },
  options: restoreOptions,
  env: { HOLDFAST_MEMORY_SCRATCH_URL: 'scratchUrl' },
  variables: {
    HOLDFAST_MEMORY_SCRATCH_URL: 'A scratch instance of the memory store for restore drills.',
  },
  errors: RestoreError,
  requires: [MemoryStoresToken],
  wants: [ScratchStoresToken, SnapshotRecordsToken, KubernetesToken],
  onFailure: 'continue',
  // Drills prove what the backups' records say, so they are where those are.
  singleton: 'memory',
  async start(services, options, signal) {
    const { actors, metrics } = services;
    const { overdueMs, retryMs } = options;
    const drills = new Drills(services, options);
    const state = () => actors.get(drillActor, DRILL_KEY);
    registerMetrics(metrics, () => state()?.context);
    startSchedules(services, options.schedule);
    const leftovers = await drills.leftovers(signal);
    const meta = { correlation: newCorrelation() };
    actors.send(drillActor, DRILL_KEY, { type: 'STARTED', leftovers, retryMs }, meta);
    watchOverdue(services, expectedPaths(options), overdueMs);
    return { services, drills, state };
  },
  register(context, options) {
    context.actor({ ...drillActor, input: () => ({ retryMs: options.retryMs }) });
    context.actor(overdueActor);
    context.route(drillRequested, drillActor, ({ payload }) => [
      { key: DRILL_KEY, event: { type: 'REQUESTED', ...payload } },
    ]);
    context.route(drillCancelled, drillActor, ({ payload }) => [
      { key: DRILL_KEY, event: { type: 'CANCEL', ...payload } },
    ]);
    context.route(drillEnded, overdueActor, ({ payload: { path, at } }) =>
      expectedPaths(options).includes(path) ? [{ key: path, event: { type: 'DRILLED', at } }] : [],
    );
    for (const path of DRILL_PATHS) {
      const cron = options.schedule[path];
      if (cron !== undefined) context.schedule(cron, drillDue[path]);
    }
    registerEffects(context, options);
    registerControl(context);
    context.command(drillCommand);
    context.command(statusCommand);
    context.check(drillsCheck);
    context.health('restore', ({ state, drills, services: { clock } }) => {
      const { value = 'resting', context: drill } = state() ?? {};
      const last = drill?.results.at(-1);
      const facts = drillsFact(drills.paths, drill?.results ?? [], clock.now());
      const isResting = value === 'resting' || (typeof value === 'object' && 'resting' in value);
      const judged = drillsHealth(facts, Boolean(drill?.cleanFailures) || last?.outcome === 'failed');
      return {
        text: `${isResting ? '' : 'a drill is under way; '}${drillsText(judged)}`,
        ...judged,
        phase: value,
        drills: facts,
        ...(last && { last: { id: last.id, path: last.path, outcome: last.outcome } }),
        ...(drill?.cleanReason !== undefined && { cleanUp: drill.cleanReason }),
      };
    });
  },
});

function drillsText({ ok, unknown }: ReturnType<typeof drillsHealth>): string {
  if (unknown !== undefined) return unknown;
  return ok
    ? 'each path was proven by its newest drill'
    : 'a drill or its clean-up failed: see `holdfast restore status`';
}

/** The paths whose drills are expected: those that have a schedule, or path a when none has. */
function expectedPaths({ overdueMs, schedule }: RestoreOptions): readonly string[] {
  if (overdueMs === undefined) return [];
  const scheduled = DRILL_PATHS.filter((path) => schedule[path] !== undefined);
  return scheduled.length > 0 ? scheduled : ['a'];
}

function watchOverdue(
  { actors, clock }: Services,
  expected: readonly string[],
  overdueMs: number | undefined,
): void {
  for (const path of DRILL_PATHS) {
    const at = clock.now();
    if (expected.includes(path) && overdueMs !== undefined) {
      actors.send(overdueActor, path, { type: 'WATCH', at, overdueMs });
    } else if (actors.get(overdueActor, path)) {
      actors.send(overdueActor, path, { type: 'WATCH', at });
    }
  }
}

/** A scheduled drill is requested in the same way as any other. */
function startSchedules({ bus, clock }: Services, schedule: RestoreOptions['schedule']): void {
  for (const path of DRILL_PATHS) {
    if (schedule[path] === undefined) continue;
    bus.subscribe(drillDue[path], 'restore', ({ correlation }) => {
      const at = clock.now();
      bus.publish(drillRequested, { id: drillId(at, path), path, by: 'schedule', at }, { correlation });
    });
  }
}
