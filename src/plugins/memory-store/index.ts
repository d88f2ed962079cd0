/**
 * The embedded memory store: collections of vectors on SQLite, behind the REST surface of the real one on port 6333,
 * with snapshots, recovery, and scratch instances of itself for drills. Requests are carried out in `engine/`, long work
 * in `jobs/`, each in threads of their own, for the gateway shares this process. What it takes and what it refuses:
 * docs/memory.md.
 *
 * Imports core; no other plugin.
 */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { MemoryInstanceToken, ScratchStoresToken } from '../../core/contracts/memory-store.ts';
import { urlOf } from '../../core/host/http/addresses.ts';
import { definePlugin } from '../../core/host/plugin/definition.ts';
import { readTokenFile } from '../../core/kernel/secret-file.ts';
import { MemoryStoreError } from './errors.ts';
import { EmbeddedScratch } from './scratch.ts';
import { databaseIn, MemoryServer, memoryStoreOptions, surfaceOf } from './server.ts';

/** @example memoryStore({ port: 6333 }) */
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
  register(context, { port, host, apiKeyFile, recoverFrom, scratchTtlMs }) {
    let live: MemoryServer | undefined;
    let scratch: EmbeddedScratch | undefined;
    let url: string | undefined;
    const origins = () => [...recoverFrom, ...(url === undefined ? [] : [url])];
    const apiKey = () => (apiKeyFile === undefined ? undefined : readTokenFile(apiKeyFile));

    const server = (): MemoryServer => {
      const { dataDir, clock } = context.services;
      live ??= new MemoryServer({ dir: join(dataDir, 'memory'), clock, recoverFrom: origins, apiKey });
      return live;
    };
    const scratchStores = (): EmbeddedScratch => {
      const { dataDir, clock, logger, metrics } = context.services;
      scratch ??= new EmbeddedScratch({
        dir: join(dataDir, 'scratch'),
        live: server(),
        server: { clock, recoverFrom: origins },
        dependencies: { logger, metrics },
        ttlMs: scratchTtlMs,
      });
      return scratch;
    };

    context.provide(MemoryInstanceToken, () => ({
      get url() {
        if (url === undefined)
          throw new MemoryStoreError('HF_MEMORY_STORE_FAILED', { reason: 'it does not listen yet' });
        return url;
      },
      apiKey,
      copyTo: (file) => server().copyTo(file),
      isUsed: () => existsSync(databaseIn(join(context.services.dataDir, 'memory'))),
    }));
    context.provide(ScratchStoresToken, scratchStores);

    const own = apiKeyFile === undefined ? {} : ({ admission: 'own' } as const);
    context.http({ ...surfaceOf('memory'), port, host, ...own }, (surface) => {
      server().serve(surface);
      surface.addHook('onListen', function (this: FastifyInstance, done) {
        const address = this.server.address();
        if (typeof address === 'object' && address) url = urlOf('http', address.address, address.port);
        done();
      });
    });
    context.onStart(async () => {
      await server().start();
      const swept = await scratchStores().sweep();
      if (swept.length > 0) context.services.logger.warn({ swept }, 'memory-store.scratch_swept');
    });
    context.onStop(async () => {
      await scratch?.close();
      await live?.close();
    });
  },
});
