import type { LogReader } from '../../log/event-log.ts';
import type { SqliteReader } from '../../log/sqlite-reader.ts';
import type { CommandContext, CommandDefinition } from '../../plugin/command.ts';
import { selectionFlags, selectionOf, wholeNumber, wordsOfPlugins } from '../log-view/flags.ts';
import type { Selection } from '../log-view/select.ts';

const LIMIT = '50';

/** `holdfast log list`: records that a selection keeps, newest last. */
export const logList: CommandDefinition = {
  name: 'log list [source]',
  summary: 'list records, the newest last',
  example: 'holdfast log list --from 03:00 --actor reconciler',
  flags: [
    { flags: '--from <place>', summary: 'record number, or time: 2026-01-31T03:05, 03:05 or 15m (ago), UTC' },
    { flags: '--to <place>', summary: 'the same, inclusive' },
    ...selectionFlags,
    { flags: '--limit <n>', summary: 'how many lines at most, the newest; 0 for all', default: LIMIT },
    { flags: '--all', summary: 'every record on a line of its own, housekeeping too' },
  ],
  async run([source], flags, context) {
    const selection = selectionOf(flags);
    const limit = wholeNumber(flags.limit, '--limit', 0, 'log list') || Number.POSITIVE_INFINITY;
    const { sourceOf, withLog } = await import('../log-view/index.ts');
    await withLog(sourceOf(source, context), async (log) => {
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
  if (lines.length === 0) note(terminal.paintError('dim', nothingFits(log)));
  if (more) note(terminal.paintError('dim', `(older records are left out; --limit 0 shows all)`));
  for (const line of layout.lines(lines)) print(line);
}

/** Silence would read as "nothing happened". */
function nothingFits(log: LogReader): string {
  return log.lastSeq() === 0
    ? '(the log is empty)'
    : `(no record fits; the log holds ${log.lastSeq()}, \`holdfast log list --all\` shows which actors and types there are)`;
}
