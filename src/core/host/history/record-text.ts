import { EFFECT_DONE, EFFECT_FAILED, EFFECT_LOST } from '../../kernel/actors/effect.ts';
import { parseActorRef } from '../../kernel/ids.ts';
import { isObject } from '../../kernel/json.ts';
import {
  ADOPT,
  CLOCK_SET,
  delayOf,
  type EffectRequest,
  INIT,
  type LogRecord,
  type StateValue,
  TIMER_CANCEL,
  timerOf,
  timerStartOf,
} from '../../kernel/log/record.ts';
import { HTTP_REPLY } from '../http/pending-replies.ts';
import { duration, plainText, shortFields, shortValue, stateName } from '../terminal.ts';
import { shown } from './shown.ts';
import type { PluginWords } from './words.ts';

/** How much of a record's text is searched, characters: more than a line shows of it. */
const LONGEST_TEXT = 4_096;
/** A time in an event that differs less from the record's time than this is not shown. */
const SAME_TIME_MS = 1_000;

export type Tone = 'plain' | 'quiet' | 'warning' | 'failure';

/** The text of a record's line. */
export interface RecordText {
  readonly what: string;
  readonly tone: Tone;
  /** The old and the new state; empty when the state did not change. */
  readonly state: string;
  readonly effects: readonly string[];
}

/**
 * @param described the plugin's description of it
 * @param all name every effect, also timers that it cancels
 */
export function recordText(record: LogRecord, described: string | undefined, all: boolean): RecordText {
  const { ignored, stale, failed } = record;
  const marks = [failed !== undefined && 'machine threw', stale ? 'stale' : ignored && 'ignored'].filter(
    Boolean,
  );
  const words = described ? plainText(described) : eventText(record);
  return {
    what: [words, ...marks.map((mark) => `(${mark})`)].join(' '),
    tone: toneOf(record),
    state: plainText(stateText(record.from, record.to.value)),
    effects: record.effects
      .flatMap((effect) => effectText(effect, record, all, described === undefined || all))
      .map(plainText),
  };
}

function eventText({ event, actor, correlation, at }: LogRecord): string {
  const { type, ...fields } = event;
  const timer = delayOf(type);
  if (timer !== undefined) return `after ${timer}`;
  if (type === INIT) return ['starts', ...shortFields(isObject(fields.input) ? fields.input : {})].join(' ');
  if (type === ADOPT)
    return `taken over from host ${plainText(String(fields.host))}, as of its record ${shortValue(fields.seq)}`;
  if (type === EFFECT_DONE) return `${shortValue(fields.effect)} done`;
  if (type === CLOCK_SET) return `follows the clock, which was set ${setText(Number(fields.byMs))}`;
  if (type === EFFECT_LOST) return `${shortValue(fields.effect)} was lost with the process`;
  if (type === EFFECT_FAILED) {
    return `${shortValue(fields.effect)} failed: ${fields.code} ${plainText(String(fields.message))}`;
  }
  // Fields that the line shows elsewhere are left out.
  const { key } = parseActorRef(actor);
  const news = Object.entries(fields).flatMap(([name, value]): [string, unknown][] => {
    if (value === key || value === correlation) return [];
    if (!isTime(value)) return [[name, value]];
    return Math.abs(value - at) < SAME_TIME_MS ? [] : [[name, new Date(value).toISOString().slice(0, 19)]];
  });
  return [plainText(type), ...shortFields(Object.fromEntries(news))].join(' ');
}

function setText(byMs: number): string {
  return `${duration(Math.abs(byMs))} ${byMs > 0 ? 'ahead' : 'back'}`;
}

/** Epoch milliseconds of this age of the world. */
function isTime(value: unknown): value is number {
  return typeof value === 'number' && value > 1e12 && value < 4e12;
}

function toneOf({ failed, event, ignored }: LogRecord): Tone {
  if (failed !== undefined || event.type === EFFECT_FAILED) return 'failure';
  if (event.type === EFFECT_LOST) return 'warning';
  return ignored || delayOf(event.type) !== undefined ? 'quiet' : 'plain';
}

/** What changed: `closed→open`; of a parallel machine only the regions that moved. */
function stateText(from: StateValue | undefined, to: StateValue): string {
  if (from === undefined) return `→${stateName(to)}`;
  if (typeof from === 'string' || typeof to === 'string') {
    return stateName(from) === stateName(to) ? '' : `${stateName(from)}→${stateName(to)}`;
  }
  return Object.keys(to)
    .flatMap((region) => {
      const change = stateText(from[region] ?? '', to[region] ?? '');
      return change ? [`${region}: ${change}`] : [];
    })
    .join(', ');
}

/** @param whole with its parameters; a plugin's own words for the record are enough */
function effectText(effect: EffectRequest, record: LogRecord, all: boolean, whole: boolean): string[] {
  const { type, params } = effect;
  const start = timerStartOf(effect);
  if (start) {
    const { timer, at } = start;
    return [`timer ${delayOf(timer) ?? timer} in ${duration(at - record.at)}`];
  }
  if (type === TIMER_CANCEL) {
    const timer = timerOf(effect) ?? '';
    return all ? [`timer ${delayOf(timer) ?? timer} off`] : [];
  }
  const fields: Record<string, unknown> = isObject(params) ? params : {};
  if (type === HTTP_REPLY) return [`${type} ${shortValue(fields.status)}`];
  if (!whole) return [type];
  const shown = new Set<unknown>([
    ...Object.values(record.event),
    parseActorRef(record.actor).key,
    record.correlation,
  ]);
  const news = Object.entries(fields).filter(([, value]) => !shown.has(value) && !isObject(value));
  return [[type, ...news.slice(0, 2).flatMap(([name, value]) => shortFields({ [name]: value }))].join(' ')];
}

/**
 * The text of a record as its line prints it: actor, what happened, states and effects.
 *
 * @param all as with `--all`
 */
export async function printedText(record: LogRecord, words: PluginWords, all: boolean): Promise<string> {
  await words.prepare([record]);
  const printable = shown(record);
  const { what, state, effects } = recordText(printable, words.describe(printable) || undefined, all);
  const requested = effects.length > 0 ? `⇒ ${effects.join(', ')}` : '';
  return [plainText(printable.actor), what, state, requested]
    .filter(Boolean)
    .join('  ')
    .slice(0, LONGEST_TEXT);
}
