import type { Moment } from '../../kernel/actors/recover.ts';
import { parseActorRef } from '../../kernel/ids.ts';
import { type LogRecord, parseRecord } from '../../kernel/log/record.ts';
import { HOST } from '../lifecycle/records.ts';
import { ALERT, firingAt } from './overview.ts';
import { Pace } from './pace.ts';
import type { LogQuestion } from './questions.ts';
import { recordRows } from './record-rows.ts';

/** Records that are searched at once: those without a mark are passed over inside of the database, which nothing interrupts. */
const WINDOW = 500;
/** A record with it was asked for by somebody on this machine. */
const BY_SOMEBODY = '"uid":';
/** The events by which an instance starts, stops and is repaired. */
const LIFE: ReadonlySet<string> = new Set(['BOOTED', 'STOPPING', 'REPAIRED']);

/** Something worth knowing that happened once, or in the same way again and again. */
export interface Happening {
  readonly text: string;
  readonly actor: string;
  /** `problem`: something failed or was refused; `act`: somebody on this machine asked for it; `life`: the instance itself. */
  readonly kind: 'problem' | 'act' | 'life';
  readonly count: number;
  /** The oldest and the newest record of it. */
  readonly first: number;
  readonly last: number;
  /** Their times, epoch milliseconds. */
  readonly start: number;
  readonly end: number;
  /** Of an alert: whether it lasts at the moment. */
  readonly lasts?: boolean;
}

/** The record that says most of a story. */
interface StoryRecord {
  readonly record: LogRecord;
  readonly kind: Happening['kind'];
}

/**
 * What went wrong and what people did, newest first: of each story its most telling record, and what was told in the same
 * words about the same actor as one.
 *
 * @param marks texts of which each record of a problem has one
 * @param most stories that are looked at; the newest
 * @returns `end`: the oldest record that was looked at, where older ones were not
 */
export async function happenedUntil(
  { log, words, signal, enoughAt }: LogQuestion,
  moment: Moment,
  { marks, most }: { readonly marks: readonly string[]; readonly most: number },
): Promise<{ happened: Happening[]; end?: number }> {
  const stories = new Map<string, StoryRecord>();
  const pace = new Pace(signal);
  let end: number | undefined;
  const holding = [...marks, BY_SOMEBODY, ...[...LIFE].map((type) => JSON.stringify(type))];
  for (let to = moment.seq; to >= log.firstSeq() && end === undefined; to -= WINDOW) {
    await pace.next();
    for (const page of log.pages({ from: to - WINDOW + 1, to, reverse: true, holding })) {
      for (const { seq, body } of page) {
        const record = parseRecord(seq, body);
        await words.prepare([record]);
        await pace.next();
        const kind = kindOf(record, words.isProblem(record));
        if (kind === undefined) continue;
        const known = stories.get(record.correlation);
        if (!known || isMoreTelling({ record, kind }, known))
          stories.set(record.correlation, { record, kind });
      }
    }
    if ((stories.size >= most || performance.now() > enoughAt) && to > WINDOW) end = to - WINDOW + 1;
  }
  const told = [...stories.values()];
  const rows = await recordRows(
    told.map(({ record }) => record),
    words,
    signal,
  );
  const lasting = new Set(firingAt(moment, Number.POSITIVE_INFINITY).map(({ actor }) => actor));
  const alike = Map.groupBy(
    rows.entries(),
    ([, { actor, text }]) => `${actor} ${text.replaceAll(/\d+/g, '0')}`,
  );
  const happened = [...alike.values()].flatMap((group) => {
    const seqs = group.map(([, { seq }]) => seq);
    const newest = group.find(([, { seq }]) => seq === Math.max(...seqs));
    const oldest = group.find(([, { seq }]) => seq === Math.min(...seqs));
    if (!newest || !oldest) return [];
    const [index, { actor, text, seq: last, time }] = newest;
    const isAlert = parseActorRef(actor).type === ALERT;
    return {
      ...{ text, actor, kind: told[index]?.kind ?? 'problem', count: group.length },
      ...{ first: oldest[1].seq, last, start: oldest[1].time, end: time },
      ...(isAlert && { lasts: lasting.has(actor) }),
    };
  });
  happened.sort((a, b) => b.last - a.last);
  return { happened, ...(end !== undefined && { end }) };
}

function kindOf({ actor, event, uid }: LogRecord, isProblem: boolean): Happening['kind'] | undefined {
  if (actor === HOST && LIFE.has(event.type)) return 'life';
  if (isProblem) return 'problem';
  return uid === undefined ? undefined : 'act';
}

/** An alert says most of a story, else the newest problem, which was found first. */
function isMoreTelling(one: StoryRecord, known: StoryRecord): boolean {
  const rank = ({ record, kind }: StoryRecord) =>
    kind === 'problem' ? (parseActorRef(record.actor).type === ALERT ? 2 : 1) : 0;
  return rank(one) > rank(known);
}
