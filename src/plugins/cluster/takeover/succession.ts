import type { Lease, Singleton } from '../../../core/contracts/cluster.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { newestTakeover } from '../../../core/kernel/actors/adoption.ts';
import { passed } from '../../../core/kernel/clock.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { SingletonContext } from '../../../machines/cluster/singleton.ts';
import { singletonActor } from '../actors.ts';
import { ClusterError } from '../errors.ts';
import { numberOf } from '../leases/ledger.ts';
import type { LastHolder } from '../leases/message.ts';
import type { LogStreams } from '../mirror/incarnations.ts';
import { begunOnStreams, inheritanceOf, type Left, placeFence } from '../mirror/inheritance.ts';

/** What the work of a singleton goes on from. */
export interface Inherited {
  /** What another host left; undefined when this host's own log holds what was done last. */
  readonly left: Left | undefined;
  /** Where a fence ends what counts of hosts that held the lease since, and whose work had not begun as far as is known. */
  readonly passedOver: readonly Pick<Left, 'host' | 'seq' | 'hash'>[];
}

export interface SuccessionOptions {
  readonly services: Pick<Services, 'clock' | 'log'> & {
    readonly actors: Pick<Services['actors'], 'knownStates'>;
  };
  /** Name of this host. */
  readonly host: string;
  readonly streams: LogStreams;
  /** What was recorded here of a singleton's tenures. */
  readonly recorded: (
    singleton: string,
  ) =>
    | Pick<SingletonContext, 'begunBy' | 'begunWith' | 'branches' | 'token' | 'tookOverBy' | 'untold'>
    | undefined;
  /** Resolves when a record of this host stands on its stream. */
  readonly mirrored: (seq: number) => Promise<void>;
}

/** How often is looked whether the lease is lost, milliseconds. */
const LOOK_MS = 100;

/**
 * Finds out whose state the work of a singleton goes on from (docs/cluster.md, "Takeover"): that of whoever did it last, which is not
 * whoever held its lease last.
 */
export class Succession {
  readonly #options: SuccessionOptions;

  constructor(options: SuccessionOptions) {
    this.#options = options;
  }

  /**
   * What the work of a singleton goes on from. Whoever did it last gets a fence on the stream.
   *
   * @param last who held it before, as the ledger has it
   * @param isWanted whether the lease still stands: what is not wanted any more must not keep this host from the next one
   * @throws Error the lease is lost; HF_CLUSTER_UNFILLED, HF_LOG_CORRUPT, HF_PORTABLE_*, HF_CLUSTER_* it cannot be read now
   */
  async inheritanceFor(
    singleton: Singleton,
    lease: Lease,
    last: LastHolder | undefined,
    isWanted: () => boolean,
  ): Promise<Inherited> {
    const { streams, host, services } = this.#options;
    const { name, actorTypes } = singleton;
    const passedOver: Left[] = [];
    let isFirst = true;
    for await (const held of this.#heldBefore(singleton, last)) {
      if (!isWanted()) throw new Error('the lease is lost');
      // Whoever held it since may have fenced it there, this host among them.
      const isNewest = isFirst && held === last;
      isFirst = false;
      const isHere = held.host === host && (held.mirror?.seq ?? 0) <= services.log.lastSeq();
      if (isHere) {
        if (!(await this.#began(name, actorTypes, held.number))) continue;
        if (isNewest || !(await this.#isOrphaned(singleton, isWanted)))
          return { left: undefined, passedOver };
      }
      try {
        const fence = await placeFence(streams, held.host, { singleton: name, token: lease.token, by: host });
        const left = await inheritanceOf(streams, fence, actorTypes, {
          isFirst: isNewest,
          mirror: held.mirror,
        });
        if (isSetBack(left, held))
          throw new ClusterError('HF_CLUSTER_UNFILLED', {
            host: held.host,
            seq: left.readTo,
            to: held.mirror?.seq ?? 0,
          });
        if (left.begun !== undefined && left.begun >= held.number) return { left, passedOver };
        passedOver.push(left);
      } catch (error) {
        // It held the lease and never wrote a record to its stream.
        if (!isCoded(error, 'HF_CLUSTER_NO_LOG') || held.mirror !== undefined) throw error;
      }
    }
    return { left: undefined, passedOver };
  }

  /** Who held it, the newest first: as the ledger has it, and when none of those began its work, as the streams of all hosts do. */
  async *#heldBefore({ name, actorTypes }: Singleton, last: LastHolder | undefined): AsyncGenerator<Held> {
    // Whoever lost the lease before its work began has only what it knew of the singleton earlier.
    if (last) yield* [last, ...(last.before ?? [])];
    const { streams, host, recorded } = this.#options;
    const found: Held[] = [...(await begunOnStreams(streams, name, actorTypes))];
    const { begunBy } = recorded(name) ?? {};
    if (begunBy !== undefined) found.push({ host, number: numberOf(begunBy) });
    yield* found.sort((one, other) => other.number - one.number);
  }

  /**
   * Whether what this host did last for a singleton does not count, because another one had fenced it. Until its stream has what it
   * recorded, it may not have met the fence.
   */
  async #isOrphaned({ name, actorTypes }: Singleton, isWanted: () => boolean): Promise<boolean> {
    const { mirrored, services, recorded } = this.#options;
    const { actors, clock, log } = services;
    const sent = mirrored(log.lastSeq()).then(
      () => true,
      () => true, // this host stops
    );
    const look = () => passed(clock, LOOK_MS).then(() => false);
    while (isWanted() && !(await Promise.race([sent, look()])));
    const newest = Math.max(0, ...actors.knownStates(actorTypes).map(({ seq }) => seq));
    const { branches = [] } = recorded(name) ?? {};
    return branches.some(({ from, to }) => from <= newest && newest <= to);
  }

  /** Whether the work began here by the token of this number, or a later one. */
  async #began(name: string, types: readonly string[], number: number): Promise<boolean> {
    const { services, recorded } = this.#options;
    const { actors, log } = services;
    const { begunBy } = recorded(name) ?? {};
    if (begunBy !== undefined && numberOf(begunBy) >= number) return true;
    const states = actors.knownStates(types);
    // A takeover that was cut off is begun anew, from the host that it was of.
    if (newestTakeover(states, () => true)?.isComplete === false) return false;
    const newest = Math.max(0, ...states.map(({ seq }) => seq));
    for await (const { seq, event } of log.read({ actor: `${singletonActor.type}/${name}`, reverse: true })) {
      if (seq < newest && event.type === 'TAKING') return numberOf(String(event.token)) >= number;
    }
    return false;
  }
}

/** Who held a singleton, by a token of which number, and how far its log was on its stream. */
type Held = Pick<LastHolder, 'host' | 'number' | 'mirror'>;

/** The ledger says how far that host's log was on its stream. One whose log began anew has a later incarnation. */
function isSetBack({ incarnation, readTo }: Left, { mirror }: Held): boolean {
  if (!mirror) return false;
  const missing = Number(mirror.incarnation) - Number(incarnation);
  return missing > 0 || (missing === 0 && readTo < mirror.seq);
}
