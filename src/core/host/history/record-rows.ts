import { effectId } from '../../kernel/ids.ts';
import { delayOf, type LogRecord, timerStartOf } from '../../kernel/log/record.ts';
import { stateName } from '../terminal.ts';
import { textOf } from './answer-text.ts';
import { Pace } from './pace.ts';
import { recordText } from './record-text.ts';
import { shown } from './shown.ts';
import type { PluginWords } from './words.ts';

/** A record as one row: redacted, and one sentence of it. */
export interface RecordRow {
  readonly seq: number;
  /** Epoch milliseconds. */
  readonly time: number;
  readonly actor: string;
  readonly machine: string;
  /** `after close` of a timer that has expired. */
  readonly event: string;
  readonly from?: string;
  readonly to: string;
  /** The id of its story. */
  readonly correlation: string;
  readonly cause?: number;
  /** The effect or timer that it is the outcome of. */
  readonly outcome?: string;
  /** It says that something failed or was refused. */
  readonly failed: boolean;
  /** The machine took no notice of the event. */
  readonly ignored: boolean;
  readonly text: string;
  readonly effects: readonly { readonly id: string; readonly type: string }[];
}

/** Records as rows. @throws the signal's reason */
export async function recordRows(
  records: readonly LogRecord[],
  words: PluginWords,
  signal?: AbortSignal,
): Promise<RecordRow[]> {
  await words.prepare(records);
  const pace = new Pace(signal);
  const rows: RecordRow[] = [];
  for (const record of records) {
    rows.push(rowOf(record, words));
    await pace.next();
  }
  return rows;
}

function rowOf(raw: LogRecord, words: PluginWords): RecordRow {
  const record = shown(raw);
  const { seq, at, actor, machine, event, from, to, correlation, cause, outcome, effects } = record;
  const { what } = recordText(record, words.describe(record) || undefined, true);
  return {
    seq,
    time: at,
    actor: textOf(actor),
    machine: textOf(machine),
    event: eventName(event.type),
    ...(from !== undefined && { from: textOf(stateName(from)) }),
    to: textOf(stateName(to.value)),
    correlation: textOf(correlation),
    ...(cause !== undefined && { cause }),
    ...(outcome !== undefined && { outcome }),
    failed: words.isProblem(raw),
    ignored: record.ignored === true,
    text: textOf(what),
    effects: effects.map((effect, index) => {
      const timer = timerStartOf(effect)?.timer;
      const type = timer === undefined ? effect.type : `timer ${delayOf(timer) ?? timer}`;
      return { id: effectId(seq, index), type: textOf(type) };
    }),
  };
}

/** An event's type for people. */
export function eventName(type: string): string {
  const delay = delayOf(type);
  return textOf(delay === undefined ? type : `after ${delay}`);
}
