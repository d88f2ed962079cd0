import type { NetworkConfig, RouterApi, SetAnswer } from '../../core/contracts/router.ts';
import { Turns } from '../../core/host/mutex.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { Gathering } from './gathering.ts';
import { type LegAddress, withAddresses } from './legs.ts';

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

/** One leg's wish to have its address in the config that bears this ncid. */
export interface Wish {
  readonly leg: LegAddress;
  readonly ncid: string;
  readonly correlation: string;
  /** The record that asked. */
  readonly cause?: number;
  readonly signal: AbortSignal;
}

/** How the router answered the post that a wish went into. */
export interface Posted {
  readonly answer: SetAnswer;
  /** Every leg of that post, as `<interface> <address>`. */
  readonly posted: readonly string[];
  /** 0 to 1, the same for all legs of one post: they back off together, and so stay one post. */
  readonly jitter: number;
}

/**
 * Posts what legs lack: all wishes of a moment for the config of one ncid go into one post of that very config.
 * Posts follow one another; the ncid decides the race with other writers.
 */
export class LegPoster {
  readonly reader: ActiveReader;
  readonly #parts: LegParts;
  readonly #turns = new Turns();
  readonly #gathering: Gathering<Wish, ReadonlyMap<string, Promise<Posted>>>;

  constructor(parts: LegParts) {
    this.#parts = parts;
    const written = () => this.#turns.free();
    this.reader = new ActiveReader(parts, written);
    this.#gathering = new Gathering({
      clock: parts.clock,
      momentMs: parts.gatherMs,
      ready: async () => {
        await parts.decided();
        await written();
      },
      work: async (wishes) => {
        const groups = [...Map.groupBy(wishes, ({ ncid }) => ncid)];
        return new Map(
          groups.map(([ncid, group]) => [ncid, this.#turns.take(() => this.#post(ncid, group))]),
        );
      },
    });
  }

  /** @throws HF_ROUTER_UNREACHABLE the config had to be read anew, and could not be */
  async add(wish: Wish): Promise<Posted> {
    const posts = await this.#gathering.ask(wish);
    return (await posts.get(wish.ncid)) as Posted;
  }

  async #post(ncid: string, wishes: readonly Wish[]): Promise<Posted> {
    const [{ correlation, cause, signal }] = wishes as [Wish];
    const { api, random } = this.#parts;
    const jitter = Math.round(random() * 1_000) / 1_000;
    const config = await this.reader.withNcid(ncid, signal);
    if (!config) return { answer: { kind: 'conflict' }, posted: [], jitter };
    const legs = wishes.map(({ leg }) => leg);
    const { body, added } = withAddresses(config, legs);
    const posted = added.map(({ intf, address }) => `${intf} ${address}`);
    // The legs are there already: the reading that follows will see them.
    if (added.length === 0) return { answer: { kind: 'applied', ncid }, posted, jitter };
    const answer = await Promise.race([api().set(body, correlation, signal, cause), givenUp(signal)]);
    return { answer, posted, jitter };
  }
}

/** A router that never answers must not keep the other writes waiting. */
function givenUp(signal: AbortSignal): Promise<SetAnswer> {
  return new Promise((resolve) => {
    const unknown = { kind: 'unknown', reason: 'no answer within the deadline' } as const;
    if (signal.aborted) resolve(unknown);
    signal.addEventListener('abort', () => resolve(unknown), { once: true });
  });
}
