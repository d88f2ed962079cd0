import type { ActorSystem } from '../../core/kernel/actors/system.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { TEXT_KEPT } from '../../machines/uptime-monitor/diagnosis.ts';
import { monitorActor } from './actor.ts';
import type { BeatHistory } from './beat-history.ts';
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
  readonly beats: BeatHistory;
}

/** Milliseconds: some three years, the largest that Uptime Kuma takes. */
const LARGEST_PING = 100_000_000_000;
const NOT_ACTIVE = 'Monitor not found or not active';

/**
 * Takes one push. The monitor's machine decides what it means; the answer follows when its record is durable.
 */
export async function takePush(
  { actors, clock, tokens, beats }: PushReceiver,
  token: string,
  query: Readonly<Record<string, unknown>>,
): Promise<PushReply> {
  const name = tokens.nameOf(token);
  if (name === undefined) return refused('unknown-token', `${NOT_ACTIVE}: no monitor has this push token.`);
  // As with Uptime Kuma: an empty value counts as absent, and a status that is given twice is not exactly `up`.
  const { status = '', msg: message = '', ping: pinged, probe } = query;
  const ping = pingOf(pinged);
  if (ping !== undefined && (ping < 0 || ping > LARGEST_PING)) {
    return refused('bad-value', `Invalid ping value: it must be from 0 to ${LARGEST_PING} milliseconds.`);
  }
  if (!actors.accepting()) return busy();
  if (probe !== undefined) return probed(actors, name);
  const at = clock.now();
  const up = status === 'up' || status === '';
  const msg = message === '' ? (up ? 'OK' : 'it gives no reason') : String(message);
  try {
    const record = await actors
      .send(monitorActor, name, {
        type: 'BEAT',
        at,
        up,
        msg: plain(msg),
        ...(ping !== undefined && { ping }),
      })
      .durable();
    if (record.to.value === 'paused') return paused(name);
  } catch (error) {
    if (isCoded(error, 'HF_ACTOR_OVERLOADED')) return busy();
    throw error;
  }
  beats.add(name, { at, up, ...(ping !== undefined && { ping }) });
  if (up) return { status: 200, body: { ok: true } };
  const word = status === 'down' ? '' : ', for its status is not exactly up';
  return { status: 200, body: { ok: true, msg: `${name} is DOWN now${word}.` } };
}

/**
 * The number at the start of a text, as Uptime Kuma reads it: `1.5`, `12ms` and `1e3` are pings; of a parameter that is
 * given twice the first counts, and a text without a number is no ping.
 */
function pingOf(value: unknown): number | undefined {
  const ping = Number.parseFloat(String(value));
  return Number.isNaN(ping) ? undefined : ping;
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
