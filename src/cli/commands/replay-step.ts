import { basename } from 'node:path';
import type { CommandDefinition } from '../../core/host/plugin/command.ts';
import { HoldfastError } from '../../core/kernel/errors/holdfast-error.ts';
import { PLACE, wordsOfPlugins } from '../log-view/flags.ts';

/** `holdfast replay step`: a log record by record, on a terminal (C7). */
export const replayStep: CommandDefinition = {
  name: 'replay step [source]',
  summary: 'walk over the log record by record, on a terminal; ? shows the keys',
  example: 'holdfast replay step incident.jsonl.gz --at 03:05',
  flags: [{ flags: '--at <place>', summary: `begin there: ${PLACE}` }],
  async run([source], flags, context) {
    const { stdin, stdout } = process;
    if (context.json || !context.terminal.interactive || !stdin.isTTY || !stdout.isTTY)
      throw new HoldfastError('HF_CLI_TERMINAL');
    const [view, { Screen, stepThrough }] = await Promise.all([
      import('../log-view/index.ts'),
      import('../step/index.ts'),
    ]);
    const describe = await wordsOfPlugins(context);
    const definitions = await context.actors().catch(() => []); // without machines no guard is told
    const path = view.sourceOf(source, context);
    await view.withLog(
      path,
      (log) =>
        stepThrough(log, new Screen(stdin, stdout, process.env.TERM), {
          definitions: new Map(definitions.map((one) => [one.type, one])),
          describe,
          paint: context.terminal.paint,
          source: basename(path),
          place: flags.at as string | undefined,
          signal: context.signal,
        }),
      context.signal,
    );
  },
};
