import { setTimeout as delay } from 'node:timers/promises';
import { HostError } from '../../core/host/errors/host-error.ts';
import { familyOf } from '../../core/host/history/family.ts';
import { referenceTime } from '../../core/host/history/place.ts';
import { printedText } from '../../core/host/history/record-text.ts';
import { inBatches, newest, type Selection, type TextPattern } from '../../core/host/history/select.ts';
import { shown } from '../../core/host/history/shown.ts';
import { newestLines, Story } from '../../core/host/history/story.ts';
import { PluginWords } from '../../core/host/history/words.ts';
import type { CommandContext, CommandRun } from '../../core/host/plugin/command.ts';
import { jsonText } from '../../core/host/terminal.ts';
import type { LogReader } from '../../core/kernel/log/event-log.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import type { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';
import { sourcesFrom } from './archived.ts';
import { withChosenLog } from './chosen.ts';
import { selectionOf, wholeNumber } from './flags.ts';
import { parsePattern } from './grep.ts';
import { Layout, LEFT_OUT } from './layout.ts';
import { recordPage } from './record-page.ts';
import { noteDamage, sourceOf, sourcesOf, withLog } from './source.ts';
import { whyNone } from './why-none.ts';

/** `holdfast log list`: the records of a selection, the newest last. */
export const listRecords: CommandRun = async (sources, flags, context) => {
  // Wrong flags are reported before the log is opened.
  selectionOf(flags);
  const pattern = patternOf(flags.grep);
  const limit = wholeNumber(flags.limit, '--limit', 0, 'log list') || Number.POSITIVE_INFINITY;
  if (flags.host !== undefined) {
    const { listHosts, withHosts } = await import('./hosts.ts');
    return withHosts(flags, sources, 'log list', context, async (logs) => {
      const newest = Math.max(0, ...logs.map(({ reader }) => referenceTime(reader)));
      const { selection, all, words } = wanted(flags, pattern, newest, context);
      const [only] = logs;
      if (flags.host === 'all' || !only) return listHosts(logs, selection, limit, { all, words }, context);
      if (context.json) return listJson(only.reader, selection, limit, context);
      return listLines(only.reader, selection, limit, { all, words }, context);
    });
  }
  const places = [flags.from, flags.to].map((text) => (typeof text === 'string' ? text : undefined));
  const read = sources.length > 0 ? sourcesOf(sources, context) : await sourcesFrom(places, context, true);
  noteDamage(read, context);
  await withLog(read, async (log) => {
    const { selection, all, words } = wanted(flags, pattern, referenceTime(log), context);
    if (context.json) return listJson(log, selection, limit, context);
    return listLines(log, selection, limit, { all, words }, context);
  });
};

/** @param now what times without a date are counted back from, epoch milliseconds */
function wanted(
  flags: Readonly<Record<string, unknown>>,
  pattern: TextPattern | undefined,
  now: number,
  context: CommandContext,
): { readonly selection: Selection; readonly all: boolean; readonly words: PluginWords } {
  const chosen = selectionOf(flags, now);
  // Whoever selects a type of event wants to see it, even if it is routine.
  const all = flags.all === true || chosen.type !== undefined;
  const words = new PluginWords(context);
  const textOf = (record: LogRecord) => printedText(record, words, all);
  const selection = {
    ...chosen,
    ...(flags.failed === true && words.problemsOnly),
    ...(pattern && { grep: { ...pattern, textOf } }),
  };
  return { selection, all, words };
}

/** @throws HF_CLI_USAGE */
function patternOf(given: unknown): TextPattern | undefined {
  if (given === '') throw new HostError('HF_CLI_USAGE', { reason: '--grep is empty.', command: 'log list' });
  return typeof given === 'string' ? parsePattern(given) : undefined;
}

async function listJson(
  log: SqliteReader,
  selection: Selection,
  limit: number,
  { print, signal }: CommandContext,
): Promise<void> {
  const batches = Number.isFinite(limit)
    ? [(await newest(log, selection, limit, signal)).records]
    : inBatches(log, selection, signal);
  let before = '[';
  for await (const batch of batches) {
    for (const record of batch) {
      print(`${before}${jsonText(shown(record))}`);
      before = ',';
    }
  }
  print(before === '[' ? '[]' : ']');
}

