import { HIDDEN } from '../../kernel/actors/definition.ts';
import { EFFECT_DONE, EFFECT_FAILED, EFFECT_LOST } from '../../kernel/actors/effect.ts';
import { parseActorRef } from '../../kernel/ids.ts';
import { jsonEqual } from '../../kernel/json.ts';
import type { LogReader } from '../../kernel/log/event-log.ts';
import { delayOf, INIT, type LogRecord } from '../../kernel/log/record.ts';
import { type RecordText, recordText } from './record-text.ts';
import { newest, type Selection } from './select.ts';
import { shown } from './shown.ts';
import type { Describe, PluginWords } from './words.ts';

/** The record that is shown as the cause of another. */
export interface ShownCause {
  readonly seq: number;
  /** True for the cause itself; false when records between the two are not shown. */
  readonly direct: boolean;
}

/** One line: a record, or the records of several actors of one type that did the same for the same reason. */
export interface StoryLine {
  /** At least one, in order. */
  readonly records: readonly LogRecord[];
  readonly text: RecordText;
  readonly cause: ShownCause | undefined;
}

interface LineDraft {
  readonly key: string;
  readonly records: LogRecord[];
  readonly described: string | undefined;
  readonly cause: ShownCause | undefined;
}

/** Records are shown as one line only when they are at most this far apart. */
const GROUP_WITHIN_MS = 250;
/** How many lines back a record may join one. */
const GROUP_LOOK_BACK = 12;
/** For how many records it is remembered which line shows them, so that memory stays bounded on a long log. */
const MAX_REMEMBERED = 20_000;

/**
 * Turns records into the lines that an operator reads: housekeeping is left out (unless `all` is set), what actors of
 * one type do together is one line, and every cause names a record that is shown.
 */
export class Story {
  readonly #all: boolean;
  readonly #apart: boolean;
  readonly #describe: Describe;
  /** For each record without a line of its own: the record whose line stands for it, undefined where none does. */
  readonly #shownFor = new Map<number, number | undefined>();

  /** @param options `apart`: every record has a line of its own, so that the line has all of the record's text */
  constructor(options: { readonly all: boolean; readonly describe: Describe; readonly apart?: boolean }) {
    this.#all = options.all;
    this.#apart = options.apart ?? options.all;
    this.#describe = options.describe;
  }

  /** @param records in order, and later than those of earlier calls */
  add(records: readonly LogRecord[]): StoryLine[] {
    const drafts: LineDraft[] = [];
    for (const record of records) {
      const described = this.#describe(record);
      if (!this.#all && isHousekeeping(record, described)) {
        this.#shownFor.set(record.seq, this.#shownCause(record)?.seq);
      } else {
        this.#addToDrafts(drafts, record, described || undefined);
      }
    }
    forgetOldest(this.#shownFor);
    return drafts.map(({ records, described, cause }) => {
      return { records, cause, text: recordText(commonPart(records), described, this.#all) };
    });
  }

  #addToDrafts(drafts: LineDraft[], record: LogRecord, described: string | undefined): void {
    const cause = this.#shownCause(record);
    const key = JSON.stringify([groupKey(record), described, cause?.seq]);
    const group = this.#apart
      ? undefined
      : drafts
          .slice(-GROUP_LOOK_BACK)
          .findLast(
            (draft) => draft.key === key && record.at - (draft.records[0]?.at ?? 0) <= GROUP_WITHIN_MS,
          );
    if (group && !group.records.some(({ actor }) => actor === record.actor)) {
      group.records.push(record);
      this.#shownFor.set(record.seq, group.records[0]?.seq);
    } else {
      drafts.push({ key, records: [record], described, cause });
    }
  }

  #shownCause({ cause }: LogRecord): ShownCause | undefined {
    if (cause === undefined) return undefined;
    if (!this.#shownFor.has(cause)) return { seq: cause, direct: true };
    const seq = this.#shownFor.get(cause);
    return seq === undefined ? undefined : { seq, direct: false };
  }
}

/**
 * Housekeeping is only what changed no state and requested no effect, and it is no failure. Of that, what no transition
 * took is shown, unless it is the plain success of an effect or came too late, and so is what its plugin describes.
 */
function isHousekeeping(record: LogRecord, described: string | undefined): boolean {
  const { event, effects, outcome, ignored, stale, failed } = record;
  if (effects.length > 0 || hasChanged(record)) return false;
  if (failed !== undefined || event.type === EFFECT_FAILED || event.type === EFFECT_LOST) return false;
  if (described === HIDDEN) return true;
  if (event.type === EFFECT_DONE && ignored) return Object.keys(event).length === 2;
  if (stale) return outcome !== undefined && delayOf(event.type) !== undefined;
  return described === undefined && !ignored;
}

function hasChanged({ from, to }: LogRecord): boolean {
  return from === undefined || to.context !== undefined || to.done === true || !jsonEqual(from, to.value);
}

/**
 * The newest lines of a selection. More records than lines are read, because routine records make no line of their own.
 *
 * @param limit the most lines that are returned
 * @returns the story, too, for it may go on; `more` when older lines are left out
 */
export async function newestLines(
  reader: LogReader,
  selection: Selection,
  limit: number,
  {
    all,
    words,
    signal,
  }: { readonly all: boolean; readonly words: PluginWords; readonly signal?: AbortSignal },
): Promise<{ lines: StoryLine[]; more: boolean; story: Story }> {
  for (let size = limit * 2 + GROUP_LOOK_BACK; ; size *= 4) {
    const { records, more } = await newest(reader, selection, size, signal);
    await words.prepare(records);
    const apart = all || selection.grep !== undefined;
    const story = new Story({ all, describe: words.describe, apart });
    const lines = story.add(records.map(shown));
    if (lines.length >= limit || !more) {
      return { lines: lines.slice(-limit), more: more || lines.length > limit, story };
    }
  }
}

function groupKey({
  actor,
  event,
  from,
  to,
  effects,
  correlation,
  ignored,
  stale,
  failed,
}: LogRecord): unknown {
  const { type } = parseActorRef(actor);
  // Actors that start together each begin a story of their own; their first records are one line all the same.
  const story = event.type === INIT ? '' : correlation;
  return [
    type,
    event.type,
    from,
    to.value,
    effects.map((effect) => effect.type),
    story,
    ignored,
    stale,
    failed,
  ];
}

/** What several records have in common, as one record. */
function commonPart(records: readonly LogRecord[]): LogRecord {
  const [first, ...others] = records as [LogRecord, ...LogRecord[]];
  if (others.length === 0) return first;
  const event = sharedFields(
    first.event,
    others.map((record) => record.event),
  );
  const effects = first.effects.map(({ type, params }, index) => {
    const rest = others.map((record) => record.effects[index]?.params);
    const shared = sharedFields(params as object | undefined, rest as object[]);
    return { type, params: shared };
  });
  return { ...first, event, effects } as LogRecord;
}

function sharedFields(first: object | undefined, others: readonly (object | undefined)[]): object {
  const entries = Object.entries(first ?? {}).filter(([name, value]) =>
    others.every((other) => jsonEqual((other as Record<string, unknown> | undefined)?.[name], value)),
  );
  return Object.fromEntries(entries);
}

function forgetOldest(map: Map<number, unknown>): void {
  for (const key of map.keys()) {
    if (map.size <= MAX_REMEMBERED) return;
    map.delete(key);
  }
}
