import { recordText } from '../../core/host/history/record-text.ts';
import { shown } from '../../core/host/history/shown.ts';
import type { Describe } from '../../core/host/history/words.ts';
import type { Format, Terminal } from '../../core/host/terminal.ts';
import { cut, cutMiddle, plainText, timeOfDay } from '../../core/host/terminal.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import type { PageLine } from './page.ts';
import type { Viewer } from './viewer.ts';

/** Characters and lines of a terminal. */
export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** What a frame shows besides the viewer. */
export interface Scene {
  /** The name of the folder or file. */
  readonly source: string;
  readonly first: number;
  readonly last: number;
  /** Records around the one the viewer stands on, in order. */
  readonly around: readonly LogRecord[];
  readonly page: readonly PageLine[];
}

const KEYS: readonly string[] = [
  '↑↓ jk record · PgUp PgDn page · gG ends · ←→ cause, effect · np story',
  'a this actor · c this story · / search · : jump · du scroll · ? help · q quit',
];
const HELP: readonly string[] = [
  'Keys of holdfast replay step (any key goes back)',
  '  down j space    the next record           up k    the one before',
  '  PgDn PgUp       a page of records on, back',
  '  g Home          the first record          G End   the last',
  '  right l         the first record that this one led to',
  '  left h          the record that led to this one',
  '  n p             the next, the previous record of this story (across actors)',
  '  a               only this actor; again: all',
  '  c               only this story; again: all',
  '  d u             scroll the record down, up',
  '  /text           the next record with that text in it; / and Enter: again',
  '  :120            record 120                :03:05  the record at that time',
  '  :actor router   only such actors (* stands for anything); :actor alone: all',
  '  Ctrl-Z          to the shell; fg comes back',
  '  q Ctrl-C        quit',
  '`decided` lists the transitions of the state for this event in the order in',
  'which they were tried: the guards that refused, and the transition taken.',
];
/** Title, three rules, the line for notes, and the keys. */
const AROUND = 5 + KEYS.length;
/** Where a long line goes on. */
const CONTINUED = 12;
const LEAST: Size = { columns: 20, rows: AROUND + 2 };

/** How many rows the list of records and the page of one record get on a terminal of this size. */
export function rowsFor({ rows }: Size): { list: number; page: number } {
  const room = Math.max(LEAST.rows, rows) - AROUND;
  const list = Math.max(1, Math.min(Math.floor(room / 3), 12));
  return { list, page: room - list };
}

/** The greatest number of lines by which the page can be scrolled. */
export function maxScroll(page: readonly PageLine[], size: Size): number {
  return Math.max(0, wrapLines(page, widthOf(size)).length - rowsFor(size).page);
}

/** The last column stays free: some terminals would wrap. */
function widthOf({ columns }: Size): number {
  return Math.max(LEAST.columns, columns) - 1;
}

/** A long line of a page is not cut but continues on the next row, indented. */
function wrapLines(page: readonly PageLine[], width: number): PageLine[] {
  const indent = ' '.repeat(Math.min(CONTINUED, Math.floor(width / 3)));
  return page.flatMap(({ text, format }) => {
    const lines = [text.slice(0, width)];
    const step = width - indent.length;
    for (let at = width; at < text.length; at += step) lines.push(indent + text.slice(at, at + step));
    return lines.map((line) => ({ text: line, ...(format !== undefined && { format }) }));
  });
}

/** The whole screen as lines, each no wider than the terminal: as many as it has rows. */
export function frame(
  viewer: Viewer,
  scene: Scene,
  size: Size,
  paint: Terminal['paint'],
  describe: Describe,
): string[] {
  const width = widthOf(size);
  const lines = wrapLines(scene.page, width);
  const line = (text: string, format?: Format) => {
    const plain = cut(plainText(text), width);
    return format === undefined ? plain : paint(format, plain);
  };
  const { list, page } = rowsFor(size);
  const rule = line('─'.repeat(width), 'dim');
  const scroll = Math.min(viewer.scroll, Math.max(0, lines.length - page));
  const inside = viewer.help
    ? padLines(
        HELP.map((text) => line(text)),
        list + page + 1,
      )
    : [
        ...padLines(
          scene.around.map((record) => recordLine(record, viewer, width, line, describe)),
          list,
        ),
        rule,
        ...padLines(
          lines.slice(scroll).map(({ text, format }) => line(text, format)),
          page,
        ),
      ];
  const below = lines.length - scroll - page;
  const more =
    !viewer.help && (below > 0 || scroll > 0)
      ? ` (${scroll > 0 ? 'u: up' : ''}${scroll > 0 && below > 0 ? ', ' : ''}${below > 0 ? `d: ${below} more lines` : ''})`
      : '';
  return [
    line(titleOf(viewer, scene, width), 'bold'),
    rule,
    ...inside,
    rule,
    line(viewer.prompt ? `${viewer.prompt.kind}${viewer.prompt.text}_` : `${viewer.note}${more}`, 'yellow'),
    ...KEYS.map((text) => line(text, 'dim')),
  ].slice(0, Math.max(LEAST.rows, size.rows));
}

function titleOf({ here, filter }: Viewer, { source, last }: Scene, width: number): string {
  const narrowed = [
    filter.actor === undefined ? '' : `  actor ${filter.actor}`,
    filter.story === undefined ? '' : `  story …${filter.story.slice(-4)}`,
  ].join('');
  const place = `record ${here.seq} of ${last}${narrowed}`;
  return `${cutMiddle(source, Math.max(8, width - place.length - 3))}   ${place}`;
}

/** `>` marks the record that the page shows, because a terminal may have no colours. */
function recordLine(
  record: LogRecord,
  { here }: Viewer,
  width: number,
  line: (text: string, format?: Format) => string,
  describe: Describe,
): string {
  const isHere = record.seq === here.seq;
  const { what, state, effects } = recordText(shown(record), describe(record) || undefined, false);
  const actor = cutMiddle(record.actor, Math.max(12, Math.min(26, Math.floor(width / 4))));
  const story = record.correlation === here.correlation ? '*' : ' ';
  const asks = effects.length > 0 ? `  ⇒ ${effects.join(', ')}` : '';
  const text = `${isHere ? '>' : ' '}${story}${timeOfDay(record.at)} ${record.seq}  ${actor}  ${what}${state ? `  ${state}` : ''}${asks}`;
  return line(text, isHere ? 'inverse' : undefined);
}

function padLines(lines: readonly string[], count: number): string[] {
  return Array.from({ length: count }, (_, index) => lines[index] ?? '');
}