async function listLines(
  log: SqliteReader,
  selection: Selection,
  limit: number,
  { all, words }: { readonly all: boolean; readonly words: PluginWords },
  context: CommandContext,
): Promise<void> {
  const { print, note, terminal, signal } = context;
  const layout = new Layout(terminal, log.lastSeq());
  if (!Number.isFinite(limit)) {
    const story = new Story({ all, describe: words.describe, apart: all || selection.grep !== undefined });
    for await (const batch of inBatches(log, selection, signal)) {
      await words.prepare(batch);
      for (const line of layout.lines(story.add(batch.map(shown)))) print(line);
    }
    return;
  }
  const { lines, more } = await newestLines(log, selection, limit, { all, words, signal });
  if (lines.length === 0) note(terminal.paintError('dim', await noMatch(log, selection, signal)));
  if (more) note(terminal.paintError('dim', LEFT_OUT));
  for (const line of layout.lines(lines)) print(line);
}

/** An empty list would read as if nothing had happened. */
async function noMatch(log: LogReader, selection: Selection, signal: AbortSignal): Promise<string> {
  const last = log.lastSeq();
  if (last === 0) return '(the log is empty)';
  const why = await whyNone(log, selection, signal);
  return `(none of ${last} records matches: ${why}; \`holdfast log list --all\` shows which actors and types there are)`;
}

/** `holdfast log show`: one record in full, with its cause and its consequences. */
export const showRecord: CommandRun = async ([text, ...given], flags, context) => {
  const seq = wholeNumber(text, 'The record', 1, 'log show');
  const here = async () => {
    const read = given.length > 0 ? sourcesOf(given, context) : await sourcesFrom([String(seq)], context);
    noteDamage(read, context, seq);
    return read;
  };
  const family = await withChosenLog(flags, { command: 'log show', given, here }, context, (log) =>
    familyOf(log, seq),
  );
  if (!context.json) {
    const words = new PluginWords(context);
    await words.prepare([family.record, ...family.children, ...(family.cause ? [family.cause] : [])]);
    for (const line of recordPage(family, words.describe, context.terminal)) context.print(line);
    return;
  }
  const { record, cause, since, children } = family;
  const effects = family.effects.map(({ id, fate }, index) => {
    return {
      id,
      ...shown(record).effects[index],
      fate: fate.kind,
      ...('record' in fate && { record: fate.record.seq }),
    };
  });
  const ledTo = children.map((child) => child.seq);
  const { entered, decidedBy } = since ?? {};
  const document = {
    record: shown(record),
    cause: cause && shown(cause),
    ...(entered && { stateSince: entered.seq }),
    ...(decidedBy && { decidedBy: decidedBy.record.seq }),
    effects,
    ledTo,
  };
  context.print(jsonText(document, 2));
};

/** The pause between two reads of the log, milliseconds. */
const POLL_MS = 100;

/** `holdfast log tail`: the newest lines, and new ones as they come. */
export const tailRecords: CommandRun = async ([source], flags, context) => {
  const { json, print, terminal, signal } = context;
  const selection = selectionOf(flags);
  const count = wholeNumber(flags.lines, '--lines', 0, 'log tail');
  const follow = typeof flags.follow === 'boolean' ? flags.follow : terminal.interactive;
  const all = flags.all === true || selection.type !== undefined;
  const words = new PluginWords(context);
  await withLog(sourceOf(source, context), async (log) => {
    let seq = log.lastSeq();
    const past = { ...selection, to: { seq } };
    const layout = new Layout(terminal, seq);
    let story = new Story({ all, describe: words.describe });
    if (json) {
      const { records } = await newest(log, past, count, signal);
      for (const record of records) print(jsonText(shown(record)));
    } else if (count > 0) {
      const start = await newestLines(log, past, count, { all, words, signal });
      for (const line of layout.lines(start.lines)) print(line);
      story = start.story;
    }
    while (follow) {
      await delay(POLL_MS, undefined, { signal });
      const last = log.lastSeq();
      if (last <= seq) continue;
      const fresh = { ...selection, from: { seq: seq + 1 }, to: { seq: last } };
      for await (const batch of inBatches(log, fresh, signal)) {
        if (!json) await words.prepare(batch);
        const records = batch.map(shown);
        const lines = json ? records.map((one) => jsonText(one)) : layout.lines(story.add(records));
        for (const line of lines) print(line);
      }
      seq = last;
    }
  });
};
