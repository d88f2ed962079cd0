import type { ConsolePage, PageMoment, PageSection, PageStatus } from '../../core/contracts/console.ts';
import { contextOf, dueOf, keyOf, statesOf } from '../../core/host/history/page-states.ts';
import { stateName } from '../../core/host/terminal.ts';
import type { ActorState } from '../../core/kernel/actors/transition.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import { diagnosis, type MonitorContext } from '../../machines/uptime-monitor/diagnosis.ts';
import { DAY_MS, type MonitorState, uptimeOver } from './spells.ts';

const MONITOR_TYPE = 'uptime-monitor.monitor';
/** Beats of a monitor in its charts. */
const MOST_BEATS = 500;
/** Beats that are listed. */
const MOST_LISTED = 50;

const STATUS: Readonly<Record<MonitorState, PageStatus | undefined>> = {
  up: 'ok',
  late: 'degraded',
  down: 'failing',
  waiting: 'unknown',
  paused: undefined,
};
const WORST: readonly MonitorState[] = ['down', 'late', 'waiting', 'up', 'paused'];

interface Monitor {
  readonly state: Readonly<ActorState>;
  readonly is: MonitorState;
  readonly context: MonitorContext;
}

/** Every push monitor at a moment, and of one its beats, as charts and as a list. */
export const monitorsPage: ConsolePage = {
  name: 'monitors',
  title: 'Monitors',
  inputs: [{ name: 'monitor', title: 'Beats of', kind: 'text', example: 'the worst one unless filled in' }],
  data: async (moment) => {
    const monitors = statesOf(moment, MONITOR_TYPE)
      .map((state) => ({
        state,
        is: conditionOf(state),
        context: contextOf<MonitorContext>(state),
      }))
      .sort((a, b) => WORST.indexOf(a.is) - WORST.indexOf(b.is));
    if (monitors.length === 0) return [];
    const { monitor: wanted } = moment.inputs;
    const withBeats = monitors.find(({ context }) => context.beats > 0);
    const chosen =
      wanted === undefined
        ? (withBeats ?? monitors[0])
        : monitors.find(({ state }) => keyOf(state) === wanted);
    return [
      table(monitors, moment),
      ...(chosen
        ? await beatsOf(chosen, moment)
        : [{ kind: 'text' as const, text: 'There is no such monitor.' }]),
    ];
  },
};

function conditionOf({ value }: Pick<ActorState, 'value'>): MonitorState {
  const name = stateName(value).split('.')[0] ?? '';
  return name === 'released' ? 'paused' : (WORST.find((state) => state === name) ?? 'waiting');
}

function table(monitors: readonly Monitor[], moment: PageMoment): PageSection {
  const columns = [
    { name: 'monitor', title: 'Monitor' },
    { name: 'state', title: 'State' },
    { name: 'since', title: 'Since', format: 'time' },
    { name: 'lastAt', title: 'Last beat', format: 'time' },
    { name: 'ping', title: 'Latency', format: 'duration' },
    { name: 'lastMsg', title: 'It said' },
    { name: 'nextAt', title: 'Next change unless a beat comes', format: 'time' },
    { name: 'share', title: 'Up in a day, %', format: 'number' },
    { name: 'ack', title: 'Acknowledged by' },
    { name: 'why', title: 'Why' },
  ] as const;
  const rows = monitors.map(({ state, is, context }) => {
    const { since, lastAt, lastPing, lastMsg, changes, ack } = context;
    const share = uptimeOver(changes, moment.time, DAY_MS);
    const status = STATUS[is];
    return {
      actor: state.ref,
      ...(status && { status }),
      page: { name: 'monitors', title: 'its beats', inputs: { monitor: keyOf(state) } },
      cells: {
        monitor: keyOf(state),
        state: is,
        since: since > 0 ? since : null,
        lastAt: lastAt ?? null,
        ping: lastPing ?? null,
        lastMsg: lastMsg ?? '',
        nextAt: dueOf(moment, state, 'overdue') ?? dueOf(moment, state, 'lost') ?? null,
        share: share === undefined ? null : Math.round(share * 10_000) / 100,
        ack: ack?.by ?? null,
        why: is === 'down' ? diagnosis(context) : '',
      },
    };
  });
  return { kind: 'table', columns, rows };
}

interface Beat {
  readonly seq: number;
  readonly at: number;
  readonly up: boolean;
  readonly ping: number | null;
  readonly msg: string;
}

async function beatsOf({ state, context }: Monitor, moment: PageMoment): Promise<PageSection[]> {
  const monitor = keyOf(state);
  const { records } = await moment.records({ actors: [state.ref], events: ['BEAT'], limit: MOST_BEATS });
  const beats = records.flatMap(beatOf);
  const oldestFirst = beats.toReversed();
  const count = (isUp: boolean) => oldestFirst.map(({ at, up }) => [at, up === isUp ? 1 : 0] as const);
  const pings = oldestFirst.flatMap(({ at, ping }) => (ping === null ? [] : [[at, ping] as const]));
  const columns = [
    { name: 'at', title: 'When', format: 'time' },
    { name: 'up', title: 'State' },
    { name: 'ping', title: 'Latency', format: 'duration' },
    { name: 'msg', title: 'It said' },
  ] as const;
  return [
    ...(pings.length > 1
      ? [
          {
            kind: 'chart' as const,
            title: `Latency of ${monitor}`,
            unit: 'ms',
            series: [{ name: 'latency', points: pings }],
          },
        ]
      : []),
    ...(beats.length > 1
      ? [
          {
            kind: 'chart' as const,
            title: `Beats of ${monitor}`,
            form: 'bars' as const,
            series: [
              { name: 'up', status: 'ok' as const, points: count(true) },
              { name: 'down', status: 'failing' as const, points: count(false) },
            ],
          },
        ]
      : []),
    {
      kind: 'table',
      title: `The last beats of ${monitor}`,
      columns,
      rows: beats.slice(0, MOST_LISTED).map(({ seq, at, up, ping, msg }) => ({
        seq,
        status: up ? ('ok' as const) : ('failing' as const),
        cells: { at, up: up ? 'up' : 'down', ping, msg },
      })),
    },
    changesOf(monitor, context),
  ];
}

/** The beat that a record took; a paused monitor takes none. */
function beatOf({ seq, event, to }: LogRecord): Beat[] {
  if (to.value === 'paused' || to.value === 'released' || typeof event.at !== 'number') return [];
  const { at, ping, msg } = event;
  return [
    { seq, at, up: event.up === true, ping: typeof ping === 'number' ? ping : null, msg: String(msg ?? '') },
  ];
}

function changesOf(monitor: string, { changes }: MonitorContext): PageSection {
  const columns = [
    { name: 'at', title: 'When', format: 'time' },
    { name: 'to', title: 'State' },
    { name: 'why', title: 'Why' },
  ] as const;
  const rows = changes.toReversed().map(({ at, to, why }) => {
    const status = STATUS[to];
    return { ...(status && { status }), cells: { at, to, why } };
  });
  return { kind: 'table', title: `Changes of ${monitor}`, columns, rows };
}
