import type { CommandDefinition } from '../../core/host/plugin/command.ts';
import { wholeNumber, wordsOfPlugins } from '../log-view/flags.ts';

/** `holdfast replay explain`: why a record came about, back to its source, in sentences (C7). */
export const replayExplain: CommandDefinition = {
  name: 'replay explain <seq> [source]',
  summary: 'tell in sentences why a record came about, from the source on',
  example: 'holdfast replay explain 59 incident.jsonl',
  async run([text, source], _flags, context) {
    const seq = wholeNumber(text, 'The record', 1, 'replay explain');
    const [view, { causesOf, sentenceOf }] = await Promise.all([
      import('../log-view/index.ts'),
      import('../../core/kernel/replay/explain.ts'),
    ]);
    const chain = await view.withLog(
      view.sourceOf(source, context),
      async (log) => causesOf(log, seq),
      context.signal,
    );
    const wording = {
      describe: await wordsOfPlugins(context),
      state: view.stateName,
      duration: view.duration,
    };
    const steps = chain.map(({ record, cause, cut }) => {
      const step = {
        record: view.shown(record),
        ...(cause && { cause: view.shown(cause) }),
        ...(cut && { cut }),
      };
      return { seq: record.seq, at: record.at, text: view.plainText(sentenceOf(step, wording)) };
    });
    if (context.json) return context.print(view.jsonText(steps, 2));
    for (const step of steps) {
      const time = view.timestamp(step.at, 'ms').slice('2026-01-31 '.length, -' UTC'.length);
      context.print(context.terminal.paint('dim', `record ${step.seq}, ${time}`));
      for (const line of wrapped(step.text, Math.min(context.terminal.columns, 100) - 4))
        context.print(`    ${line}`);
    }
  },
};

function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
