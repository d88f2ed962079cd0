import { z } from 'zod';
import {
  type MemoryStores,
  MemoryStoresToken,
  type SnapshotRecords,
  SnapshotRecordsToken,
} from '../../../src/core/contracts/memory-store.ts';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
import { definePlugin, type PluginEntry } from '../../../src/core/host/plugin/definition.ts';
import { createRuntime, type Runtime } from '../../../src/core/host/runtime/runtime.ts';
import type { Result } from '../../../src/machines/restore/drill-shapes.ts';
import { memory } from '../../../src/plugins/memory/index.ts';
import type { DrillStatus } from '../../../src/plugins/restore/control.ts';
import { restore } from '../../../src/plugins/restore/index.ts';
import type { Scope } from '../../support/scope.ts';
import { tempDir } from '../../support/temp.ts';
import { read } from '../../support/until.ts';
import type { VirtualClock } from '../../support/virtual-clock.ts';

export interface DrillRig {
  readonly runtime: Runtime;
  readonly dataDir: string;
  /** Asks for a drill. @returns its id, or the refusal's body */
  ask(path?: 'a' | 'b', snapshot?: string): Promise<{ id?: string; code?: string; what?: string }>;
  status(): Promise<DrillStatus>;
  /** Waits until the status is so. */
  see(isSo: (status: DrillStatus) => boolean): Promise<DrillStatus>;
  /** Asks, and waits for the end. */
  drill(path?: 'a' | 'b', snapshot?: string): Promise<Result>;
  /** What is recorded of snapshots. */
  readonly records: SnapshotRecords;
  readonly stores: MemoryStores;
  /** Makes a snapshot, with its record. @returns its name */
  snapshot(): Promise<string>;
}

type RestoreInput = NonNullable<Parameters<typeof restore>[0]>;

const given = (options: object): RestoreInput =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));

interface RigOptions {
  readonly dataDir?: string;
  readonly clock?: VirtualClock;
  readonly plugins?: readonly PluginEntry[];
  /** Of what is undefined the plugin's own default counts. */
  readonly restore?: { [K in keyof RestoreInput]?: RestoreInput[K] | undefined };
  readonly memory?: Parameters<typeof memory>[0];
}

/** A runtime with drills; times are short. */
export async function startDrills(t: Scope, options: RigOptions = {}): Promise<DrillRig> {
  const dataDir = options.dataDir ?? tempDir(t);
  let seen: { records: SnapshotRecords; stores: MemoryStores } | undefined;
  const reader = definePlugin({
    name: 'reader',
    options: z.strictObject({}),
    requires: [SnapshotRecordsToken, MemoryStoresToken],
    start(services) {
      seen = { records: services.get(SnapshotRecordsToken), stores: services.get(MemoryStoresToken) };
    },
    register() {},
  });
  const plugins = [
    memory(options.memory),
    reader(),
    restore(given({ pollMs: 5, readyMs: 5_000, retryMs: 50, ...options.restore })),
    ...(options.plugins ?? []),
  ];
  const runtime = createRuntime({
    plugins: resolveConfig({ plugins }, { env: {} }).plugins,
    dataDir,
    ...(options.clock && { clock: options.clock }),
    logger: createLogger({ level: 'silent' }),
  });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  if (!seen) throw new Error('the reader did not start');
  const never = new AbortController().signal;
  const post = async (path: string, body: object) =>
    (await postControl(dataDir, path, body, never)).body as any;
  const status = (): Promise<DrillStatus> => post('/restore/status', {});
  const see = (isSo: (status: DrillStatus) => boolean): Promise<DrillStatus> => read('that', status, isSo);
  const ask = (path: 'a' | 'b' = 'a', snapshot?: string) =>
    post('/restore/drill', { path, ...(snapshot !== undefined && { snapshot }) });
  return {
    runtime,
    ...seen,
    dataDir,
    ask,
    status,
    see,
    async drill(path, snapshot) {
      const { id } = await ask(path, snapshot);
      const ended: DrillStatus = await see(({ results }) => results.some((one) => one.id === id));
      return ended.results.findLast((one) => one.id === id)!;
    },
    async snapshot() {
      const made = await post('/memory/backup/snapshot', {});
      if (typeof made.name !== 'string') throw new Error(JSON.stringify(made));
      return made.name;
    },
  };
}
