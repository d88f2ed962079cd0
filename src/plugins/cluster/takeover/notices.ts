import { z } from 'zod';
import type { Cluster, Singleton } from '../../../core/contracts/cluster.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { newestTakeover } from '../../../core/kernel/actors/adoption.ts';
import type { Json } from '../../../core/kernel/json.ts';
import type { SingletonContext, Takeover } from '../../../machines/cluster/singleton.ts';
import type { Outbox } from '../mirror/outbox.ts';
import { takeoverSchema } from '../mirror/takeover-events.ts';
import type { ClusterRecords } from '../records.ts';
import type { Inherited, SuccessionOptions } from './succession.ts';

export interface TakeoverNotes extends Pick<SuccessionOptions, 'services' | 'host' | 'recorded'> {
  readonly records: Pick<ClusterRecords, 'singleton'>;
}

/**
 * Records that the work of other hosts goes on here, when it does, and where that ends what counts of each.
 *
 * @param token of the tenure
 * @param inherited what it goes on from; after a crash undefined: then what was recorded says so
 * @param hasBegun whether the beginning was completed; without that the takeover must stand in the log
 */
export function noteTakeover(
  { services, host, recorded, records }: TakeoverNotes,
  { name, actorTypes }: Singleton,
  token: string,
  inherited?: Inherited,
  hasBegun = false,
): void {
  const { actors, clock, log } = services;
  const { left, passedOver = [] } = inherited ?? {};
  const newest = newestTakeover(actors.knownStates(actorTypes), () => true);
  const isNew = newest?.isComplete && newest.first > (recorded(name)?.tookOverBy ?? 0);
  const isOfLeft = !inherited || (left?.host === newest?.host && left?.seq === newest?.seq);
  const source = isNew && isOfLeft ? newest : hasBegun ? left : undefined;
  if (!source && !hasBegun) return;
  // One host can be both: it held the lease again since, and had begun by an earlier one.
  const ended = new Map([...passedOver, ...(source ? [source] : [])].map((one) => [one.host, one]));
  ended.delete(host);
  const own = [...ended.values()].map(({ host: of, seq, hash }) => ({
    host: of,
    seq,
    hash,
    by: host,
    token,
  }));
  const takeovers: Takeover[] = [...(left?.untold ?? []), ...own];
  if (takeovers.length === 0) return;
  records.singleton(name, { type: 'TOOK_OVER', at: clock.now(), by: log.lastSeq(), takeovers });
}

/** Between two attempts to tell a host. It has met the fence by then, unless that is lost. */
const TELL_MS = 5_000;
/** The work that ends there may take longer: then it is told once more. */
const ANSWER_MS = 5_000;
const QUESTION = 'cluster.taken_over';

const questionBody = z.array(takeoverSchema.extend({ singleton: z.string() }));
const answerBody = z.array(z.object({ singleton: z.string(), token: z.string() }));

type NamedTakeover = z.output<typeof questionBody>[number];

export interface TakeoverNoticesOptions {
  readonly services: Pick<Services, 'clock' | 'logger'> & {
    readonly log: Pick<Services['log'], 'lastSeq' | 'whenDurable'>;
  };
  /** Name of this host. */
  readonly host: string;
  readonly recorded: (singleton: string) => Pick<SingletonContext, 'untold'> | undefined;
  readonly records: Pick<ClusterRecords, 'singleton'>;
  readonly asks: Pick<Cluster, 'ask' | 'onAsked'>;
  /** The other hosts that may answer. */
  readonly present: () => ReadonlySet<string>;
  readonly outbox: Pick<Outbox, 'takenOver'>;
}

/**
 * Tells each host whose work went on here, or on a host that this one went on from, at which of its records that was, until it has noted that
 * (docs/cluster.md, "Takeover"): servers that were set back may have lost the fence, and nothing else on its stream.
 */
export class TakeoverNotices {
  readonly #options: TakeoverNoticesOptions;
  readonly #singletons: readonly string[];
  #isStopped = false;
  #cancel: () => void = () => {};

  constructor(singletons: readonly string[], options: TakeoverNoticesOptions) {
    this.#options = options;
    this.#singletons = singletons;
    options.asks.onAsked(QUESTION, (body) => this.#told(body));
  }

  /** Begins to tell. */
  start(): void {
    this.#cancel = this.#options.services.clock.after(TELL_MS, () => void this.#tellOn());
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
  }

  async #tellOn(): Promise<void> {
    try {
      await this.#tell();
    } catch (error) {
      this.#options.services.logger.warn({ err: error }, 'cluster.takeovers');
    }
    if (!this.#isStopped) this.start();
  }

  async #tell(): Promise<void> {
    const { services, host, recorded, asks, present } = this.#options;
    const hosts = present();
    const untold = this.#singletons.flatMap((singleton) =>
      (recorded(singleton)?.untold ?? []).map((takeover) => ({ singleton, ...takeover })),
    );
    // This host may have taken back what was taken over from it.
    this.#note(host, await this.#met(untold));
    const others = untold.filter((takeover) => hosts.has(takeover.host));
    if (others.length === 0) return;
    // What a crash could undo is told to nobody.
    await services.log.whenDurable(services.log.lastSeq());
    const { answers } = await asks.ask(QUESTION, others, ANSWER_MS);
    for (const answer of answers) this.#note(answer.host, answerBody.safeParse(answer.answer).data ?? []);
  }

  async #told(body: Json): Promise<Json | undefined> {
    const met = await this.#met(questionBody.parse(body));
    return met.length > 0 ? met : undefined;
  }

  /** Those of this host that it has noted now. */
  async #met(takeovers: readonly NamedTakeover[]): Promise<z.output<typeof answerBody>> {
    const { host, outbox } = this.#options;
    const met: { singleton: string; token: string }[] = [];
    for (const takeover of takeovers) {
      const { singleton, token } = takeover;
      if (takeover.host === host && (await outbox.takenOver(takeover))) met.push({ singleton, token });
    }
    return met;
  }

  #note(host: string, met: z.output<typeof answerBody>): void {
    const { services, recorded, records } = this.#options;
    if (this.#isStopped) return;
    for (const { singleton, token } of met) {
      const untold = recorded(singleton)?.untold?.find((one) => one.host === host && one.token === token);
      if (!untold) continue;
      const event = {
        type: 'TAKEOVER_NOTED',
        at: services.clock.now(),
        host,
        token,
        seq: untold.seq,
      } as const;
      records.singleton(singleton, event);
    }
  }
}
