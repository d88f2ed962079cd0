import type { NetworkConfig, RouterApi } from '../../core/contracts/router.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { Gathering } from './gathering.ts';

/** How long a config that was read is kept for a write; it bears secrets. */
const KEEP_MS = 30_000;

/** What reading and posting need of the runtime. */
export interface LegParts {
  readonly api: () => RouterApi;
  readonly clock: Clock;
  /** What is asked for within this time shares one read, or one post. */
  readonly gatherMs: number;
  /** Resolves when the effects of all that has been decided by now have been asked for. */
  readonly decided: () => Promise<void>;
  /** 0 to 1. */
  readonly random: () => number;
}

/**
 * Reads the active config for the legs: all that ask within a moment share one read, which begins after the last
 * of them asked, and not while a write of ours is under way (it would show the config of before it).
 */
export class ActiveReader {
  readonly #parts: LegParts;
  readonly #gathering: Gathering<AbortSignal, NetworkConfig>;
  #kept: NetworkConfig | undefined;
  #forget = () => {};

  /** @param written resolves when no write of ours is under way */
  constructor(parts: LegParts, written: () => Promise<void>) {
    this.#parts = parts;
    this.#gathering = new Gathering({
      clock: parts.clock,
      momentMs: parts.gatherMs,
      ready: async () => {
        await parts.decided();
        await written();
      },
      work: ([signal]) => this.#read(signal),
    });
  }

  /** @throws HF_ROUTER_UNREACHABLE */
  read(signal: AbortSignal): Promise<NetworkConfig> {
    return this.#gathering.ask(signal);
  }

  /**
   * The very config that bears this ncid, read before or now.
   *
   * @returns undefined when the active config bears another one by now
   * @throws HF_ROUTER_UNREACHABLE
   */
  async withNcid(ncid: string, signal: AbortSignal): Promise<NetworkConfig | undefined> {
    const config = this.#kept?.ncid === ncid ? this.#kept : await this.#read(signal);
    return config.ncid === ncid ? config : undefined;
  }

  async #read(signal?: AbortSignal): Promise<NetworkConfig> {
    const config = await this.#parts.api().active(signal);
    this.#forget();
    this.#kept = config;
    this.#forget = this.#parts.clock.after(KEEP_MS, () => {
      this.#kept = undefined;
    });
    return config;
  }
}
