/** The legs' access to the router: requests of one moment share one read, or one post. */
import type { NetworkConfig, RouterApi, SetAnswer, WriteOrigin } from '../../core/contracts/router.ts';
import { Coalescer, Mutex } from '../../core/host/concurrency.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { withHeld } from './kept-fields.ts';
import type { LegAddress } from './legs.ts';

/** How long a config that was read is kept for a write; it holds secrets. */
const KEEP_MS = 30_000;

export interface RouterAccess {
  readonly api: RouterApi;
  readonly clock: Clock;
  /** Requests within this time share one read, or one post. */
  readonly batchMs: number;
  /** Resolves when the effects of all decisions made so far have been requested. */
  readonly decided: () => Promise<void>;
  /** 0 to 1. */
  readonly random: () => number;
  /** Called with every config that is read. */
  readonly onRead?: (config: NetworkConfig) => void;
  /** Called with every config that is about to be posted, and the one that was read for it. @returns called when it is known not to be in force */
  readonly onPost?: (body: NetworkConfig, read: NetworkConfig) => () => void;
  /** Interfaces that no kept field may belong to. */
  readonly never?: readonly string[];
}

/** A request to add one leg's address, or to put in one field, to the config of this ncid. */
export interface AddressRequest {
  readonly leg: LegAddress;
  readonly ncid: string;
  readonly correlation: string;
  readonly origin?: WriteOrigin;
  readonly signal: AbortSignal;
}

/** How the router answered the post of a request. */
export interface PostResult {
  readonly answer: SetAnswer;
  /** Every leg of that post, as `<interface> <address>`, or `<path> <value>` of a field. */
  readonly posted: readonly string[];
  /** Legs that were left out, with the name of their network, which is never touched, or the reason of a field. */
  readonly refused?: ReadonlyMap<string, string>;
  /** 0 to 1, the same for all legs of one post: they back off together, and so stay one post. */
  readonly jitter: number;
}

/**
 * Posts missing addresses. All requests of one moment for the config of one ncid become one post of exactly that config.
 * Posts follow one another; the ncid decides the race with other writers.
 */
export class LegPoster {
  readonly reader: ConfigReader;
  readonly #access: RouterAccess;
  readonly #posts = new Mutex();
  readonly #requests: Coalescer<AddressRequest, ReadonlyMap<string, Promise<PostResult>>>;

  constructor(access: RouterAccess) {
    this.#access = access;
    const written = () => this.#posts.idle();
    this.reader = new ConfigReader(access, written);
    this.#requests = new Coalescer({
      clock: access.clock,
      windowMs: access.batchMs,
      ready: async () => {
        await access.decided();
        await written();
      },
      work: async (requests) => {
        const groups = [...Map.groupBy(requests, ({ ncid }) => ncid)];
        return new Map(groups.map(([ncid, group]) => [ncid, this.#posts.run(() => this.#post(ncid, group))]));
      },
    });
  }

  /** @throws HF_ROUTER_UNREACHABLE the config had to be read again, and could not be */
  async add(request: AddressRequest): Promise<PostResult> {
    const posts = await this.#requests.add(request);
    return posts.get(request.ncid) ?? { answer: { kind: 'conflict' }, posted: [], jitter: 0 };
  }

  async #post(ncid: string, requests: readonly AddressRequest[]): Promise<PostResult> {
    const { api } = this.#access;
    const jitter = jitterOf(this.#access);
    const [first] = requests;
    const config = first && (await this.reader.withNcid(ncid, first.signal));
    if (!config) return { answer: { kind: 'conflict' }, posted: [], jitter };
    const { correlation, origin, signal } = first;
    const legs = requests.map(({ leg }) => leg);
    const { body, added, refused: refusedLegs } = withHeld(config, legs, this.#access.never ?? []);
    const refused = refusedLegs.size > 0 && { refused: refusedLegs };
    const posted = added.map(({ intf, address }) => `${intf} ${address}`);
    // Nothing is missing in this config; the reading that follows confirms it.
    if (added.length === 0) return { answer: { kind: 'applied', ncid }, posted, ...refused, jitter };
    const forget = this.#access.onPost?.(body, config);
    const answer = await Promise.race([api.set(body, correlation, signal, origin), timedOut(signal)]);
    if (answer.kind === 'conflict' || answer.kind === 'pending') forget?.();
    return { answer, posted, ...refused, jitter };
  }
}

/** Three digits are enough, and keep records short. */
function jitterOf({ random }: Pick<RouterAccess, 'random'>): number {
  return Math.round(random() * 1_000) / 1_000;
}

/** Ends the wait at the deadline, so that a router that never answers does not block other writes. */
function timedOut(signal: AbortSignal): Promise<SetAnswer> {
  return new Promise((resolve) => {
    const unknown = { kind: 'unknown', reason: 'no answer within the deadline' } as const;
    if (signal.aborted) resolve(unknown);
    signal.addEventListener('abort', () => resolve(unknown), { once: true });
  });
}

/**
 * Reads the active config. Requests of one moment share one read, which begins after the last of them and after our own
 * writes, because a read during a write would show the config from before it.
 */
class ConfigReader {
  /** 0 to 1, the same for all legs of one reading: they back off together, and so stay one reading. */
  jitter = 0;
  readonly #access: RouterAccess;
  readonly #requests: Coalescer<AbortSignal, NetworkConfig>;
  #kept: NetworkConfig | undefined;
  #cancelForget = () => {};

  /** @param written resolves when no write of ours is under way */
  constructor(access: RouterAccess, written: () => Promise<void>) {
    this.#access = access;
    this.#requests = new Coalescer({
      clock: access.clock,
      windowMs: access.batchMs,
      ready: async () => {
        await access.decided();
        await written();
      },
      work: ([signal]) => this.#read(signal),
    });
  }

  /** @throws HF_ROUTER_UNREACHABLE */
  read(signal: AbortSignal): Promise<NetworkConfig> {
    return this.#requests.add(signal);
  }

  /**
   * The config of this ncid, kept from a reading or read now.
   *
   * @returns undefined when the active config has another ncid by now
   * @throws HF_ROUTER_UNREACHABLE
   */
  async withNcid(ncid: string, signal: AbortSignal): Promise<NetworkConfig | undefined> {
    const config = this.#kept?.ncid === ncid ? this.#kept : await this.#read(signal);
    return config.ncid === ncid ? config : undefined;
  }

  async #read(signal?: AbortSignal): Promise<NetworkConfig> {
    this.jitter = jitterOf(this.#access);
    const config = await this.#access.api.active(signal);
    this.#access.onRead?.(config);
    this.#cancelForget();
    this.#kept = config;
    this.#cancelForget = this.#access.clock.after(KEEP_MS, () => {
      this.#kept = undefined;
    });
    return config;
  }
}
