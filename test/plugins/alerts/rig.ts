import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { alertRaised } from '../../../src/core/contracts/alerts.ts';
import {
  type ColumnarDatabase,
  ColumnarDatabaseToken,
} from '../../../src/core/contracts/columnar-database.ts';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { askInstance } from '../../../src/core/host/operations/control-client.ts';
import { definePlugin, type PluginEntry } from '../../../src/core/host/plugin/definition.ts';
import { createRuntime, type Runtime } from '../../../src/core/host/runtime/runtime.ts';
import type { LogRecord } from '../../../src/core/kernel/log/record.ts';
import { SqliteReader } from '../../../src/core/kernel/log/sqlite-reader.ts';
import { verifyLog } from '../../../src/core/kernel/replay/verify-log.ts';
import { alerts } from '../../../src/plugins/alerts/index.ts';
import type { AlertsView } from '../../../src/plugins/alerts/view.ts';
import type { Scope } from '../../support/scope.ts';
import { tempDir } from '../../support/temp.ts';
import { PATIENCE_MS } from '../../support/until.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

export type Options = NonNullable<Parameters<typeof alerts>[0]>;

export interface Rig {
  readonly runtime: Runtime;
  readonly clock: VirtualClock;
  readonly dir: string;
  /** Every log line. */
  readonly lines: string[];
  raise(name: string, state?: 'firing' | 'resolved', labels?: Record<string, string>): void;
  ask<T extends object = AlertsView>(verb: string, body?: object): Promise<T>;
  view(): Promise<AlertsView>;
  /** Waits, with what is due now being run, until it holds. */
  until(what: string, holds: () => unknown): Promise<void>;
  /** Moves time in steps, so that what is decided becomes durable between them. */
  pass(seconds: number, step?: number): Promise<void>;
  settled(): Promise<void>;
  records(): Promise<LogRecord[]>;
  /** The first divergence of a replay; undefined is none. */
  divergence(): unknown;
}

/** A started runtime with the alerts plugin over a database, if one is given. */
export async function rig(
  t: Scope,
  options: Options,
  {
    dir = tempDir(t as never),
    clock = new VirtualClock(Date.now()),
    database,
    plugins: others = [],
  }: {
    dir?: string;
    clock?: VirtualClock;
    database?: ColumnarDatabase | undefined;
    plugins?: readonly PluginEntry[];
  } = {},
): Promise<Rig> {
  const columnar = definePlugin({
    name: 'columnar',
    options: z.strictObject({}),
    provides: [ColumnarDatabaseToken],
    register: (context) => context.provide(ColumnarDatabaseToken, () => database as ColumnarDatabase),
  });
  const entries = [...(database ? [columnar()] : []), ...others, alerts(options)];
  const { plugins } = resolveConfig({ plugins: entries }, { env: {} });
  const lines: string[] = [];
  const logger = createLogger({
    level: 'debug',
    destination: { write: (line: string) => void lines.push(line) },
  } as never);
  const runtime = createRuntime({ plugins, dataDir: dir, clock, logger, lingerMs: 0 });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  const { actors, bus, log } = runtime.services;
  // The linger of batched records is of the virtual clock too.
  const durable = async () => {
    const written = log.whenDurable(log.lastSeq());
    await clock.advance(0);
    await written;
  };
  const isUnderWay = () => actors.states().some(({ effects }) => Object.keys(effects).length > 0);
  const settled = async () => {
    // An effect starts when its record is durable, and its outcome is a record again: three quiet rounds are the end.
    // What is still under way then waits for a receiver that does not answer.
    for (let quiet = 0, rounds = 0; quiet < 3 && rounds < 200; rounds += 1) {
      const before = log.lastSeq();
      await durable();
      await clock.advance(0);
      await delay(1);
      quiet = log.lastSeq() === before && !isUnderWay() ? quiet + 1 : 0;
    }
  };
  /** Goes from timer to timer: what one of them causes has deadlines on this clock, and has to end before it goes on. */
  const advance = async (ms: number) => {
    const end = clock.monotonic() + ms;
    for (;;) {
      const left = end - clock.monotonic();
      const before = log.lastSeq();
      await clock.advance(Math.min(left, clock.untilNext ?? left));
      if (log.lastSeq() !== before || isUnderWay()) await settled();
      if (clock.monotonic() >= end && (clock.untilNext ?? 1) > 0) return;
    }
  };
  const ask = <T extends object = AlertsView>(verb: string, body: object = {}) =>
    askInstance<T>(
      { dataDir: dir, signal: AbortSignal.timeout(60_000) },
      `/alerts/${verb}`,
      body,
      'it runs no alerts',
    );
  return {
    runtime,
    clock,
    dir,
    lines,
    ask,
    settled,
    view: () => ask('list'),
    raise(name, state, labels = {}) {
      const alert = { name, severity: 'critical' as const, text: `${name} is ${state ?? 'told'}.` };
      bus.publish(alertRaised, { ...alert, labels: { ...labels, ...(state && { state }) } });
    },
    async until(what, holds) {
      const end = performance.now() + PATIENCE_MS;
      while (!holds()) {
        if (performance.now() > end) throw new Error(`it did not come about: ${what}`);
        await settled();
        await delay(2);
      }
    },
    async pass(seconds, step = seconds) {
      for (let left = seconds; left > 0; left -= step) {
        await advance(Math.min(step, left) * 1_000);
        await settled();
      }
    },
    async records() {
      await durable();
      return Array.fromAsync(log.read({}));
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
  };
}

/** A sample of a metric. @param at epoch milliseconds */
export const sample = (
  MetricName: string,
  Value: number,
  at: number,
  Attributes: Record<string, string> = {},
  ResourceAttributes: Record<string, string> = {},
) => ({ MetricName, Value, TimeUnix: new Date(at).toISOString(), Attributes, ResourceAttributes });
