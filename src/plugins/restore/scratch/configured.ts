import { request } from 'undici';
import type { ScratchInstance, ScratchStores } from '../../../core/contracts/memory-store.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { HoldfastError, isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../core/kernel/json.ts';

const CALL_MS = 15_000;
const LARGEST_ANSWER = 1024 * 1024;
const MARKER = /^holdfast-scratch-(.+)-(\d{13})$/;

interface ConfiguredScratchOptions {
  readonly url: string;
  /** The collection that drills restore; nothing else there is ever touched. */
  readonly collection: string;
  readonly clock: Clock;
  readonly expiryMs: number;
  /** Refuses the live store, before anything is sent. */
  readonly refuse: (url: string) => Promise<void>;
}

/**
 * An instance that somebody keeps for drills. It is marked by an empty collection that names the drill and its expiry;
 * without a marker nothing there is removed, and with the restored collection but no marker it is not taken.
 */
export class ConfiguredScratch implements ScratchStores {
  readonly kind = 'configured';
  readonly #options: ConfiguredScratchOptions;
  /** Drills that were turned away before anything was written: where nothing was made, nothing is removed. */
  readonly #unmade = new Set<string>();

  constructor(options: ConfiguredScratchOptions) {
    this.#options = options;
  }

  async create(id: string, from: 'empty' | 'volume-copy', signal: AbortSignal): Promise<ScratchInstance> {
    const { url, collection, refuse, clock, expiryMs } = this.#options;
    if (from !== 'empty') throw scratch('a configured instance cannot be opened on a copy of a volume');
    this.#unmade.add(id);
    await refuse(url);
    for (const marker of await this.list(signal)) {
      if (marker.id !== id && marker.expiresAt > clock.now()) throw scratch(`drill ${marker.id} uses ${url}`);
      await this.remove(marker.id, signal);
    }
    const held = await this.#collections(signal);
    if (held.includes(collection)) {
      const reason = `it holds a collection ${collection} and no marker of a drill`;
      throw new HoldfastError('HF_RESTORE_LIVE', { url, reason });
    }
    this.#unmade.delete(id);
    const marker = `holdfast-scratch-${id}-${clock.now() + expiryMs}`;
    await this.#call('PUT', `/collections/${marker}`, signal, { vectors: { size: 1, distance: 'Cosine' } });
    return { id, url };
  }

  async remove(id: string, signal: AbortSignal): Promise<void> {
    if (this.#unmade.has(id) || (await this.#isLive())) return;
    const names = await this.#collections(signal);
    const markers = names.filter((name) => MARKER.exec(name)?.[1] === id);
    if (markers.length === 0) return;
    const { collection } = this.#options;
    if (names.includes(collection)) await this.#call('DELETE', `/collections/${collection}`, signal);
    for (const marker of markers) await this.#call('DELETE', `/collections/${marker}`, signal);
  }

  async list(signal: AbortSignal): Promise<readonly { readonly id: string; readonly expiresAt: number }[]> {
    if (await this.#isLive()) return [];
    return (await this.#collections(signal)).flatMap((name) => {
      const [, id, expiresAt] = MARKER.exec(name) ?? [];
      return id === undefined ? [] : [{ id, expiresAt: Number(expiresAt) }];
    });
  }

  /** The live store by another name holds nothing of ours, and is not even asked. */
  async #isLive(): Promise<boolean> {
    const { refuse, url } = this.#options;
    try {
      await refuse(url);
      return false;
    } catch (error) {
      if (isCoded(error, 'HF_RESTORE_LIVE')) return true;
      throw error;
    }
  }

  async #collections(signal: AbortSignal): Promise<string[]> {
    const { result } = await this.#call('GET', '/collections', signal);
    const listed = isObject(result) && Array.isArray(result.collections) ? result.collections : [];
    return listed.filter(isObject).map(({ name }) => String(name));
  }

  async #call(
    method: 'GET' | 'PUT' | 'DELETE',
    path: string,
    signal: AbortSignal,
    body?: object,
  ): Promise<Record<string, unknown>> {
    const { origin, pathname } = new URL(this.#options.url);
    const over = AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]);
    try {
      const answer = await request(`${origin}${pathname.replace(/\/+$/, '')}${path}`, {
        method,
        signal: over,
        ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
      });
      const text = await textOf(answer.body);
      if (answer.statusCode >= 300) throw new Error(`it answered ${answer.statusCode}`);
      const parsed: unknown = JSON.parse(text);
      return isObject(parsed) ? parsed : {};
    } catch (error) {
      throw scratch(`${origin}: ${method} ${path}: ${(error as Error).message}`);
    }
  }
}

const scratch = (reason: string) => new HoldfastError('HF_RESTORE_SCRATCH', { reason });

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > LARGEST_ANSWER) throw new Error(`the answer is larger than ${LARGEST_ANSWER} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
