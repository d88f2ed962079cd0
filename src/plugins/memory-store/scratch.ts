import { copyFile, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { ScratchInstance, ScratchOrigin, ScratchStores } from '../../core/contracts/memory-store.ts';
import { urlForPaths } from '../../core/host/http/addresses.ts';
import type { Surface, SurfaceDependencies } from '../../core/host/http/contract.ts';
import { HoldfastError } from '../../core/kernel/errors/holdfast-error.ts';
import { MemoryStoreError } from './errors.ts';
import { databaseIn, MemoryServer, type MemoryServerOptions, surfaceOf } from './server.ts';

const MARKER = 'scratch.json';
const ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const CLOSE_MS = 2_000;
const marker = z.strictObject({ holdfast: z.literal('scratch'), id: z.string(), expiresAt: z.number() });

interface ScratchOptions {
  /** Folder of all scratch instances. */
  readonly dir: string;
  /** The live store, and the origins that an instance may fetch from. */
  readonly live: MemoryServer;
  readonly server: Pick<MemoryServerOptions, 'clock' | 'recoverFrom' | 'pinOf'>;
  readonly dependencies: SurfaceDependencies;
  /** How long an instance may be left over by a killed process, milliseconds. */
  readonly ttlMs: number;
  /** Whether instances listen on a socket that only this user may use, in place of a port of loopback. */
  readonly isClosed: boolean;
}

interface Running {
  readonly server: MemoryServer;
  readonly surface: Surface;
  readonly url: string;
}

/**
 * Scratch instances in this process: each has a folder, a free port on loopback and a thread. A killed process therefore
 * leaves only a folder behind, which carries a marker and an expiry.
 */
export class EmbeddedScratch implements ScratchStores {
  readonly kind = 'embedded';
  readonly #options: ScratchOptions;
  readonly #running = new Map<string, Promise<Running>>();

  constructor(options: ScratchOptions) {
    this.#options = options;
  }

  async create(id: string, from: ScratchOrigin, signal: AbortSignal): Promise<ScratchInstance> {
    if (!ID.test(id))
      throw new MemoryStoreError('HF_MEMORY_STORE_SCRATCH', {
        reason: 'its id may hold letters, digits, _ and -',
      });
    signal.throwIfAborted();
    let running = this.#running.get(id);
    if (!running) {
      running = this.#start(id, from);
      this.#running.set(id, running);
      running.catch(() => this.#running.delete(id));
    }
    const { url } = await running;
    return { id, url };
  }

  async remove(id: string): Promise<void> {
    if (!ID.test(id)) return;
    const running = this.#running.get(id);
    this.#running.delete(id);
    await running?.then(stop, () => {});
    await rm(this.#folder(id), { recursive: true, force: true });
  }

  async list(): Promise<readonly { readonly id: string; readonly expiresAt: number }[]> {
    const names = await readdir(this.#options.dir).catch(() => []);
    const found = await Promise.all(names.map((name) => this.#marked(name)));
    return found.filter((one) => one !== undefined);
  }

  /** Removes expired instances and drafts at a start. @returns ids of the expired ones */
  async sweep(): Promise<readonly string[]> {
    const now = this.#options.server.clock.now();
    const over = (await this.list()).filter(({ expiresAt }) => expiresAt <= now).map(({ id }) => id);
    for (const id of over) await this.remove(id);
    for (const name of await readdir(this.#options.dir).catch(() => [])) {
      if (name.startsWith('.draft-'))
        await rm(join(this.#options.dir, name), { recursive: true, force: true });
    }
    return over;
  }

  /** Stops the instances. Their folders stay, so that a drill finds its instance again after a restart. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.#running.values(), (running) => running.then(stop, () => {})));
  }

  async #start(id: string, from: ScratchOrigin): Promise<Running> {
    const { server: settings, dependencies, isClosed } = this.#options;
    try {
      if (!(await this.#marked(id))) await this.#prepare(id, from);
      const server = new MemoryServer({ ...settings, dir: this.#folder(id) });
      await server.start();
      const { createSurface } = await import('../../core/host/http/surface.ts');
      const socket = { path: join(this.#folder(id), 's'), mode: '0600' } as const;
      const where = isClosed ? { port: 0, socket } : { port: 0 };
      const surface = createSurface(
        { ...surfaceOf('memoryScratch'), ...where, writeBudget: 'own' }, // a drill is its only caller
        dependencies,
      );
      server.serve(surface.http);
      const { url } = await surface.listen();
      return { server, surface, url: urlForPaths(url) };
    } catch (error) {
      const reason = error instanceof HoldfastError ? error.what.replace(/\.$/, '') : String(error);
      throw new MemoryStoreError('HF_MEMORY_STORE_SCRATCH', { reason }, { cause: error });
    }
  }

  /** Makes the folder with its marker and, when requested, the copy; it appears whole or not at all. */
  async #prepare(id: string, from: ScratchOrigin): Promise<void> {
    const { dir, live, server, ttlMs } = this.#options;
    const draft = join(dir, `.draft-${id}`);
    await rm(draft, { recursive: true, force: true });
    await mkdir(draft, { recursive: true, mode: 0o700 });
    const mark = { holdfast: 'scratch', id, expiresAt: server.clock.now() + ttlMs };
    await writeFile(join(draft, MARKER), JSON.stringify(mark), { mode: 0o600, flush: true });
    if (typeof from === 'object') await copyFile(from.file, databaseIn(draft));
    else if (from === 'volume-copy') await live.copyTo(databaseIn(draft));
    await rm(this.#folder(id), { recursive: true, force: true });
    await rename(draft, this.#folder(id));
  }

  async #marked(id: string): Promise<{ readonly id: string; readonly expiresAt: number } | undefined> {
    if (!ID.test(id)) return undefined;
    try {
      const found = marker.parse(JSON.parse(await readFile(join(this.#folder(id), MARKER), 'utf8')));
      return found.id === id ? { id, expiresAt: found.expiresAt } : undefined;
    } catch {
      return undefined;
    }
  }

  #folder(id: string): string {
    return join(this.#options.dir, id);
  }
}

async function stop({ surface, server }: Running): Promise<void> {
  await surface.close(CLOSE_MS);
  await server.close();
}
