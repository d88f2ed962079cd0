import {
  duration,
  jsonLines,
  plainText,
  stateName,
  type Terminal,
  timestamp,
} from '../../core/host/terminal.ts';
import { effectId } from '../../core/kernel/ids.ts';
import {
  type EffectRequest,
  type LogRecord,
  TIMER_CANCEL,
  timerOf,
  timerStartOf,
} from '../../core/kernel/log/record.ts';
import type { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';
import { senderText } from '../../core/kernel/replay/explain.ts';
import { type Since, sinceOf } from '../../core/kernel/replay/since.ts';
import { Layout } from './layout.ts';
import { shown } from './source.ts';
import { Story } from './story.ts';
import type { Describe } from './words.ts';

/** How an effect or timer that a record requested ended. */
export type Fate =
  | { readonly kind: 'outcome'; readonly record: LogRecord }
  | { readonly kind: 'cancelled'; readonly record: LogRecord }
  | { readonly kind: 'open' }
  /** It needs no outcome: the cancellation of a timer. */
  | { readonly kind: 'done' };

export interface RequestedEffect {
  readonly id: string;
  readonly effect: EffectRequest;
  readonly fate: Fate;
}

/** A record with its cause and its consequences. */
export interface Family {
  readonly record: LogRecord;
  readonly cause: LogRecord | undefined;
  /** Absent for an actor's first record. */
  readonly since: Since | undefined;
  readonly effects: readonly RequestedEffect[];
  /** Records of the same story that name it as their cause, outcomes included. */
  readonly children: readonly LogRecord[];
}

/**
 * @param most how many later records are searched for outcomes, so that a viewer need not wait for a long story
 * @throws HF_LOG_RANGE there is no such record; HF_LOG_CORRUPT
 */
export async function familyOf(
  log: SqliteReader,
  seq: number,
  most = Number.POSITIVE_INFINITY,
): Promise<Family> {
  const record = log.record(seq);
  const cause =
    record.cause !== undefined && record.cause >= log.firstSeq() ? log.record(record.cause) : undefined;
  const children: LogRecord[] = [];
  for await (const later of log.read({ from: seq + 1, correlation: record.correlation, limit: most })) {
    if (later.cause === seq) children.push(later);
  }
  const effects: RequestedEffect[] = [];
  for (const [index, effect] of record.effects.entries()) {
    const id = effectId(seq, index);
    const outcome = children.find((child) => child.outcome === id && !child.stale);
    const fate: Fate = outcome
      ? { kind: 'outcome', record: outcome }
      : await fateWithout(log, record, effect, most);
    effects.push({ id, effect, fate });
  }
  return { record, cause, since: sinceOf(log, record), effects, children };
}

/** The fate of an effect without an outcome. */
async function fateWithout(
  log: SqliteReader,
  { seq, actor }: LogRecord,
  effect: EffectRequest,
  most: number,
): Promise<Fate> {
  if (effect.type === TIMER_CANCEL) return { kind: 'done' };
  const timer = timerStartOf(effect)?.timer;
  if (timer === undefined) return { kind: 'open' };
  for await (const record of log.read({ from: seq + 1, actor, limit: most })) {
    if (record.effects.some((each) => timerOf(each) === timer)) return { kind: 'cancelled', record };
  }
  return { kind: 'open' };
}

const TITLE_WIDTH = 12;

/** One record in full, with its cause, its effects with their outcomes, and the records that it caused. */
export function recordPage(family: Family, describe: Describe, terminal: Terminal): string[] {
  const { paint } = terminal;
  const record = shown(family.record);
  const title = (text: string) => paint('bold', text.padEnd(TITLE_WIDTH));
  const words = describe(record);
  const story = new Story({ all: true, describe });
  const layout = new Layout(terminal, family.children.at(-1)?.seq ?? record.seq);
  const relatives = (heading: string, records: readonly LogRecord[]) =>
    records.length === 0 ? [] : [paint('bold', heading), ...layout.lines(story.add(records.map(shown)))];
  return [
    `${title('record')}${record.seq}  ${timestamp(record.at, 'ms')}`,
    `${title('actor')}${plainText(`${record.actor}  (${record.machine}, version ${record.version})`)}`,
    `${title('story')}${plainText(record.correlation)}`,
    ...(record.uid === undefined ? [] : [`${title('by')}${senderText(record.uid)}`]),
    ...eventLines(record, title('event'), terminal),
    ...(words ? [`${title('in words')}${plainText(words)}`] : []),
    `${title('state')}${states(record)}`,
    ...sinceLines(family, describe).map((line) => `${title('since')}${plainText(line)}`),
    ...marksOf(record).map((mark) => `${title('')}${paint('yellow', plainText(mark))}`),
    ...(record.to.context
      ? [
          `${title('context')}what changed (null: the field was removed)`,
          ...jsonLines(record.to.context, '  '),
        ]
      : []),
    ...(family.effects.length > 0 ? [paint('bold', 'effects')] : []),
    ...family.effects.flatMap((requested, index) => [
      `  ${requested.id}  ${paint('bold', plainText(requested.effect.type))}  ${fateText(requested, record.at, paint)}`,
      ...optionalJson(record.effects[index]?.params, '    '),
    ]),
    ...relatives('cause', family.cause ? [family.cause] : []),
    ...relatives('led to', family.children),
  ];
}

function eventLines({ event, outcome }: LogRecord, title: string, { paint }: Terminal): string[] {
  const { type, ...fields } = event;
  const answers = outcome === undefined ? '' : `  (outcome of ${outcome})`;
  const lines = Object.keys(fields).length === 0 ? [] : jsonLines(fields, '  ');
  return [`${title}${paint('bold', plainText(type))}${answers}`, ...lines];
}

/** Since when the actor was in the state before, and which record made the revision that decided. */
function sinceLines({ record, since }: Family, describe: Describe): string[] {
  if (!since) return [];
  const { entered, decidedBy } = since;
  const text = (earlier: LogRecord) => {
    const words = describe(shown(earlier)) || earlier.event.type;
    return `record ${earlier.seq}: ${words}, ${duration(record.at - earlier.at)} before`;
  };
  const state = stateName(record.from ?? '');
  return [
    entered ? `${state}: ${text(entered)}` : `${state}: before this log begins`,
    ...(decidedBy ? [`revision ${decidedBy.revision}: ${text(decidedBy.record)}`] : []),
  ];
}

function states({ from, to }: LogRecord): string {
  const before = from === undefined ? '' : `${stateName(from)} → `;
  return plainText(`${before}${stateName(to.value)}${to.done ? ' (final)' : ''}`);
}

/** What is unusual about a record's decision, a sentence each. */
export function marksOf({ ignored, stale, failed }: LogRecord): string[] {
  return [
    ...(failed === undefined ? [] : [`the machine threw: ${failed}`]),
    ...(stale ? ['stale: nothing was waiting for this outcome any more'] : []),
    ...(ignored && !stale ? ['ignored: the state has no transition for it'] : []),
  ];
}

function fateText({ fate }: RequestedEffect, requestedAt: number, paint: Terminal['paint']): string {
  switch (fate.kind) {
    case 'outcome': {
      const { seq, at, event } = fate.record;
      return plainText(`${event.type} in record ${seq}, ${duration(at - requestedAt)} later`);
    }
    case 'cancelled':
      return `cancelled by record ${fate.record.seq}`;
    case 'open':
      return paint('yellow', 'no outcome yet');
    case 'done':
      return '';
  }
}

function optionalJson(value: unknown, indent: string): string[] {
  return value === undefined ? [] : jsonLines(value, indent);
}
