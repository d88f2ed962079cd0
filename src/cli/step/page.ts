import { shown } from '../../core/host/history/shown.ts';
import type { Describe } from '../../core/host/history/words.ts';
import type { Format } from '../../core/host/terminal.ts';
import { duration, jsonText, plainText, shortValue, stateName, timestamp } from '../../core/host/terminal.ts';
import { isObject } from '../../core/kernel/json.ts';
import { delayOf, type LogRecord } from '../../core/kernel/log/record.ts';
import type { Candidate } from '../../core/kernel/replay/guards.ts';
import { marksOf } from '../log/record-page.ts';
import type { Detail } from './log.ts';

/** A line of the page; what does not fit the terminal is cut when it is drawn. */
export interface PageLine {
  readonly text: string;
  readonly format?: Format;
}

const TITLE = 10;

/** One record as the viewer shows it, top down: the event, the machine's decision and why, the effects. */
export function pageOf({ family, before, candidates }: Detail, describe: Describe): PageLine[] {
  const record = shown(family.record);
  const { from, to, event, outcome } = record;
  const words = describe(record);
  const { type, ...fields } = event;
  const start = from === undefined ? '' : `${stateName(from)} → `;
  return [
    row('record', `${record.seq}  ${timestamp(record.at, 'ms')}  story …${record.correlation.slice(-8)}`),
    row('actor', `${record.actor}  (${record.machine}, version ${record.version})`),
    row(
      'event',
      `${delayOf(type) ?? type}${outcome === undefined ? '' : outcomeText(family.cause, record)}`,
      'bold',
    ),
    ...(words ? [row('in words', words)] : []),
    row('state', `${start}${stateName(to.value)}${to.done ? ' (final)' : ''}`, 'bold'),
    ...marksOf(record).map((mark) => row('', mark, 'yellow')),
    ...decidedLines(candidates),
    ...changes(to.context, before?.context),
    ...family.effects.flatMap(({ id, effect, fate }, index) => {
      const timer = (effect.params as { timer?: string } | undefined)?.timer;
      const name = timer === undefined ? effect.type : `${effect.type} ${delayOf(timer) ?? timer}`;
      const end =
        fate.kind === 'outcome'
          ? `→ ${delayOf(fate.record.event.type) ?? fate.record.event.type} in record ${fate.record.seq}, ${duration(fate.record.at - record.at)} later`
          : fate.kind === 'cancelled'
            ? `→ cancelled by record ${fate.record.seq}`
            : fate.kind === 'open'
              ? '→ no outcome here'
              : '';
      const params = record.effects[index]?.params;
      const isLong = params !== undefined && timer === undefined;
      return [
        row(index === 0 ? 'effects' : '', `${id} ${name}  ${end}`, fate.kind === 'open' ? 'yellow' : 'bold'),
        ...(isLong ? fieldLines(params) : []),
      ];
    }),
    ...fieldLines(fields, 'fields'),
    ...(family.cause ? [row('cause', relative(family.cause))] : []),
    ...family.children.map((child, index) => row(index === 0 ? 'led to' : '', relative(child))),
  ];
}

function row(title: string, text: string, format?: Format): PageLine {
  return { text: plainText(`${title.padEnd(TITLE)}${text}`), ...(format !== undefined && { format }) };
}

/** A field a line, as JSON; all of them, so they come last where it is long. */
function fieldLines(value: unknown, title = ''): PageLine[] {
  const named = isObject(value) ? Object.entries(value) : [['', value] as const];
  return named.map(([name, field], index) =>
    row(index === 0 ? title : '', `${name && `${name}: `}${jsonText(field)}`, 'dim'),
  );
}

function outcomeText(cause: LogRecord | undefined, { outcome = '', at }: LogRecord): string {
  const effect = cause?.effects[Number(outcome.split('.')[1])];
  const what =
    effect && !delayOf((effect.params as { timer?: string } | undefined)?.timer ?? '')
      ? ` ${effect.type}`
      : '';
  return `  (outcome of ${outcome}${what}${cause ? `, requested ${duration(at - cause.at)} before` : ''})`;
}

/** Guards that refused one after another share a line. */
function decidedLines(candidates: readonly Candidate[]): PageLine[] {
  const lines: { readonly place: string; readonly refused: string[]; readonly taken?: Candidate }[] = [];
  for (const candidate of candidates) {
    const place = candidate.state === '' ? 'anywhere' : `in ${candidate.state}`;
    const last = lines.at(-1);
    if (candidate.taken) lines.push({ place, refused: [], taken: candidate });
    else if (last && !last.taken && last.place === place) last.refused.push(candidate.guard ?? '');
    else lines.push({ place, refused: [candidate.guard ?? ''] });
  }
  return lines.map(({ place, refused, taken }, index) => {
    const title = index === 0 ? 'decided' : '';
    if (!taken) return row(title, `${place}: ${refused.join(', ')} refused`, 'dim');
    const why = taken.guard === undefined ? 'no guard' : `${taken.guard} allowed it`;
    return row(
      title,
      `${place}: ${why}, ${taken.target === undefined ? 'it stays' : `to ${taken.target}`}`,
      'green',
    );
  });
}

/** Each field of the context that changed: before, after. */
function changes(patch: LogRecord['to']['context'], before: unknown): PageLine[] {
  const old = (before ?? {}) as Readonly<Record<string, unknown>>;
  return Object.entries(patch ?? {}).map(([name, value], index) => {
    const had = before === undefined ? '' : `${name in old ? shortValue(old[name]) : 'nothing'} → `;
    return row(
      index === 0 ? 'context' : '',
      `${name}: ${had}${value === null ? 'nothing' : shortValue(value)}`,
    );
  });
}

function relative({ seq, actor, event }: LogRecord): string {
  return `${seq} ${actor}  ${delayOf(event.type) ?? event.type}`;
}
