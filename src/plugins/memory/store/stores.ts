import { readFileSync } from 'node:fs';
import type { MemoryStore, MemoryStores } from '../../../core/contracts/memory-store.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { Exchange } from './exchange.ts';
import { RestStore } from './rest-store.ts';

interface StoresOptions {
  readonly kind: MemoryStores['kind'];
  readonly collection: string;
  /** Of the live store; an embedded one has it once it listens. */
  readonly url: () => string;
  readonly apiKey: (signal: AbortSignal) => Promise<string | undefined>;
  /** A PEM file. */
  readonly caFile?: string | undefined;
  readonly clock: Clock;
}

/** The live store and those of drills, with one pool of connections each. */
export class RestStores implements MemoryStores {
  readonly kind: MemoryStores['kind'];
  readonly collection: string;
  readonly #options: StoresOptions;
  readonly #exchanges = new Map<string, Exchange>();

  constructor(options: StoresOptions) {
    this.kind = options.kind;
    this.collection = options.collection;
    this.#options = options;
  }

  get live(): MemoryStore {
    const { url, apiKey } = this.#options;
    return new RestStore({ exchange: this.#exchange(`live ${url()}`, url(), apiKey) });
  }

  at(url: string): MemoryStore {
    const { apiKey, url: live } = this.#options;
    return new RestStore({
      exchange: this.#exchange(`at ${url}`, url, async () => undefined),
      keyFor: async (location, signal) =>
        URL.canParse(location) && new URL(location).origin === new URL(live()).origin
          ? apiKey(signal)
          : undefined,
    });
  }

  async close(): Promise<void> {
    await Promise.all(Array.from(this.#exchanges.values(), (exchange) => exchange.close()));
  }

  #exchange(key: string, url: string, apiKey: StoresOptions['apiKey']): Exchange {
    const known = this.#exchanges.get(key);
    if (known) return known;
    const exchange = new Exchange({ url, apiKey, ca: this.#ca(), clock: this.#options.clock });
    this.#exchanges.set(key, exchange);
    return exchange;
  }

  #ca(): string | undefined {
    const { caFile } = this.#options;
    if (caFile === undefined) return undefined;
    try {
      return readFileSync(caFile, 'utf8');
    } catch (error) {
      const reason = (error as NodeJS.ErrnoException).code ?? 'it cannot be read';
      throw new HoldfastError('HF_CONFIG_SECRET_MISSING', { file: caFile, reason }, { cause: error });
    }
  }
}
