import type { ScratchInstance, ScratchOrigin, ScratchStores } from '../../../core/contracts/memory-store.ts';
import { HttpCallError, HttpClient } from '../../../core/host/http/client.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { RestoreError } from '../errors.ts';

const http = new HttpClient({ timeoutMs: 15_000, answerLimit: 1024 * 1024 });
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

  async create(id: string, from: ScratchOrigin, signal: AbortSignal): Promise<ScratchInstance> {
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
      throw new RestoreError('HF_RESTORE_LIVE', { url, reason });
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

  /** Refuses the live store under another name, without a request to it. */
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
    try {
      const url = `${origin}${pathname.replace(/\/+$/, '')}${path}`;
      const answer = await http.call({ method, url, json: body, signal });
      const said = answer.json();
      if (!answer.ok) throw scratch(`${origin}: ${method} ${path}: it answered ${answer.status}`);
      if (said === undefined) throw scratch(`${origin}: ${method} ${path}: its answer is not JSON`);
      return isObject(said) ? said : {};
    } catch (error) {
      if (error instanceof HttpCallError) throw scratch(`${origin}: ${method} ${path}: ${error.reason}`);
      throw isCoded(error) ? error : scratch(`${origin}: ${method} ${path}: it was given up`);
    }
  }
}

const scratch = (reason: string) => new RestoreError('HF_RESTORE_SCRATCH', { reason });
