import {
  type ConsolePage,
  consolePages,
  type PageMoment,
  type PageSection,
  type PageStatus,
} from '../../core/contracts/console.ts';
import { contextOf, dueOf, keyOf, statesOf } from '../../core/host/history/page-states.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import { stateName } from '../../core/host/terminal.ts';
import type { ActorState } from '../../core/kernel/actors/transition.ts';
import type { AdoptionContext } from '../../machines/reconciler/adoption.ts';
import type { HeartbeatContext } from '../../machines/reconciler/heartbeat.ts';
import type { LegContext } from '../../machines/reconciler/leg-shapes.ts';
import type { SavesContext } from '../../machines/reconciler/saves.ts';
import type { UnitContext } from '../../machines/reconciler/unit.ts';
import { type LegState, stateOf } from './leg-status.ts';

const LEG_TYPE = 'reconciler.leg';

/**
 * The legs at a moment: whether each has what it should have, in the config and on its link, and how often it had to be put
 * right; and what saves of others took out of the config.
 */
const page: ConsolePage = {
  name: 'legs',
  title: 'Legs and drift',
  data: async (moment) => {
    const legs = statesOf(moment, LEG_TYPE).filter(({ value }) => value !== 'released');
    if (legs.length === 0 && statesOf(moment, 'reconciler.unit').length === 0) return [];
    return [await facts(legs, moment), table(legs), ...dropped(moment)];
  },
};

/** Well is a leg whose config and link were both seen to have what they should; nothing less. */
const STATUS: Readonly<Record<LegState, PageStatus>> = {
  whole: 'ok',
  configured: 'unknown',
  unread: 'unknown',
  missing: 'degraded',
  waiting: 'degraded',
  'not adopted': 'degraded',
  'configured, not applied': 'failing',
  'gave up': 'failing',
  unreachable: 'failing',
  refused: 'failing',
  'refused by name': 'failing',
  absent: 'failing',
};

async function facts(legs: readonly ActorState[], moment: PageMoment): Promise<PageSection> {
  const { records } = await moment.records({
    actors: legs.map(({ ref }) => ref),
    events: ['RESYNC'],
    limit: 1,
  });
  const [resync] = records;
  const units = statesOf(moment, 'reconciler.unit').map((state) => {
    const { pause } = contextOf<UnitContext>(state);
    const until = dueOf(moment, state, 'bound');
    return {
      label: 'reconciler',
      actor: state.ref,
      ...(pause
        ? { value: `paused by ${pause.by}`, status: 'degraded' as const, since: pause.at }
        : { value: 'is not paused' }),
      ...(until !== undefined && { until }),
    };
  });
  const lists = statesOf(moment, 'reconciler.adoption').map((state) => {
    const { place, adopted } = contextOf<AdoptionContext>(state);
    return {
      label: `list of legs for ${place || 'this router'}`,
      actor: state.ref,
      ...(adopted
        ? { value: `confirmed by ${adopted.by}`, status: 'ok' as const, since: adopted.at }
        : {
            value: 'nobody has confirmed it: missing addresses are only reported',
            status: 'degraded' as const,
          }),
    };
  });
  const beats = statesOf(moment, 'reconciler.heartbeat').map((state) => {
    const { fault, failures = 0, deliveredAt } = contextOf<Partial<HeartbeatContext>>(state);
    const status: PageStatus = failures > 0 ? 'failing' : deliveredAt === undefined ? 'unknown' : 'ok';
    return {
      label: `heartbeat ${keyOf(state)}`,
      value: failures > 0 ? `did not arrive: ${fault ?? ''}` : stateName(state.value),
      actor: state.ref,
      status,
      ...(deliveredAt !== undefined && { since: deliveredAt }),
    };
  });
  return {
    kind: 'facts',
    facts: [
      ...(units.length > 0 ? units : [{ label: 'reconciler', value: 'was never paused' }]),
      ...lists,
      resync
        ? {
            label: 'last resync',
            value: String(resync.event.reason ?? ''),
            since: resync.at,
            seq: resync.seq,
          }
        : { label: 'last resync', value: 'none in the records that were read' },
      ...beats,
    ],
  };
}

function table(legs: readonly ActorState[]): PageSection {
  const rows = legs.map(({ ref, value, context, seq, at }) => {
    const leg = contextOf<LegContext>({ context });
    const { label, address, keep, missingSince, trouble, lastError, healed, conflicts, link, alerted } = leg;
    const state = stateOf(String(value), leg);
    return {
      ...{ actor: ref, seq, status: alerted === undefined ? STATUS[state] : ('failing' as const) },
      cells: {
        leg: label === keyOf({ ref }) ? label : `${label} (${keyOf({ ref })})`,
        state,
        wanted: address,
        link: keep ? 'has none' : (link?.state ?? 'not looked at'),
        at,
        since: missingSince ?? trouble?.since ?? (link?.state === 'missing' ? link.since : null),
        healed,
        conflicts,
        lastError: lastError ?? '',
      },
    };
  });
  const columns = [
    { name: 'leg', title: 'Leg' },
    { name: 'state', title: 'State' },
    { name: 'wanted', title: 'Must have' },
    { name: 'link', title: 'On its link' },
    { name: 'at', title: 'Recorded last', format: 'time' },
    { name: 'since', title: 'Not so since', format: 'time' },
    { name: 'healed', title: 'Put right', format: 'number' },
    { name: 'conflicts', title: 'Lost races', format: 'number' },
    { name: 'lastError', title: 'Last error' },
  ] as const;
  return { kind: 'table', title: 'Legs', columns, rows };
}

/** Paths that were gone after a save of somebody else. Values are secret, and no log has them. */
function dropped(moment: PageMoment): PageSection[] {
  const saves = statesOf(moment, 'reconciler.saves').flatMap(
    (state) => contextOf<Partial<SavesContext>>(state).dropped ?? [],
  );
  if (saves.length === 0) return [];
  const columns = [
    { name: 'at', title: 'Seen', format: 'time' },
    { name: 'count', title: 'Paths', format: 'number' },
    { name: 'paths', title: 'Which' },
    { name: 'ncid', title: 'ncid' },
  ] as const;
  const rows = saves.toReversed().map(({ at, ncid, paths, count, alerted }) => ({
    ...(alerted.length > 0 && { status: 'degraded' as const }),
    cells: { at, count, paths: paths.join(', '), ncid },
  }));
  return [{ kind: 'table', title: 'What saves of others dropped', columns, rows }];
}

/** Lets the console show the legs at any moment. */
export function contributePage<S>(context: PluginContext<S>): void {
  context.contribute(consolePages, page);
}
