/**
 * Restore drills of the memory store: a backup is restored into a scratch instance, compared with what was recorded of
 * it and with the live store, and taken away again. `machines/restore.ts` decides; `paths/` are the ways from a backup to
 * an instance, `scratch/` where instances come from, `verify/` the comparison, `safety.ts` what keeps the live store
 * from being a target.
 *
 * Imports core, bus and its machine; no other plugin.
 */
import { defineRoute } from '../../bus/index.ts';
import { defineActor } from '../../core/actors/index.ts';
import { ClusterToken } from '../../core/adapters/cluster.ts';
import {
  MemoryStoresToken,
  ScratchStoresToken,
  SnapshotRecordsToken,
} from '../../core/adapters/memory-store.ts';
import { actorRef, newCorrelation } from '../../core/ids.ts';
import type { Json } from '../../core/json.ts';
import { definePlugin, type PluginContext } from '../../core/plugin/index.ts';
import type { RestoreContext } from '../../machines/restore/shapes.ts';
import { restore as machine } from '../../machines/restore.ts';
import { drillCommand } from './commands/drill.ts';
import { statusCommand } from './commands/status.ts';
import { registerControl } from './control.ts';
import { describeDrillRecord } from './describe.ts';
import { Drills, registerEffects } from './drills.ts';
import { registerMetrics } from './metrics.ts';
import { type RestoreOptions, restoreOptions } from './options.ts';
import { drillAsked, drillCancelled, drillDue, drillId } from './topics.ts';

const DRILL_ACTOR = 'memory.drill';
const KEY = 'store';

/** @example restore({ schedule: { a: '0 5 * * 0' }, overdueMs: 8 * 24 * 3_600_000 }) */
export const restore = definePlugin({
  name: 'restore',
  options: restoreOptions,
  env: { HOLDFAST_MEMORY_SCRATCH_URL: 'scratchUrl' },
  requires: [MemoryStoresToken],
  wants: [ScratchStoresToken, SnapshotRecordsToken, ClusterToken],
  onFailure: 'continue',
  register(context, options) {
    const { overdueMs, retryMs } = options;
    const settings = { retryMs, ...(overdueMs !== undefined && { overdueMs }) };
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
        version: 1,
        input: () => settings as Json,
        describe: describeDrillRecord,
      }),
    );
    context.route(
      defineRoute(drillAsked, DRILL_ACTOR, ({ payload }) => [
        { key: KEY, event: { type: 'ASKED', ...payload } },
      ]),
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
    });
  },
});

/** At its times a path is asked for like by anybody else. */
function registerSchedules(context: PluginContext, schedule: RestoreOptions['schedule']): void {
  for (const path of ['a', 'b'] as const) {
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
