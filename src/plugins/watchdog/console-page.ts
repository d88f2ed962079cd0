import { Cron } from 'croner';
import type { ConsolePage, PageSection, PageStatus } from '../../core/contracts/console.ts';
import { contextOf, keyOf, statesOf } from '../../core/host/history/page-states.ts';
import { stateName } from '../../core/host/terminal.ts';
import type { ActorState } from '../../core/kernel/actors/transition.ts';
import { type Outcome, SCHEDULE, type WatchdogContext } from '../../machines/watchdog/run.ts';

/** Runs that are listed. */
const MOST = 100;

const STATUS: Readonly<Record<Outcome, PageStatus>> = {
  delivered: 'ok',
  undelivered: 'degraded',
  unhealthy: 'failing',
  killed: 'unknown',
};

/**
 * The watchdog's runs at a moment: what the newest found, whether its heartbeat arrived, and when the next one is due.
 *
 * @param cron the pattern of its schedule, in UTC
 */
export function watchdogPageOf(cron: string): ConsolePage {
  return {
    name: 'watchdog',
    title: 'Watchdog',
    data: async (moment) => {
      const states = statesOf(moment, 'watchdog.run');
      if (states.length === 0) return [];
      const next = moment.isNow
        ? new Cron(cron, { paused: true, timezone: 'UTC' }).nextRun(new Date(moment.time))?.getTime()
        : undefined;
      const { records } = await moment.records({
        actors: states.map(({ ref }) => ref),
        events: ['CHECKED', 'PUSHED', 'PUSH_REFUSED', 'PUSH_FAILED'],
        limit: MOST,
      });
      return [
        ...states.map((state) => factsOf(state, next)),
        {
          kind: 'table',
          title: 'Recorded runs',
          columns: [
            { name: 'at', title: 'When', format: 'time' },
            { name: 'what', title: 'What' },
            { name: 'found', title: 'Found' },
            { name: 'looks', title: 'Stands for runs', format: 'number' },
          ],
          rows: records.map(({ seq, at, event }) => ({
            seq,
            ...foundIn(event),
            cells: { at, ...wordsOf(event) },
          })),
        },
      ];
    },
  };
}

/** The page with the usual schedule. */
export const watchdogPage = watchdogPageOf(SCHEDULE);

type Event = Readonly<Record<string, unknown>> & { readonly type: string };

function foundIn(event: Event): { readonly status: PageStatus } {
  if (event.type === 'PUSHED') return { status: 'ok' };
  if (event.type !== 'CHECKED') return { status: 'degraded' };
  return { status: failuresOf(event).length === 0 ? 'ok' : 'failing' };
}

const failuresOf = ({
  failures,
}: Event): readonly { readonly query?: unknown; readonly found?: unknown }[] =>
  Array.isArray(failures) ? failures : [];

function wordsOf(event: Event) {
  const looks = typeof event.looks === 'number' ? event.looks : null;
  switch (event.type) {
    case 'PUSHED':
      return { what: 'sent its heartbeat', found: '', looks };
    case 'CHECKED': {
      const found = failuresOf(event).map(({ query, found: each }) => `${String(query)} ${String(each)}`);
      return { what: 'checked the stack', found: found.join('; ') || 'nothing wrong', looks };
    }
    default: {
      const reason = event.reason ?? `HTTP ${String(event.status)}: ${String(event.msg ?? event.body ?? '')}`;
      return { what: 'its heartbeat did not arrive', found: String(reason), looks };
    }
  }
}

function factsOf(state: Readonly<ActorState>, next: number | undefined): PageSection {
  const {
    last,
    deliveredAt,
    deliveredMsg,
    failing = {},
    unknown = [],
  } = contextOf<Partial<WatchdogContext>>(state);
  return {
    kind: 'facts',
    title: keyOf(state),
    facts: [
      last
        ? {
            label: 'last run',
            value: last.lines[0] ?? last.outcome,
            status: STATUS[last.outcome],
            since: last.startedAt,
            actor: state.ref,
          }
        : { label: 'last run', value: 'none yet', status: 'unknown', actor: state.ref },
      { label: 'now', value: stateName(state.value) },
      deliveredAt === undefined
        ? { label: 'heartbeat', value: 'none was recorded', status: 'unknown' }
        : { label: 'heartbeat', value: deliveredMsg ?? '', since: deliveredAt },
      ...Object.entries(failing).map(([check, since]) => ({
        label: `fails: ${check}`,
        value: `since ${since}`,
        status: 'failing' as const,
      })),
      ...unknown.map((each, index) => ({
        label: `not known ${index + 1}`,
        value: each,
        status: 'unknown' as const,
      })),
      ...(next === undefined ? [] : [{ label: 'next run', value: '', until: next }]),
    ],
  };
}
