/**
 * Restore drills of the memory store: a backup is restored into a scratch instance, compared with what was recorded of
 * it and with the live store, and taken away again. `machines/restore.ts` decides, and `machines/drill-overdue.ts` when one
 * of a path is overdue; `paths/` are the ways from a backup to
 * an instance, `scratch/` where instances come from, `verify/` the comparison, `safety.ts` what keeps the live store
 * from being a target.
 *
 * Imports core, bus and its machine; no other plugin.
 */

import { ClusterToken } from '../../core/contracts/cluster.ts';
import {
  MemoryStoresToken,
  ScratchStoresToken,
  SnapshotRecordsToken,
} from '../../core/contracts/memory-store.ts';
import { definePlugin, type PluginContext, type Services } from '../../core/host/plugin/definition.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { defineRoute } from '../../core/kernel/actors/route.ts';
import { actorRef, newCorrelation } from '../../core/kernel/ids.ts';
import type { Json } from '../../core/kernel/json.ts';
import { restore as machine } from '../../machines/restore/drill.ts';
import type { RestoreContext } from '../../machines/restore/drill-shapes.ts';
import { drillOverdue } from '../../machines/restore/overdue.ts';
import {
  describeDrillRecord,
  drillAsked,
  drillCancelled,
  drillDue,
  drillEnded,
  drillId,
  registerMetrics,
} from './actor.ts';
import { drillCommand, statusCommand } from './commands.ts';
import { registerControl } from './control.ts';
import { Drills, registerEffects } from './drills.ts';
import { RestoreError } from './errors.ts';
import { type RestoreOptions, restoreOptions } from './options.ts';

const DRILL_ACTOR = 'restore.drill';
const KEY = 'store';
const OVERDUE_ACTOR = 'restore.overdue';
const PATHS = ['a', 'b'] as const;

/** @example restore({ schedule: { a: '0 5 * * 0' }, overdueMs: 8 * 24 * 3_600_000 }) */
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
  wants: [ScratchStoresToken, SnapshotRecordsToken, ClusterToken],
  onFailure: 'continue',
  register(context, options) {
    const { overdueMs, retryMs } = options;
    const settings = { retryMs };
    let drills: Drills | undefined;
    const opened = () => {
      drills ??= new Drills(context.services, options);
      return drills;
    };
    const state = () => context.services.actors.snapshot(actorRef(DRILL_ACTOR, KEY));

    context.actor(
      defineActor({
        type: DRILL_ACTOR,
        machine,
        version: 2,
        // Version 1 waited itself for the next drill, of whatever path.
        migrate: ({ value, context: { overdueMs: _, ...context } }, fromVersion) =>
          fromVersion === 1 ? { value, context } : undefined,
        input: () => settings,
        describe: describeDrillRecord,
      }),
    );
    context.route(
      defineRoute(drillAsked, DRILL_ACTOR, ({ payload }) => [
        { key: KEY, event: { type: 'ASKED', ...payload } },
      ]),
    );
    context.actor(
      defineActor({
        type: OVERDUE_ACTOR,
        machine: drillOverdue,
        version: 1,
        input: (path) => ({ path }),
      }),
    );
    context.route(
      defineRoute(drillEnded, OVERDUE_ACTOR, ({ payload: { path, at } }) =>
        watched(options).includes(path) ? [{ key: path, event: { type: 'DRILLED', at } }] : [],
      ),
    );
    context.route(
      defineRoute(drillCancelled, DRILL_ACTOR, ({ payload }) => [
        { key: KEY, event: { type: 'CANCEL', ...payload } },
      ]),
    );
    registerSchedules(context, options.schedule);
    registerEffects(context, options, opened);
    registerControl(context, { state, progress: () => opened().progress.now });
    registerMetrics(context, () => state()?.context as RestoreContext | undefined);
    context.command(drillCommand);
    context.command(statusCommand);
    context.health('restore', () => {
      const { cleanFailures, cleanReason, results } = (state()?.context ?? {}) as Partial<RestoreContext>;
      const last = results?.at(-1);
      return {
        ok: !cleanFailures && last?.outcome !== 'failed',
        phase: state()?.value ?? 'resting',
        ...(last && { last: { id: last.id, path: last.path, outcome: last.outcome } }),
        ...(cleanReason !== undefined && { cleanUp: cleanReason }),
      } as Json;
    });
    context.onStart(async (signal) => {
      const leftovers = await opened().leftovers(signal);
      const event = { type: 'STARTED', leftovers: [...leftovers], ...settings };
      context.services.actors.send(actorRef(DRILL_ACTOR, KEY), event, { correlation: newCorrelation() });
      watch(context.services, watched(options), overdueMs);
    });
  },
});

/** The paths whose drills are waited for: those that have a schedule, and path a where none has. */
function watched({ overdueMs, schedule }: RestoreOptions): readonly string[] {
  if (overdueMs === undefined) return [];
  const scheduled = PATHS.filter((path) => schedule[path] !== undefined);
  return scheduled.length > 0 ? scheduled : ['a'];
}

function watch({ actors, clock }: Services, paths: readonly string[], overdueMs: number | undefined): void {
  for (const path of PATHS) {
    const ref = actorRef(OVERDUE_ACTOR, path);
    const at = clock.now();
    if (paths.includes(path)) actors.send(ref, { type: 'WATCH', at, overdueMs });
    else if (actors.snapshot(ref)) actors.send(ref, { type: 'WATCH', at });
  }
}

/** At its times a path is asked for like by anybody else. */
function registerSchedules(context: PluginContext, schedule: RestoreOptions['schedule']): void {
  for (const path of PATHS) {
    const cron = schedule[path];
    if (cron === undefined) continue;
    context.schedule(cron, drillDue[path]);
    context.onStart(() => {
      const { bus, clock } = context.services;
      bus.subscribe(drillDue[path], 'restore', ({ correlation }) => {
        const at = clock.now();
        bus.publish(drillAsked, { id: drillId(at, path), path, by: 'schedule', at }, { correlation });
      });
    });
  }
}
