import type { PageMoment, PageSection } from '../../core/contracts/console.ts';
import { contextOf } from '../../core/host/history/page-states.ts';
import { actorRef } from '../../core/kernel/ids.ts';
import { isObject } from '../../core/kernel/json.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import type { ObservedConfigContext } from '../../machines/router/observed-config.ts';

const OBSERVED = actorRef('router.observed_config', 'default');
/** Records that are read. */
const MOST = 500;

/** The configs that a router elsewhere was seen to serve, and which of them its API would not have taken. */
export async function observedSections(moment: PageMoment): Promise<PageSection[]> {
  const state = moment.states.get(OBSERVED);
  if (!state) return [];
  const { known = [] } = contextOf<Partial<ObservedConfigContext>>(state);
  const { records, more } = await moment.records({
    actors: [OBSERVED],
    events: ['SEEN', 'WRITTEN'],
    limit: MOST,
  });
  const seen = records.findLast(({ event }) => event.ncid === known.at(-1)?.ncid);
  return [
    {
      kind: 'facts',
      facts: [
        {
          label: 'config in force',
          value: known.at(-1)?.ncid ?? 'none was read yet',
          actor: state.ref,
          ...(seen && { since: seen.at, seq: seen.seq }),
        },
      ],
    },
    table(records, more),
    {
      kind: 'text',
      text:
        'Nothing of a config but its digest is recorded. Where the Redis of the router is known, `holdfast router history` lists its ' +
        'writes, and `holdfast router diff` compares two of them.',
    },
  ];
}

/** @param records newest first */
function table(records: readonly LogRecord[], more: boolean): PageSection {
  const columns = [
    { name: 'at', title: 'Seen', format: 'time' },
    { name: 'what', title: 'What' },
    { name: 'ncid', title: 'ncid' },
    { name: 'held', title: 'The one before was in force for', format: 'duration' },
    { name: 'problem', title: 'What is wrong' },
  ] as const;
  const rows = records.map((record) => {
    const { seq, at, event } = record;
    const problem = problemOf(record);
    return {
      seq,
      ...(problem !== '' && { status: 'degraded' as const }),
      cells: {
        at,
        what: event.type === 'SEEN' ? 'another config was in force' : 'its write stood in the history',
        ncid: String(event.ncid),
        held: typeof event.heldMs === 'number' ? event.heldMs : null,
        problem,
      },
    };
  });
  return { kind: 'table', title: more ? 'Configs, the newest' : 'Configs', columns, rows };
}

/** What a person was alerted of. */
function problemOf({ effects }: LogRecord): string {
  const alert = effects.find(({ type }) => type === 'alerts.raise')?.params;
  return isObject(alert) ? String(alert.text) : '';
}
