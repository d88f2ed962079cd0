import { type ConsolePage, consolePages, type PageStatus } from '../../core/contracts/console.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import { stateName } from '../../core/host/terminal.ts';
import { parseActorRef } from '../../core/kernel/ids.ts';
import type { LegContext } from '../../machines/reconciler/leg-shapes.ts';
import { legActor } from './actors.ts';

/** The legs at a moment: whether each has what it should have, and how often it had to be put right. */
const page: ConsolePage = {
  name: 'legs',
  title: 'Legs',
  data: ({ states }) => {
    const legs = [...states.values()].filter(({ ref }) => parseActorRef(ref).type === legActor.type);
    const rows = legs.map(({ ref, value, context, seq }) => {
      const leg = context as Partial<LegContext>;
      const { missingSince, trouble, lastError, healed = 0, conflicts = 0 } = leg;
      return {
        ...{ actor: ref, seq, status: statusOf(leg) },
        cells: {
          leg: parseActorRef(ref).key,
          state: stateName(value),
          missingSince: missingSince ?? null,
          healed,
          conflicts,
          trouble: trouble?.kind ?? null,
          lastError: lastError ?? '',
        },
      };
    });
    const columns = [
      { name: 'leg', title: 'Leg' },
      { name: 'state', title: 'State' },
      { name: 'missingSince', title: 'Missing since', format: 'time' },
      { name: 'healed', title: 'Put right', format: 'number' },
      { name: 'conflicts', title: 'Lost races', format: 'number' },
      { name: 'trouble', title: 'Router' },
      { name: 'lastError', title: 'Last error' },
    ] as const;
    return [{ kind: 'table', title: 'Legs', columns, rows }];
  },
};

/** `ok` of a leg that was read, and had what it should have. */
function statusOf({ alerted, missing, trouble, lastNcid }: Partial<LegContext>): PageStatus {
  if (alerted) return 'failing';
  if (missing || trouble) return 'degraded';
  return lastNcid === undefined ? 'unknown' : 'ok';
}

/** Lets the console show the legs at any moment. */
export function contributePage<S>(context: PluginContext<S>): void {
  context.contribute(consolePages, page);
}
