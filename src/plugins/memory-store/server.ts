import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { HttpSurface } from '../../core/host/http/contract.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { EngineClient } from './engine/client.ts';
import { Jobs } from './jobs/jobs.ts';
import { memoryRoutes } from './routes.ts';
import { Snapshots } from './snapshots.ts';

export interface MemoryServerOptions {
  /** Folder of this store alone. */
  readonly dir: string;
  readonly clock: Clock;
  /** Origins from which it may fetch snapshots. */
  readonly recoverFrom: () => readonly string[];
  /** Asked for at each request; undefined asks for none. */
  readonly apiKey?: () => string | undefined;
}

/** The database's file in a store's folder. */
export const databaseIn = (dir: string): string => join(dir, 'memory.db');

/** One memory store: a folder, the threads that work on it, and the routes that serve it. */
export class MemoryServer {
  /** Of this run: two stores are told apart by it, also where one was opened on a copy of the other. */
  readonly instance = randomUUID();
  readonly #options: MemoryServerOptions;
  readonly #engine: EngineClient;
  readonly #jobs: Jobs;
  readonly #snapshots: Snapshots;

  constructor(options: MemoryServerOptions) {
    const { dir, clock, recoverFrom } = options;
    this.#options = options;
    const database = databaseIn(dir);
    this.#engine = new EngineClient(database, clock);
    this.#jobs = new Jobs(clock);
    const parts = { dir, database, engine: this.#engine, jobs: this.#jobs, clock, recoverFrom };
    this.#snapshots = new Snapshots(parts);
  }

  /** Its threads start with the first request that needs them. */
  async start(): Promise<void> {
    await mkdir(this.#options.dir, { recursive: true, mode: 0o700 });
    await this.#snapshots.sweep();
  }

  serve(surface: HttpSurface): void {
    const { apiKey = () => undefined } = this.#options;
    const parts = { instance: this.instance, engine: this.#engine, snapshots: this.#snapshots, apiKey };
    memoryRoutes(surface, parts);
  }

  /** @param file which appears whole or not at all; its folder exists. @throws HF_MEMORY_BUSY, HF_MEMORY_FULL */
  async copyTo(file: string): Promise<void> {
    await this.#engine.call('peer'); // the database exists
    await this.#jobs.run(() => ({ kind: 'copy', database: databaseIn(this.#options.dir), file }) as const);
  }

  async close(): Promise<void> {
    await this.#jobs.close();
    await this.#engine.close();
  }
}
