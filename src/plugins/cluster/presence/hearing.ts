import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { ClusterError } from '../errors.ts';
import { type Drops, LARGEST_MESSAGE, readJson } from '../nats/body.ts';
import type { LinkMessage, NatsLink } from '../nats/link.ts';
import { type Beat, beatBody, type HeardHost, identity } from './beat.ts';
import type { NameClaim } from './name-claim.ts';
import type { Presence } from './presence.ts';
import { UnprovenRuns } from './unproven.ts';

const MOST_CHALLENGES = 100;
const MOST_FOREIGN = 1_000;

/** `a copy`: it is this very run, on a copy of this machine, and what this run holds is its. */
export type NameTaker = 'another' | 'a copy';

export interface HearingOptions extends Pick<Beat, 'host' | 'run' | 'version' | 'protocol'> {
  readonly link: Pick<NatsLink, 'isUp'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly drops: Drops;
  readonly presence: Presence<HeardHost>;
  readonly claim: Pick<NameClaim, 'answerOf' | 'isAfter' | 'takenBy'>;
  /** Number of the newest beat that this run sent. */
  readonly sent: () => number;
  readonly onHeard: (host: HeardHost) => void;
  /** Another process is this host, and has the better claim. */
  readonly onTaken: (error: Error, by: NameTaker) => void;
}

/**
 * What this host hears of the others: beats, by a plain subscription. A run of a host counts when it has answered a question of this
 * process: beats of the past, sent again, do not.
 */
export class Hearing {
  readonly #options: HearingOptions;
  readonly #unproven = new UnprovenRuns();
  /** When hosts of another protocol were heard last. */
  readonly #foreign = new Map<string, number>();
  readonly #asked = new Set<string>();
  #isStopped = false;

  constructor(options: HearingOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** The names of the others that may answer: those that are known to live, and those that have not proven it yet, while they may. */
  get present(): ReadonlySet<string> {
    const { presence } = this.#options;
    const unproven = this.#unproven.since(presence.countsSince);
    return new Set([...presence.live().map(({ host }) => host), ...unproven]);
  }

  /** The names of hosts of another protocol that live: they answer nothing. */
  get foreign(): ReadonlySet<string> {
    const since = this.#options.presence.countsSince;
    return new Set([...this.#foreign].flatMap(([host, heardMs]) => (heardMs >= since ? [host] : [])));
  }

  /** A message on the subject of the beats. */
  hear({ subject, body }: LinkMessage): void {
    const { clock, drops, protocol } = this.#options;
    const value = readJson(body, LARGEST_MESSAGE);
    const who = identity.safeParse(value).data;
    if (!who || !subject.endsWith(`.beat.${who.host}`)) drops.add('malformed', { subject });
    else if (who.protocol !== protocol) {
      const details = { host: who.host, theirs: who.version, version: this.#options.version };
      const { code, what } = new ClusterError('HF_CLUSTER_VERSION', details);
      drops.add(`${code} ${who.host}`, { what });
      if (this.#foreign.size < MOST_FOREIGN) this.#foreign.set(who.host, clock.monotonic());
    } else {
      const beat = beatBody.safeParse(value).data;
      if (beat) this.#hearBeat(beat);
      else drops.add('malformed', { subject });
    }
  }

  #hearBeat(beat: Beat): void {
    const { clock, host, run, presence } = this.#options;
    if (beat.run === run) this.#hearOwn(beat);
    else if (presence.heard.get(beat.host)?.run === beat.run) this.#hearAgain(beat);
    else {
      if (beat.host !== host) this.#unproven.heard(beat.host, beat.run, clock.monotonic());
      void this.#prove(beat);
    }
  }

  /** A machine that was copied while it ran is this very run, and counts on from there. The one that is behind hears what it has not sent. */
  #hearOwn(beat: Beat): void {
    const { sent, claim, onTaken } = this.#options;
    if (beat.number > sent()) onTaken(claim.takenBy(beat), 'a copy');
  }

  #hearAgain(beat: Beat): void {
    const { presence, drops } = this.#options;
    const { host, number } = beat;
    if (number > (presence.heard.get(host)?.number ?? 0)) this.#accept(beat);
    else drops.add('repeated', { host });
  }

  /** Asks a run that is heard for the first time whether it lives. Never rejects. */
  async #prove(beat: Beat): Promise<void> {
    const { link, logger, host, claim, onTaken } = this.#options;
    const key = `${beat.host} ${beat.run}`;
    if (this.#asked.has(key) || this.#asked.size >= MOST_CHALLENGES) return;
    this.#asked.add(key);
    try {
      const answer = await claim.answerOf(beat);
      if (this.#isStopped) return;
      if (!answer) {
        // Without a connection nobody could have answered.
        if (link.isUp) this.#unproven.failed(beat.run);
      } else if (beat.host !== host) {
        this.#unproven.proven(beat.run);
        this.#accept(beat);
      } else if (claim.isAfter(answer)) onTaken(claim.takenBy(answer), 'another');
    } catch (error) {
      logger.debug({ err: error }, 'cluster.beat.unproven');
    } finally {
      this.#asked.delete(key);
    }
  }

  #accept(beat: Beat): void {
    const { clock, presence, onHeard } = this.#options;
    const heard = { ...beat, heardMs: clock.monotonic() };
    presence.hear(heard);
    onHeard(heard);
  }
}
