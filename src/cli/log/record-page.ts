import type { Family, RequestedEffect } from '../../core/host/history/family.ts';
import { shown } from '../../core/host/history/shown.ts';
import { Story } from '../../core/host/history/story.ts';
import type { Describe } from '../../core/host/history/words.ts';
import {
  duration,
  jsonLines,
  plainText,
  stateName,
  type Terminal,
  timestamp,
} from '../../core/host/terminal.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import { originText, senderText } from '../../core/kernel/replay/explain.ts';
import { Layout } from './layout.ts';

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
    ...(record.origin === undefined ? [] : [`${title('origin')}${plainText(originText(record.origin))}`]),
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
