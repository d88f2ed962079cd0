import type { RecordText, Tone } from '../../core/host/history/record-text.ts';
import type { StoryLine } from '../../core/host/history/story.ts';
import type { Format, Terminal } from '../../core/host/terminal.ts';
import { cut, cutMiddle, plainText, timeOfDay } from '../../core/host/terminal.ts';
import { parseActorRef } from '../../core/kernel/ids.ts';

const TIME_WIDTH = 12;
const SEQ_WIDTH = 3;
const CORRELATION_WIDTH = 4;
/** With fewer columns beside the actor, the text is printed below it, indented by `BELOW`. */
const LEAST_ROOM = 32;
const BELOW = 4;
const ACTOR_WIDTHS = { least: 14, most: 25 };
/** The text of a record is cut after so many lines; `log show` prints all of it. */
const MOST_LINES = 4;
/** When one line stands for more actors than this, they are only counted. */
const KEYS_SHOWN = 3;

const TONES: Readonly<Record<Tone, Format | undefined>> = {
  plain: undefined,
  quiet: 'dim',
  warning: 'yellow',
  failure: 'red',
};
const ACTOR_COLOURS: readonly Format[] = ['cyan', 'magenta', 'blue', 'green', 'yellow'];

interface Word {
  readonly text: string;
  readonly format: Format | undefined;
  /** The space before it. */
  readonly gap: string;
}

/** Said where a list ends at its limit. */
export const LEFT_OUT = '(older records are left out; --limit 0 shows all)';

/**
 * Lays out lines in columns: time, record number, actor, what happened, states and effects; at the right end the cause and
 * the last characters of the correlation id.
 */
export class Layout {
  readonly #terminal: Pick<Terminal, 'columns' | 'paint'>;
  #seqWidth: number;
  #actorWidth = ACTOR_WIDTHS.least;
  readonly #hostWidth: number;
  #day = '';

  /**
   * @param newestSeq the largest number expected, for the width of its column
   * @param hosts whose records are laid out; none where all are of one host
   */
  constructor(
    terminal: Pick<Terminal, 'columns' | 'paint'>,
    newestSeq: number,
    hosts: readonly string[] = [],
  ) {
    this.#terminal = terminal;
    this.#hostWidth = Math.max(0, ...hosts.map((host) => host.length + 2));
    this.#seqWidth = Math.max(SEQ_WIDTH, String(newestSeq).length);
  }

