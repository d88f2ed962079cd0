import type { HistoryReader } from '../../kernel/log/event-log.ts';
import { causeSteps, type Link, sentenceOf } from '../../kernel/replay/explain.ts';
import { duration, plainText, stateName } from '../terminal.ts';
import { runSteps } from './pace.ts';
import { shown } from './shown.ts';
import type { PluginWords } from './words.ts';

/** One step of an explanation: a record, and in sentences why it came and what it did. */
export interface ExplainedStep {
  readonly seq: number;
  /** Epoch milliseconds. */
  readonly at: number;
  /** The record that entered the state in which the actor was. */
  readonly stateSince?: number;
  /** The record that made the revision by which the actor decided. */
  readonly decidedBy?: number;
  readonly text: string;
}

/**
 * Explains a record in sentences: the chain of its causes, from the source to the record itself. Secrets are redacted.
 *
 * @param most of so many records at most, those nearest to it
 * @throws HF_LOG_RANGE there is no such record; HF_LOG_CORRUPT; the signal's reason
 */
export async function explanationOf(
  log: HistoryReader,
  seq: number,
  words: PluginWords,
  { signal, most }: { readonly signal?: AbortSignal | undefined; readonly most?: number } = {},
): Promise<ExplainedStep[]> {
  const chain = await runSteps(causeSteps(log, seq, most), signal);
  await words.prepare(chain.flatMap(({ record, cause }) => (cause ? [record, cause] : [record])));
  const wording = { describe: words.describe, state: stateName, duration };
  return chain.map((link) => {
    const { entered, decidedBy } = link.since ?? {};
    return {
      seq: link.record.seq,
      at: link.record.at,
      ...(entered && { stateSince: entered.seq }),
      ...(decidedBy && { decidedBy: decidedBy.record.seq }),
      text: plainText(sentenceOf(shownLink(link), wording)),
    };
  });
}

function shownLink({ record, cause, cut, since }: Link): Link {
  const { entered, decidedBy } = since ?? {};
  return {
    record: shown(record),
    ...(cause && { cause: shown(cause) }),
    ...(cut && { cut }),
    ...(since && {
      since: {
        ...(entered && { entered: shown(entered) }),
        ...(decidedBy && { decidedBy: { ...decidedBy, record: shown(decidedBy.record) } }),
      },
    }),
  };
}
