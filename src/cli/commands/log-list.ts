import type { CommandContext, CommandDefinition } from '../../core/host/plugin/command.ts';
import type { LogReader } from '../../core/kernel/log/event-log.ts';
import type { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';
import { rangeFlags, selectionFlags, selectionOf, wholeNumber, wordsOfPlugins } from '../log-view/flags.ts';
import type { Selection } from '../log-view/select.ts';

const LIMIT = '50';

/** `holdfast log list`: records that a selection keeps, newest last. */
export const logList: CommandDefinition = {
  name: 'log list [source]',
  summary: 'list records, the newest last',
  example: 'holdfast log list --from 03:00 --actor reconciler',
  flags: [
    ...rangeFlags,
    ...selectionFlags,
    { flags: '--limit <n>', summary: 'how many lines at most, the newest; 0 for all', default: LIMIT },
    { flags: '--all', summary: 'every record on a line of its own, housekeeping too' },
  ],
  async run([source], flags, context) {
    selectionOf(flags); // a slip is told before the log is opened
    const limit = wholeNumber(flags.limit, '--limit', 0, 'log list') || Number.POSITIVE_INFINITY;
    const { referenceTime, sourceOf, withLog } = await import('../log-view/index.ts');
    await withLog(sourceOf(source, context), async (log) => {
      const selection = selectionOf(flags, referenceTime(log));
      if (context.json) return listJson(log, selection, limit, context);
      // Who asks for a type of event wants to see it.
      const all = flags.all === true || selection.type !== undefined;
      return listLines(log, selection, limit, all, context);
    });
  },
};

async function listJson(
  log: SqliteReader,
  selection: Selection,
  limit: number,
  { print, signal }: CommandContext,
): Promise<void> {
  const { inBatches, jsonText, newest, shown } = await import('../log-view/index.ts');
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
  all: boolean,
  context: CommandContext,
): Promise<void> {
  const { print, note, terminal, signal } = context;
  const { inBatches, Layout, newestLines, shown, Story } = await import('../log-view/index.ts');
  const describe = await wordsOfPlugins(context);
  const layout = new Layout(terminal, log.lastSeq());
  if (!Number.isFinite(limit)) {
    const story = new Story({ all, describe });
    for await (const batch of inBatches(log, selection, signal)) {
      for (const line of layout.lines(story.add(batch.map(shown)))) print(line);
    }
    return;
  }
  const { lines, more } = await newestLines(log, selection, limit, { all, describe, signal });
  if (lines.length === 0) note(terminal.paintError('dim', await nothingFits(log, selection, signal)));
  if (more) note(terminal.paintError('dim', `(older records are left out; --limit 0 shows all)`));
  for (const line of layout.lines(lines)) print(line);
}

/** Silence would read as "nothing happened". */
async function nothingFits(log: LogReader, selection: Selection, signal: AbortSignal): Promise<string> {
  const last = log.lastSeq();
  if (last === 0) return '(the log is empty)';
  const { whyNone } = await import('../log-view/index.ts');
  const why = await whyNone(log, selection, signal);
  return `(no record of ${last} fits: ${why}; \`holdfast log list --all\` shows which actors and types there are)`;
}
