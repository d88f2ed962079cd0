import type { Terminal } from '../../core/host/terminal.ts';
import { duration, plainText, timestamp } from '../../core/host/terminal.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import type { Asked, Family } from './family.ts';
import { jsonLines } from './json-lines.ts';
import { Layout } from './layout.ts';
import { stateName } from './record-text.ts';
import { shown } from './source.ts';
import { type Describe, Story } from './story.ts';

const TITLE_WIDTH = 12;

/** One record whole, with its cause, the fates of its effects, and what it led to. */
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
    ...eventLines(record, title('event'), terminal),
    ...(words ? [`${title('in words')}${plainText(words)}`] : []),
    `${title('state')}${states(record)}`,
    ...marksOf(record).map((mark) => `${title('')}${paint('yellow', plainText(mark))}`),
    ...(record.to.context
      ? [`${title('context')}what changes; null is gone`, ...jsonLines(record.to.context, '  ')]
      : []),
    ...(family.asked.length > 0 ? [paint('bold', 'effects')] : []),
    ...family.asked.flatMap((asked, index) => [
      `  ${asked.id}  ${paint('bold', plainText(asked.effect.type))}  ${fateText(asked, record.at, paint)}`,
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

function states({ from, to }: LogRecord): string {
  const before = from === undefined ? '' : `${stateName(from)} → `;
  return plainText(`${before}${stateName(to.value)}${to.done ? ' (final)' : ''}`);
}

function marksOf({ ignored, stale, failed }: LogRecord): string[] {
  return [
    ...(failed === undefined ? [] : [`the machine threw: ${failed}`]),
    ...(stale ? ['stale: nothing waited for this outcome any more'] : []),
    ...(ignored && !stale ? ['ignored: the state has no transition for it'] : []),
  ];
}

function fateText({ fate }: Asked, askedAt: number, paint: Terminal['paint']): string {
  switch (fate.kind) {
    case 'outcome': {
      const { seq, at, event } = fate.record;
      return plainText(`${event.type} in record ${seq}, ${duration(at - askedAt)} later`);
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
