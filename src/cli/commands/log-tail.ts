import { setTimeout as delay } from 'node:timers/promises';
import type { CommandDefinition } from '../../core/host/plugin/command.ts';
import { selectionFlags, selectionOf, wholeNumber, wordsOfPlugins } from '../log-view/flags.ts';

const LINES = '20';
/** Between two looks at the log, milliseconds. */
const POLL_MS = 100;

/** `holdfast log tail`: the newest lines, and those that come. */
export const logTail: CommandDefinition = {
  name: 'log tail [source]',
  summary: 'show the newest records, and follow on a terminal; with --json one JSON document a line',
  example: 'holdfast log tail -n 50 --actor router.config/box --follow',
  flags: [
    { flags: '-n, --lines <n>', summary: 'how many lines to begin with', default: LINES },
    { flags: '--follow', summary: 'go on with what comes (what a terminal gets)' },
    { flags: '--no-follow', summary: 'end with what is there' },
    ...selectionFlags,
    { flags: '--all', summary: 'every record on a line of its own, housekeeping too' },
  ],
  async run([source], flags, context) {
    const { json, print, terminal, signal } = context;
    const selection = selectionOf(flags);
    const count = wholeNumber(flags.lines, '--lines', 0, 'log tail');
    const follow = typeof flags.follow === 'boolean' ? flags.follow : terminal.interactive;
    const all = flags.all === true || selection.type !== undefined;
    const { inBatches, jsonText, Layout, newest, newestLines, shown, sourceOf, Story, withLog } =
      await import('../log-view/index.ts');
    const options = { all, describe: json ? () => undefined : await wordsOfPlugins(context) };
    await withLog(sourceOf(source, context), async (log) => {
      let seq = log.lastSeq();
      const past = { ...selection, to: { seq } };
      const layout = new Layout(terminal, seq);
      let story = new Story(options);
      if (json) {
        const { records } = await newest(log, past, count, signal);
        for (const record of records) print(jsonText(shown(record)));
      } else if (count > 0) {
        const begun = await newestLines(log, past, count, { ...options, signal });
        for (const line of layout.lines(begun.lines)) print(line);
        story = begun.story;
      }
      while (follow) {
        await delay(POLL_MS, undefined, { signal });
        const last = log.lastSeq();
        if (last <= seq) continue;
        const fresh = { ...selection, from: { seq: seq + 1 }, to: { seq: last } };
        for await (const batch of inBatches(log, fresh, signal)) {
          const records = batch.map(shown);
          const lines = json ? records.map((one) => jsonText(one)) : layout.lines(story.add(records));
          for (const line of lines) print(line);
        }
        seq = last;
      }
    });
  },
};
