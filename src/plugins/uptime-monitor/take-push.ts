import type { ActorSystem } from '../../core/kernel/actors/system.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { TEXT_KEPT } from '../../machines/uptime-monitor/diagnosis.ts';
import { monitorActor } from './actor.ts';
import type { PushTokens } from './push-tokens.ts';

/** The answer to a push: 200 or 404 as old clients expect, with details in `msg` and `reason`. */
export interface PushReply {
  readonly status: 200 | 404;
  readonly body: {
    readonly ok: boolean;
    readonly msg?: string;
    readonly reason?: 'unknown-token' | 'paused' | 'bad-value' | 'busy';
  };
}

export interface PushReceiver {
  readonly actors: ActorSystem;
  readonly clock: Clock;
  readonly tokens: PushTokens;
  readonly beats: Map<string, BeatRing>;
}

/** Milliseconds: some three years, the largest that Uptime Kuma takes. */
const LARGEST_PING = 100_000_000_000;
const NOT_ACTIVE = 'Monitor not found or not active';

/**
 * Takes one push. The monitor's machine decides what it means. A beat of a monitor that is up is answered when its record
 * is queued, any other when it is durable.
 */
export async function takePush(
  { actors, clock, tokens, beats }: PushReceiver,
  token: string,
  query: Readonly<Record<string, unknown>>,
): Promise<PushReply> {
  const name = tokens.nameOf(token);
  if (name === undefined) return refused('unknown-token', `${NOT_ACTIVE}: no monitor has this push token.`);
  // An empty value counts as absent, as with Uptime Kuma.
  const { status: stated, msg: message, ping: pinged = '', probe } = query;
  const status = stated || 'up';
  const msg = message || 'OK';
  if (typeof status !== 'string' || typeof msg !== 'string' || typeof pinged !== 'string') {
    return refused('bad-value', 'Invalid value: status, msg and ping may be given once each.');
  }
  const ping = pinged === '' ? undefined : Number(pinged);
  if (ping !== undefined && (!/^\d+$/.test(pinged) || ping > LARGEST_PING)) {
    return refused(
      'bad-value',
      `Invalid ping value: it must be a non-negative integer of milliseconds, at most ${LARGEST_PING}.`,
    );
  }
  if (!actors.accepting()) return busy();
  if (probe !== undefined) return probed(actors, name);
  const at = clock.now();
  const up = status === 'up';
  const said = plain(msg);
  try {
    const sent = actors.send(monitorActor, name, {
      type: 'BEAT',
      at,
      up,
      msg: said,
      ...(ping !== undefined && { ping }),
    });
    const record = sent.record?.batched ? sent.record : await sent.durable();
    if (record.to.value === 'paused') return paused(name);
  } catch (error) {
    if (isCoded(error, 'HF_ACTOR_OVERLOADED')) return busy();
    throw error;
  }
  const ring = beats.get(name) ?? new BeatRing();
  beats.set(name, ring);
  ring.add({ at, up, ...(ping !== undefined && { ping }) });
  if (up) return { status: 200, body: { ok: true } };
  const word = status === 'down' ? '' : ', for its status is not exactly up';
  return { status: 200, body: { ok: true, msg: `${name} is DOWN now${word}.` } };
}

/** Tells whether a beat would be taken. Nothing is recorded, so a probe cannot make a sick sender look healthy. */
function probed(actors: ActorSystem, name: string): PushReply {
  if (actors.get(monitorActor, name)?.value === 'paused') return paused(name);
  return { status: 200, body: { ok: true, msg: `${name} would take a beat; this was none.` } };
}

function paused(name: string): PushReply {
  return refused('paused', `${NOT_ACTIVE}: ${name} is paused.`);
}

function refused(reason: NonNullable<PushReply['body']['reason']>, msg: string): PushReply {
  return { status: 404, body: { ok: false, msg, reason } };
}

function busy(): PushReply {
  return refused('busy', 'Busy: no beat can be recorded at the moment. Push again in some seconds.');
}

/** One bounded line without control characters. */
function plain(text: string): string {
  return text
    .slice(0, TEXT_KEPT)
    .replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]+/gu, ' ')
    .trim();
}

/** A beat as pages show it. */
export interface ShownBeat {
  readonly at: number;
  readonly up: boolean;
  readonly ping?: number;
}

/** Beats kept for each monitor: 1.3 KB. */
const BEATS_KEPT = 100;

/** The newest beats of one monitor since the start, for pages and badges. No decision depends on them. */
export class BeatRing {
  readonly #at = new Float64Array(BEATS_KEPT);
  readonly #ping = new Int32Array(BEATS_KEPT);
  readonly #up = new Uint8Array(BEATS_KEPT);
  #count = 0;

  add({ at, up, ping = -1 }: ShownBeat): void {
    const index = this.#count % BEATS_KEPT;
    this.#at[index] = at;
    this.#up[index] = up ? 1 : 0;
    this.#ping[index] = Math.min(ping, 2 ** 31 - 1);
    this.#count += 1;
  }

  /** Oldest first. */
  list(): ShownBeat[] {
    const kept = Math.min(this.#count, BEATS_KEPT);
    return Array.from({ length: kept }, (_, offset) => {
      const index = (this.#count - kept + offset) % BEATS_KEPT;
      const ping = this.#ping[index] ?? -1;
      return { at: this.#at[index] ?? 0, up: this.#up[index] === 1, ...(ping >= 0 && { ping }) };
    });
  }
}
