import type { QueryTable } from '../../../core/contracts/columnar-database.ts';
import type { CommandContext, CommandDefinition } from '../../../core/host/plugin/command.ts';
import { counted } from '../../../core/host/terminal.ts';
import { type AnswerText, tableOf } from '../answer.ts';
import { MOST_SECONDS } from '../database.ts';
import type { ColumnarOptions } from '../options.ts';
import { askDatabase, MOST_LIMIT } from '../questions/questions.ts';
import { tableLines, wholeNumber } from './output.ts';

const NAME = 'stack query';
const PROGRESS_MS = 500;
/** The exit code of SIGINT in a shell, so that a script does not take it for an empty answer. */
const INTERRUPTED = 130;

/** `holdfast stack query '<sql>'`: a person's own query, which cannot change anything. */
export function queryCommand(options: ColumnarOptions): CommandDefinition {
  return {
    name: `${NAME} <sql>`,
    summary: 'Asks the columnar database one reading statement, bounded in time, memory and rows',
    example: `holdfast stack query "SELECT ServiceName, count() AS spans FROM otel_traces GROUP BY ServiceName"`,
    flags: [
      { flags: '--limit <n>', summary: `the most rows to print, up to ${MOST_LIMIT}`, default: '100' },
      {
        flags: '--timeout <seconds>',
        summary: `how long the query may take, up to ${MOST_SECONDS}`,
        default: '30',
      },
    ],
    async run([sql = ''], flags, context) {
      const limit = wholeNumber(flags.limit, '--limit', 1, MOST_LIMIT, NAME);
      const seconds = wholeNumber(flags.timeout, '--timeout', 1, MOST_SECONDS, NAME);
      try {
        const answer = await withProgress(context, () =>
          askDatabase<AnswerText>('ask', { sql, limit, seconds }, context, options),
        );
        show(await tableOf(answer, limit), context);
        return 0;
      } catch (error) {
        if (!context.signal.aborted) throw error;
        context.note('Interrupted: the query was stopped in the database, and there is no answer.');
        return INTERRUPTED;
      }
    },
  };
}

async function withProgress<T>({ terminal }: CommandContext, work: () => Promise<T>): Promise<T> {
  const began = performance.now();
  const timer = setInterval(() => {
    terminal.progress(`asking for ${Math.round((performance.now() - began) / 1_000)} s; Ctrl-C ends it`);
  }, PROGRESS_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    terminal.progress('');
  }
}

function show(table: QueryTable, { json, print, note, terminal }: CommandContext): void {
  const { columns, rows, truncated, elapsedMs } = table;
  if (json) {
    print(JSON.stringify({ columns, rows, truncated, elapsedMs: Math.round(elapsedMs) }));
    return;
  }
  const cells = rows.map((row) =>
    row.map((value) => (typeof value === 'string' ? value : JSON.stringify(value))),
  );
  const names = columns.map(({ name }) => name);
  if (rows.length > 0) for (const line of tableLines(names, cells, terminal)) print(line);
  const more = truncated ? ' (there are more: --limit)' : '';
  note(`${counted(rows.length, 'row')} in ${Math.round(elapsedMs)} ms${more}`);
}
