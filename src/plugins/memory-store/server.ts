import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { HttpSurface, SurfaceOptions } from '../../core/host/http/contract.ts';
import { listenOptions } from '../../core/host/http/listen-options.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { EngineClient } from './engine/client.ts';
import { Jobs } from './jobs/jobs.ts';
import { BODY_LIMIT } from './limits.ts';
import { memoryErrorBody, memoryRoutes } from './routes.ts';
import { Snapshots } from './snapshots.ts';

const HOUR_MS = 3_600_000;

const origin = z
  .string()
  .refine(
    (text) => URL.canParse(text) && new URL(text).origin === text,
    'it must be an origin, e.g. http://store:6333',
  );

export const memoryStoreOptions = z.strictObject({
  /** The token is the key that clients of the real store send, as `api-key` or as a bearer token. */
  // Searches are posts, and a program may fill a store point by point.
  ...listenOptions(6333, { burst: 100_000, perSecond: 2_000 }),
  /** Origins that snapshots may be fetched from, beside the store's own. */
  recoverFrom: z.array(origin).max(20).default([]),
  /** A scratch instance that a killed process left is removed after this, milliseconds. */
  scratchTtlMs: z
    .int()
    .min(1_000)
    .default(6 * HOUR_MS),
});

/** Options that the listeners of the live store and of scratch instances share. */
export function surfaceOf(name: string): Omit<SurfaceOptions, 'port'> {
  return {
    name,
    portVariable: 'HOLDFAST_MEMORY_PORT',
    bodyLimit: BODY_LIMIT,
    checkOriginOfReads: true,
    tokenHeader: 'api-key',
    errorBody: memoryErrorBody,
    requestTimeoutMs: 600_000,
  };
}

export interface MemoryServerOptions {
  /** Folder of this store alone. */
  readonly dir: string;
  readonly clock: Clock;
  /** Origins from which it may fetch snapshots. */
  readonly recoverFrom: () => readonly string[];
  /** The fingerprint of the certificate that a URL must show; undefined where its authority decides. */
  readonly pinOf?: (url: URL) => string | undefined;
}

/** The database's file in a store's folder. */
export const databaseIn = (dir: string): string => join(dir, 'memory.db');

/** One memory store: a folder, the threads that work on it, and the routes that serve it. */
export class MemoryServer {
  /** Identifies this run, so that a store and one opened on a copy of it can be distinguished. */
  readonly instance = randomUUID();
  readonly #options: MemoryServerOptions;
  readonly #engine: EngineClient;
  readonly #jobs: Jobs;
  readonly #snapshots: Snapshots;

  constructor(options: MemoryServerOptions) {
    const { dir, clock, recoverFrom, pinOf } = options;
    this.#options = options;
    const database = databaseIn(dir);
    this.#engine = new EngineClient(database, clock);
    this.#jobs = new Jobs(clock);
    this.#snapshots = new Snapshots({
      ...{ dir, database, clock, recoverFrom, pinOf },
      ...{ engine: this.#engine, jobs: this.#jobs },
    });
  }

  /** Its threads start with the first request that needs them. */
  async start(): Promise<void> {
    await mkdir(this.#options.dir, { recursive: true, mode: 0o700 });
    await this.#snapshots.sweep();
  }

  serve(surface: HttpSurface): void {
    const { clock } = this.#options;
    memoryRoutes(surface, {
      ...{ instance: this.instance, engine: this.#engine, snapshots: this.#snapshots, clock },
    });
  }

  /** @param file which appears whole or not at all; its folder exists. @throws HF_MEMORY_STORE_BUSY, HF_MEMORY_STORE_FULL */
  async copyTo(file: string): Promise<void> {
    await this.#engine.call('peer'); // the database exists
    await this.#jobs.run(() => ({ kind: 'copy', database: databaseIn(this.#options.dir), file }) as const);
  }

  async close(): Promise<void> {
    await this.#jobs.close();
    await this.#engine.close();
  }
}
