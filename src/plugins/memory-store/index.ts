/**
 * The embedded memory store: collections of vectors in SQLite, behind the REST surface of the real store on port 6333,
 * with snapshots, recovery, and scratch instances of itself for drills. `engine/` serves requests and `jobs/` does long
 * work, each in a thread of its own because the gateway shares this process. docs/memory.md describes its limits.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  type MemoryInstance,
  MemoryInstanceToken,
  ScratchStoresToken,
} from '../../core/contracts/memory-store.ts';
import { urlForPaths } from '../../core/host/http/addresses.ts';
import { listeningOf } from '../../core/host/http/listen-options.ts';
import { pinAt } from '../../core/host/http/own-surface.ts';
import { definePlugin } from '../../core/host/plugin/definition.ts';
import { MemoryStoreError } from './errors.ts';
import { EmbeddedScratch } from './scratch.ts';
import { databaseIn, MemoryServer, memoryStoreOptions, surfaceOf } from './server.ts';

/**
 * The plugin `memory-store`: the embedded memory store.
 *
 * @example memoryStore({ port: 6333 })
 * @public
 */
export const memoryStore = definePlugin({
  name: 'memory-store',
  about: {
    area: 'Memory store',
    what: 'the embedded memory store',
    docs: 'memory.md',
  },
  options: memoryStoreOptions,
  env: { HOLDFAST_MEMORY_PORT: 'port' },
  variables: {
    HOLDFAST_MEMORY_PORT: 'Port of the embedded memory store.',
  },
  errors: MemoryStoreError,
  provides: [MemoryInstanceToken, ScratchStoresToken],
  onFailure: 'continue',
  hostBound: true,
  async start({ dataDir, clock, logger, metrics, surfaces }, { recoverFrom, scratchTtlMs, ...options }) {
    const dir = join(dataDir, 'memory');
    const url = () => {
      const place = surfaces().memory;
      return place && urlForPaths(place.url);
    };
    const pinOf = ({ href }: URL) => pinAt(surfaces(), href);
    const origins = () => [...recoverFrom, url()].filter((origin) => origin !== undefined);
    const { token: apiKey } = listeningOf(options);
    const live = new MemoryServer({ dir, clock, recoverFrom: origins, pinOf });
    const scratch = new EmbeddedScratch({
      dir: join(dataDir, 'scratch'),
      live,
      server: { clock, recoverFrom: origins, pinOf },
      dependencies: { logger, metrics },
      ttlMs: scratchTtlMs,
      // A copy of the memory is for nobody who may not read the memory itself.
      isClosed: options.socket !== undefined || options.auth === 'token',
    });
    const instance: MemoryInstance = {
      get url() {
        const listening = url();
        if (listening !== undefined) return listening;
        throw new MemoryStoreError('HF_MEMORY_STORE_FAILED', { reason: 'it does not listen yet' });
      },
      get pin() {
        return surfaces().memory?.tls?.fingerprint;
      },
      apiKey,
      copyTo: (file) => live.copyTo(file),
      isUsed: () => existsSync(databaseIn(dir)),
    };
    await live.start();
    const swept = await scratch.sweep();
    if (swept.length > 0) logger.warn({ swept }, 'memory-store.scratch_swept');
    return { live, scratch, instance };
  },
  register(context, options) {
    context.provide(MemoryInstanceToken, ({ instance }) => instance);
    context.provide(ScratchStoresToken, ({ scratch }) => scratch);
    context.http({ ...surfaceOf('memory'), ...listeningOf(options) }, (surface, { live }) =>
      live.serve(surface),
    );
    context.onStop(async ({ scratch, live }) => {
      await scratch.close();
      await live.close();
    });
  },
});
