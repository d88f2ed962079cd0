import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { MemoryStores, ScratchStores } from '../../../src/core/contracts/memory-store.ts';
import { MemoryStoresToken, ScratchStoresToken } from '../../../src/core/contracts/memory-store.ts';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { definePlugin, type PluginEntry } from '../../../src/core/host/plugin/definition.ts';
import { createRuntime, type Runtime } from '../../../src/core/host/runtime/runtime.ts';
import { memory } from '../../../src/plugins/memory/index.ts';
import {
  inTransaction,
  newPlace,
  openDatabase,
  putCollection,
  tableOf,
} from '../../../src/plugins/memory-store/engine/database.ts';
import { memoryStore } from '../../../src/plugins/memory-store/index.ts';
import type { Scope } from '../../support/scope.ts';
import { tempDir } from '../../support/temp.ts';
import type { VirtualClock } from '../../support/virtual-clock.ts';

export interface MemoryRig {
  readonly dataDir: string;
  readonly runtime: Runtime;
  readonly url: string;
  readonly stores: MemoryStores;
  readonly scratch: ScratchStores;
}

interface RigOptions {
  readonly dataDir?: string;
  readonly clock?: VirtualClock;
  readonly store?: Parameters<typeof memoryStore>[0];
  readonly memory?: Parameters<typeof memory>[0];
  readonly plugins?: readonly PluginEntry[];
  readonly lines?: string[];
}

/** A runtime with the embedded memory store on a free port and the adapter in front of it. */
export async function startMemory(t: Scope, options: RigOptions = {}): Promise<MemoryRig> {
  const dataDir = options.dataDir ?? tempDir(t);
  let seen: { stores: MemoryStores; scratch: ScratchStores } | undefined;
  const reader = definePlugin({
    name: 'reader',
    options: z.strictObject({}),
    requires: [MemoryStoresToken, ScratchStoresToken],
    start(services) {
      seen = { stores: services.get(MemoryStoresToken), scratch: services.get(ScratchStoresToken) };
    },
    register() {},
  });
  const plugins = [
    memoryStore({ port: 0, ...options.store }),
    memory(options.memory ?? {}),
    reader(),
    ...(options.plugins ?? []),
  ];
  const resolved = resolveConfig({ plugins }, { env: {} });
  const { lines, clock } = options;
  const logger = createLogger(
    lines ? { level: 'info', destination: { write: (line) => void lines.push(line) } } : { level: 'silent' },
  );
  const runtime = createRuntime({ plugins: resolved.plugins, dataDir, logger, ...(clock && { clock }) });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  if (!seen) throw new Error('the reader did not start');
  return { dataDir, runtime, url: runtime.surfaces.memory!.url, ...seen };
}

/** A REST call, as any client makes it. */
export async function rest(url: string, method: string, path: string, body?: unknown): Promise<any> {
  const answer = await fetch(url + path, {
    method,
    ...(body !== undefined && {
      headers: { 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    }),
  });
  return { status: answer.status, headers: answer.headers, body: await answer.json() };
}

/** `count` points with vectors that differ and payloads that name them. */
export function somePoints(count: number, size = 4, first = 1) {
  return Array.from({ length: count }, (_, index) => {
    const id = first + index;
    return {
      id,
      vector: Array.from({ length: size }, (_, place) => Math.sin(id * (place + 1))),
      payload: { text: `memory ${id}` },
    };
  });
}

export async function fill(url: string, count: number, size = 4, collection = 'memory'): Promise<void> {
  await rest(url, 'PUT', `/collections/${collection}`, { vectors: { size, distance: 'Cosine' } });
  for (let first = 1; first <= count; first += 1_000) {
    const points = somePoints(Math.min(1_000, count - first + 1), size, first);
    await rest(url, 'PUT', `/collections/${collection}/points`, { points });
  }
}

export function vectorOf(id: number, size: number): Float32Array {
  const values = Float32Array.from({ length: size }, (_, place) => Math.sin(id * (place + 1)));
  const length = Math.hypot(...values);
  return values.map((value) => value / length);
}

/** Puts points 1 to `count` straight into the database of a store that does not run: by its surface, many take a minute. */
export function storePoints(dataDir: string, count: number, size: number): void {
  mkdirSync(join(dataDir, 'memory'), { recursive: true });
  const db = openDatabase(join(dataDir, 'memory', 'memory.db'));
  inTransaction(db, () => {
    const place = newPlace(db);
    putCollection(db, { name: 'memory', place, size });
    const put = db.prepare(`INSERT INTO ${tableOf({ place })} VALUES (?, ?, ?)`);
    for (let id = 1; id <= count; id += 1) {
      const text = `Memory ${id}: what was said, by whom, and when, in about as many words as one has.`;
      put.run(BigInt(id), new Uint8Array(vectorOf(id, size).buffer), JSON.stringify({ text, number: id }));
    }
  });
  db.close();
}
