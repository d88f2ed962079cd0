import type { CommandDefinition } from '../../core/host/plugin/command.ts';
import { PLACE } from '../log-view/flags.ts';

/** `holdfast replay at`: every actor as it was (C7). */
export const replayAt: CommandDefinition = {
  name: 'replay at <place> [source]',
  summary: `show the state of every actor at a place: ${PLACE}`,
  example: 'holdfast replay at 03:05 incident.jsonl.gz --actor router.config',
  flags: [{ flags: '--actor <actor>', summary: 'only these, whole; * stands for anything' }],
  async run([place = '', source], flags, context) {
    const [view, { momentAt }, { matcher }] = await Promise.all([
      import('../log-view/index.ts'),
      import('../../core/kernel/replay/at.ts'),
      import('../log-view/select.ts'),
    ]);
    const whole = typeof flags.actor === 'string';
    const wanted = matcher(whole ? { actor: flags.actor as string } : {});
    const moment = await view.withLog(
      view.sourceOf(source, context),
      async (log) => momentAt(log, await view.seqOfPlace(log, place)),
      context.signal,
    );
    const actors = moment.actors.filter(({ ref }) => wanted({ actor: ref } as never));
    if (context.json) {
      context.print(view.jsonText({ ...moment, actors: actors.map(view.shownState) }, 2));
      return;
    }
    for (const line of view.momentLines({ ...moment, actors }, context.terminal, whole)) context.print(line);
  },
};