  /** @returns the lines to print, with a heading wherever a new day begins (UTC) @param host that recorded them */
  lines(story: readonly StoryLine[], host = ''): string[] {
    for (const { records } of story) {
      this.#seqWidth = Math.max(this.#seqWidth, String(records.at(-1)?.seq).length);
      this.#actorWidth = Math.min(
        Math.max(this.#actorWidth, actorName(records.map(({ actor }) => actor)).length),
        ACTOR_WIDTHS.most,
      );
    }
    return story.flatMap((line) => this.#line(line, host));
  }

  #line({ records, text, cause }: StoryLine, host: string): string[] {
    const { paint, columns } = this.#terminal;
    const [first] = records;
    if (!first) return [];
    const iso = new Date(first.at).toISOString();
    const actors = records.map(({ actor }) => actor);
    const actor = cutMiddle(actorName(actors), this.#actorWidth);
    const column = TIME_WIDTH + 1 + this.#hostWidth + this.#seqWidth + 2 + this.#actorWidth + 2;
    const end = this.#end(cause, first.correlation);
    const room = columns - column - end.length - 2;
    // On a narrow terminal the text is printed below the actor, where there is room for it.
    const below = room < LEAST_ROOM;
    const indent = below ? BELOW : column;
    const all = fill(words(text, actors), below ? columns - indent : room, columns - indent);
    const [head = [], ...rest] = below ? [[], ...all] : all;
    const shown = (line: readonly Word[]) =>
      line.map(({ gap, ...word }) => gap + painted(word, paint)).join('');
    const width = head.reduce((sum, { gap, text: word }) => sum + gap.length + word.length, 0);
    return [
      ...this.#heading(iso),
      [
        paint('dim', timeOfDay(first.at)),
        this.#hostWidth > 0 ? `  ${plainText(host)}${' '.repeat(this.#hostWidth - 2 - host.length)}` : '',
        ` ${paint('bold', String(first.seq).padStart(this.#seqWidth))}`,
        `  ${paint(colourOf(first.actor), actor)}${' '.repeat(this.#actorWidth - actor.length)}`,
        `  ${shown(head)}${' '.repeat(Math.max(0, columns - column - end.length - width))}`,
        paint('dim', end),
      ].join(''),
      ...rest.map((line) => ' '.repeat(indent) + shown(line)),
    ];
  }

  #heading(iso: string): string[] {
    const day = iso.slice(0, 10);
    if (day === this.#day) return [];
    this.#day = day;
    return [this.#terminal.paint('dim', `── ${day} UTC ──`)];
  }

  /** `← 41 9f3c`; `⇠` when records that are not shown lie between. */
  #end(cause: StoryLine['cause'], correlation: string): string {
    const arrow = cause === undefined ? ' ' : cause.direct ? '←' : '⇠';
    const seq = String(cause?.seq ?? '').padStart(this.#seqWidth);
    return `${arrow} ${seq} ${plainText(correlation.slice(-CORRELATION_WIDTH))}`;
  }
}

function actorName(actors: readonly string[]): string {
  const [first = ''] = actors;
  return plainText(actors.length > 1 ? `${parseActorRef(first).type} ×${actors.length}` : first);
}

function words({ what, tone, state, effects }: RecordText, actors: readonly string[]): Word[] {
  const format = TONES[tone];
  const named = actors.length > 1 && actors.length <= KEYS_SHOWN;
  const list = named ? `(${actors.map((actor) => parseActorRef(actor).key).join(' ')})` : '';
  return [
    ...split(what, format, ' '),
    ...split(list, 'dim', ' '),
    ...(state ? [{ text: state, format: 'bold' as const, gap: '  ' }] : []),
    ...effects.map((effect, index) => {
      const text = index < effects.length - 1 ? `${effect},` : effect;
      return { text: index === 0 ? `⇒ ${text}` : text, format, gap: index === 0 ? '  ' : ' ' };
    }),
  ];
}

function split(text: string, format: Format | undefined, gap: string): Word[] {
  return text.split(/\s+/).flatMap((word) => (word ? [{ text: word, format, gap }] : []));
}

/** Fills lines with words, the first one shorter than the others. */
function fill(all: readonly Word[], firstWidth: number, width: number): Word[][] {
  const lines: Word[][] = [[]];
  let used = 0;
  for (const word of all) {
    const room = lines.length === 1 ? firstWidth : width;
    const line = lines.at(-1) ?? [];
    if (line.length > 0 && used + word.gap.length + word.text.length > room) {
      if (lines.length === MOST_LINES) {
        const last = line.pop();
        if (last) line.push({ ...last, text: cut(`${last.text} …`, last.text.length + room - used) });
        break;
      }
      lines.push([{ ...word, gap: '', text: cut(word.text, width) }]);
      used = Math.min(word.text.length, width);
    } else {
      const gap = line.length > 0 ? word.gap : '';
      const text = cut(word.text, room - used - gap.length);
      line.push({ ...word, gap, text });
      used += gap.length + text.length;
    }
  }
  return lines;
}

function painted({ text, format }: Omit<Word, 'gap'>, paint: Terminal['paint']): string {
  return format === undefined ? text : paint(format, text);
}

/** The same colour for all actors of one type, in every call. */
function colourOf(actor: string): Format {
  let sum = 0;
  for (const character of parseActorRef(actor).type)
    sum = (sum * 31 + (character.codePointAt(0) ?? 0)) % 9_973;
  return ACTOR_COLOURS[sum % ACTOR_COLOURS.length] ?? 'cyan';
}
