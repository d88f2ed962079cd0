import { setTimeout as delay } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { z } from 'zod';
import { type AlertRaised, alertRaised } from '../../../src/core/contracts/alerts.ts';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { definePlugin, type PluginEntry, type Services } from '../../../src/core/host/plugin/definition.ts';
import { createRuntime, type Runtime } from '../../../src/core/host/runtime/runtime.ts';
import type { LogRecord } from '../../../src/core/kernel/log/record.ts';
import { SqliteReader } from '../../../src/core/kernel/log/sqlite-reader.ts';
import { verifyLog } from '../../../src/core/kernel/replay/verify-log.ts';
import type { LegContext } from '../../../src/machines/reconciler/leg-shapes.ts';
import { reconciler } from '../../../src/plugins/reconciler/index.ts';
import { tempDir } from '../../support/temp.ts';
import { PATIENCE_MS } from '../../support/until.ts';
import { FieldRouter, fieldRouterPlugin } from './field-router.ts';

type Options = NonNullable<Parameters<typeof reconciler>[0]>;

/** Patience that fits a test; the proportions are those of the defaults. */
export const quick = {
  settleMs: 10,
  secondLookMs: 80,
  retryMs: 5,
  waitMs: 60,
  backOffMs: 20,
  backOffLimitMs: 60,
  linkSettleMs: 100,
  resyncMs: 60_000,
  batchMs: 5,
} as const satisfies Options;

export interface Rig {
  readonly runtime: Runtime;
  readonly dir: string;
  readonly alerts: AlertRaised[];
  /** State and context of a leg's actor. */
  leg(intf: string): { state: string; context: LegContext };
  health(): any;
  records(intf?: string): Promise<LogRecord[]>;
  /** The log is run through the machines again. @returns the first divergence */
  divergence(): unknown;
  /** Every leg rests: whole, or told to a person. */
  quiet(): Promise<void>;
}

/** A started runtime with the reconciler and some router. */
export async function rig(
  t: ExecutionContext<unknown>,
  options: Options = {},
  router: PluginEntry | FieldRouter = new FieldRouter(),
  dir: string = tempDir(t),
): Promise<Rig> {
  const routerPlugin = router instanceof FieldRouter ? fieldRouterPlugin(router) : router;
  let services: Services | undefined;
  const probe = definePlugin({
    name: 'probe',
    options: z.strictObject({}),
    start(started) {
      services = started;
    },
    register() {},
  });
  const entries = [routerPlugin, reconciler({ ...quick, ...options }), probe()];
  const { plugins } = resolveConfig({ plugins: entries }, { env: {} });
  const runtime = createRuntime({ plugins, dataDir: dir, logger: createLogger({ level: 'silent' }) });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  const { actors, bus, log } = runtime.services;
  const alerts: AlertRaised[] = [];
  bus.subscribe(alertRaised, 'test', ({ payload }) => alerts.push(payload));
  const legs = () => actors.states('reconciler.leg');
  return {
    runtime,
    dir,
    alerts,
    leg(intf) {
      const state = actors.snapshot(`reconciler.leg/${intf}`);
      if (!state) throw new Error(`there is no actor for ${intf}`);
      return { state: String(state.value), context: state.context as unknown as LegContext };
    },
    health: () => services?.health().reconciler,
    async records(intf) {
      await log.whenDurable(log.lastSeq());
      const ref = intf === undefined ? {} : { actor: `reconciler.leg/${intf}` };
      return Array.fromAsync(log.read(ref));
    },
    divergence() {
      const reader = new SqliteReader(dir);
      const definitions = new Map(runtime.registrations.actors.map((actor) => [actor.type, actor]));
      try {
        return verifyLog(reader, definitions).divergence;
      } finally {
        reader.close();
      }
    },
    quiet: () =>
      until('every leg rests', () =>
        legs().every(({ value }) =>
          ['whole', 'gaveUp', 'absent', 'released', 'observing', 'notApplied', 'refusedByName'].includes(
            String(value),
          ),
        ),
      ),
  };
}

/** Waits for something to become true, and says what did not. */
export async function until(what: string, holds: () => unknown, withinMs = PATIENCE_MS): Promise<void> {
  const end = performance.now() + withinMs;
  while (!holds()) {
    if (performance.now() > end) throw new Error(`it did not come about within ${withinMs} ms: ${what}`);
    await delay(2);
  }
}
