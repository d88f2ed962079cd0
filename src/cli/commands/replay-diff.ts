import type { CommandDefinition } from '../../core/host/plugin/command.ts';
import { diffContext } from '../../core/kernel/json.ts';

/** `holdfast replay diff`: what became of the actors between two points (C7). */
export const replayDiff: CommandDefinition = {
  name: 'replay diff <a> <b> [source]',
  summary: 'show what became of every actor between two records or times',
  example: 'holdfast replay diff 30 59 incident.jsonl',
  async run([a = '', b = '', source], _flags, context) {
    const [view, { momentAt }] = await Promise.all([
      import('../log-view/index.ts'),
      import('../../core/kernel/replay/at.ts'),
    ]);
    const [before, after] = await view.withLog(
      view.sourceOf(source, context),
      async (log) => {
        const seqs = [await view.seqOfPlace(log, a), await view.seqOfPlace(log, b)].sort((x, y) => x - y);
        return [momentAt(log, seqs[0] ?? 0), momentAt(log, seqs[1] ?? 0)] as const;
      },
      context.signal,
    );
    if (!context.json) {
      for (const line of view.differenceLines(before, after, context.terminal)) context.print(line);
      return;
    }
    const then = new Map(before.actors.map((state) => [state.ref, view.shownState(state)]));
    const actors = after.actors.map(view.shownState).flatMap((state) => {
      const old = then.get(state.ref);
      if (old?.seq === state.seq) return [];
      return [
        {
          ref: state.ref,
          from: old?.value,
          to: state.value,
          context: diffContext(old?.context, state.context),
        },
      ];
    });
    context.print(view.jsonText({ from: before.seq, to: after.seq, actors }, 2));
  },
};
