import type { CommandDefinition } from '../../core/host/plugin/command.ts';
import { wholeNumber, wordsOfPlugins } from '../log-view/flags.ts';

/** `holdfast log show`: everything of one record, what led to it, and what came of it. */
export const logShow: CommandDefinition = {
  name: 'log show <seq> [source]',
  summary: 'show one record whole, its cause and what came of it',
  example: 'holdfast log show 41',
  async run([text, source], _flags, context) {
    const seq = wholeNumber(text, 'The record', 1, 'log show');
    const { familyOf, jsonText, recordPage, shown, sourceOf, withLog } = await import('../log-view/index.ts');
    const family = await withLog(sourceOf(source, context), (log) => familyOf(log, seq));
    if (!context.json) {
      const page = recordPage(family, await wordsOfPlugins(context), context.terminal);
      for (const line of page) context.print(line);
      return;
    }
    const { record, cause, asked, children } = family;
    const effects = asked.map(({ id, fate }, index) => {
      return {
        id,
        ...shown(record).effects[index],
        fate: fate.kind,
        ...('record' in fate && { record: fate.record.seq }),
      };
    });
    const ledTo = children.map((child) => child.seq);
    const document = { record: shown(record), cause: cause && shown(cause), effects, ledTo };
    context.print(jsonText(document, 2));
  },
};
