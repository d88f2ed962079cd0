import type {
  ConsolePage,
  PageMoment,
  PageSection,
  PageSpan,
  PageStatus,
} from '../../core/contracts/console.ts';
import { contextOf, dueOf, keyOf, statesOf } from '../../core/host/history/page-states.ts';
import { stateName } from '../../core/host/terminal.ts';
import { actorRef } from '../../core/kernel/ids.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import type { DrillContext, PointList, Report, Result } from '../../machines/restore/drill-shapes.ts';
import type { OverdueContext } from '../../machines/restore/overdue.ts';

const DRILL = actorRef('restore.drill', 'store');
const OVERDUE_TYPE = 'restore.overdue';
/** Records of drills that are read: each drill is some ten. */
const MOST_READ = 1_000;
/** Points that are named. */
const MOST_POINTS = 20;

/** The events that end each phase, and what a phase is for a person. */
const PHASES: Readonly<Record<string, string>> = {
  choosing: 'Choose a backup',
  preparing: 'Make a scratch instance',
  recovering: 'Restore into it',
  verifying: 'Compare',
  cleaning: 'Remove it again',
  uncleaned: 'Wait to remove it again',
};

/** A drill as it was, or as it is under way. */
interface Shown extends Omit<Result, 'outcome' | 'endedAt' | 'cleanFailures'> {
  readonly outcome: 'completed' | 'failed' | 'under way';
  readonly endedAt?: number;
}

/** Restore drills at a moment: each phase of the chosen one, why it did not prove its backup, and the drills before. */
export const drillsPage: ConsolePage = {
  name: 'drills',
  title: 'Restore drills',
  inputs: [{ name: 'drill', title: 'Drill', kind: 'text', example: 'its id; the newest unless filled in' }],
  data: async (moment) => {
    const state = moment.states.get(DRILL);
    if (!state) return [];
    const context = contextOf<Partial<DrillContext>>(state);
    const { drill, results = [], source, place, report, failure } = context;
    const running: Shown[] = drill
      ? [
          {
            ...drill,
            outcome: 'under way',
            ...(source && { source }),
            ...(place !== undefined && { place }),
            ...(report && { report }),
            ...(failure && { failure }),
          },
        ]
      : [];
    const drills: readonly Shown[] = [...running, ...results.toReversed()];
    const { drill: wanted } = moment.inputs;
    const chosen = wanted === undefined ? drills[0] : drills.find(({ id }) => id === wanted);
    const { records } = await moment.records({ actors: [DRILL], limit: MOST_READ });
    return [
      expected(moment),
      ...(chosen
        ? [factsOf(chosen), phasesOf(chosen, records, moment.time), ...whyOf(chosen)]
        : [none(wanted)]),
      listOf(drills),
      ...(context.cleanReason === undefined
        ? []
        : [{ kind: 'text' as const, title: 'What is left of it', text: context.cleanReason }]),
    ];
  },
};

const none = (wanted: string | undefined): PageSection => ({
  kind: 'text',
  text: wanted === undefined ? 'No drill was made yet: nothing is proven.' : 'This drill is not remembered.',
});

/** Whether drills still happen, by path. */
function expected(moment: PageMoment): PageSection {
  const facts = statesOf(moment, OVERDUE_TYPE).map((state) => {
    const { overdueMs, since } = contextOf<Partial<OverdueContext>>(state);
    const due = dueOf(moment, state, 'overdue');
    const isOverdue = state.value === 'overdue';
    const status: PageStatus = isOverdue ? 'failing' : state.value === 'waiting' ? 'ok' : 'unknown';
    return {
      label: `path ${keyOf(state)}`,
      value: isOverdue
        ? 'a drill is overdue'
        : overdueMs === undefined
          ? 'no drill is expected'
          : 'the last one was made in time',
      status,
      actor: state.ref,
      ...(since !== undefined && { since }),
      ...(due !== undefined && { until: due }),
    };
  });
  if (facts.length > 0) return { kind: 'facts', title: 'Expected by', facts };
  return { kind: 'facts', facts: [{ label: 'expected by', value: 'nothing says when', status: 'unknown' }] };
}

const STATUS: Readonly<Record<Shown['outcome'], PageStatus>> = {
  completed: 'ok',
  failed: 'failing',
  'under way': 'unknown',
};

function factsOf(drill: Shown): PageSection {
  const { id, path, by, at, endedAt, outcome, source, place, report, failure } = drill;
  const proven = outcome === 'completed' ? 'its backup is proven' : failureText(drill);
  return {
    kind: 'facts',
    title: `Drill ${id}`,
    facts: [
      {
        label: 'result',
        value: outcome === 'under way' && !failure ? 'under way' : proven,
        status: STATUS[outcome],
        actor: DRILL,
      },
      { label: 'path', value: path === 'a' ? 'a: a snapshot of the store' : 'b: a copy of its volume' },
      { label: 'requested by', value: by },
      { label: 'began', value: at, format: 'time' },
      ...(endedAt === undefined ? [] : [{ label: 'ended', value: endedAt, format: 'time' as const }]),
      ...(source ? [{ label: 'backup', value: source.name }] : []),
      ...(source?.madeAt === undefined ? [] : [{ label: 'made', value: source.madeAt }]),
      ...(place === undefined ? [] : [{ label: 'restored to', value: place }]),
      ...(report?.ok ? [{ label: 'verdict', value: report.verdict }] : []),
    ],
  };
}

const failureText = ({ failure }: Shown): string =>
  failure ? `not proven; it failed while ${failure.phase}: ${failure.reason}` : 'not proven';

/** Each phase of a drill, from its records. @param records newest first */
function phasesOf(drill: Shown, records: readonly LogRecord[], now: number): PageSection {
  const oldestFirst = records.toReversed();
  const first = oldestFirst.findLastIndex(({ event }) => event.type === 'REQUESTED' && event.id === drill.id);
  if (first < 0)
    return { kind: 'text', title: 'Phases', text: 'The records of its phases are not in this log any more.' };
  const rest = oldestFirst.slice(first);
  const end = rest.findIndex(({ to }) => stateName(to.value).startsWith('resting'));
  const own = end < 0 ? rest : rest.slice(0, end + 1);
  const spans: PageSpan[] = [];
  let begun: { readonly phase: string; readonly record: LogRecord } | undefined;
  const close = (by: LogRecord | undefined) => {
    if (!begun) return;
    const { phase, record } = begun;
    spans.push({
      id: String(record.seq),
      name: PHASES[phase] ?? phase,
      by: phase,
      start: record.at,
      duration: Math.max(0, (by?.at ?? now) - record.at),
      ...endOf(by),
    });
  };
  for (const record of own) {
    const phase = stateName(record.to.value);
    if (phase === begun?.phase) continue;
    close(record);
    begun = PHASES[phase] === undefined ? undefined : { phase, record };
  }
  close(undefined);
  return { kind: 'waterfall', title: 'Phases', spans };
}

/** How a phase ended, by the record that ended it. */
function endOf(by: LogRecord | undefined): Pick<PageSpan, 'status' | 'facts'> {
  if (!by) return { status: 'unknown', facts: { result: 'is under way' } };
  const { event, seq } = by;
  const failed = event.type === 'effect.failed' || event.type === 'effect.lost' || event.type === 'CANCEL';
  const report = event.type === 'VERIFIED' ? (event.report as Report | undefined) : undefined;
  if (failed || report?.ok === false)
    return { status: 'failing', facts: { result: report?.verdict ?? reasonOf(by), record: seq } };
  return { status: 'ok', facts: { result: report?.verdict ?? 'done', record: seq } };
}

function reasonOf({ event }: LogRecord): string {
  if (event.type === 'effect.lost') return 'it was interrupted by the end of the runtime';
  return String(event.message ?? event.reason ?? 'failed');
}

/** Why a backup was not proven, point by point. */
function whyOf({ report }: Shown): PageSection[] {
  if (!report) return [];
  const { expected: wanted, restored, live, points, file, seeds, drift, moving, vectors } = report;
  const counts = [
    ['as expected', points.same, ''],
    ...listed('missing', points.missing),
    ...listed('unexpected', points.unexpected),
    ...listed('changed', points.changed),
    ...listed('not decided: written meanwhile', points.unsettled),
    ...listed('written in the live store since: added', drift.added),
    ...listed('written in the live store since: deleted', drift.deleted),
    ...listed('written in the live store since: changed', drift.changed),
    ...listed('written during the comparison', moving),
  ] as const;
  const likeness = (label: string, one: Report['file']) =>
    one
      ? [
          {
            label,
            value: one.reason === undefined ? one.state : `${one.state}: ${one.reason}`,
            status:
              one.state === 'same'
                ? ('ok' as const)
                : one.state === 'different'
                  ? ('failing' as const)
                  : ('unknown' as const),
          },
        ]
      : [];
  return [
    {
      kind: 'facts',
      title: 'What was compared',
      facts: [
        {
          label: 'points expected',
          value: wanted.least === wanted.most ? wanted.least : `${wanted.least} to ${wanted.most}`,
        },
        {
          label: 'by',
          value:
            wanted.by === 'live'
              ? 'the live store, as nothing is recorded'
              : `the record of when it was ${wanted.by}`,
        },
        { label: 'points restored', value: restored.count },
        { label: 'points in the live store', value: live.count },
        ...likeness('file of the backup', file),
        ...likeness('digest over all points', points.digest),
        ...(points.unlisted === undefined
          ? []
          : [
              {
                label: 'points one by one',
                value: `not compared: ${points.unlisted}`,
                status: 'unknown' as const,
              },
            ]),
        {
          label: 'seeds',
          value: `${seeds.checked} looked at, ${seeds.missing.length} missing, ${seeds.changed.length} changed`,
          status:
            seeds.checked === 0
              ? 'unknown'
              : seeds.missing.length + seeds.changed.length === 0
                ? 'ok'
                : 'failing',
        },
        ...(vectors
          ? [
              {
                label: 'vectors',
                value: `expected ${vectors.expected}, restored ${vectors.restored}`,
                status: 'failing' as const,
              },
            ]
          : []),
      ],
    },
    {
      kind: 'table',
      title: 'Points',
      columns: [
        { name: 'how', title: 'How they are' },
        { name: 'count', title: 'Points', format: 'number' },
        { name: 'first', title: 'The first of them' },
      ],
      rows: counts
        .filter(([, count], index) => index === 0 || count > 0)
        .map(([how, count, first]) => ({ cells: { how, count, first } })),
    },
  ];
}

const listed = (how: string, { total, ids }: PointList): readonly (readonly [string, number, string])[] => [
  [how, total, ids.slice(0, MOST_POINTS).join(', ')],
];

function listOf(drills: readonly Shown[]): PageSection {
  const columns = [
    { name: 'at', title: 'Requested', format: 'time' },
    { name: 'id', title: 'Drill' },
    { name: 'path', title: 'Path' },
    { name: 'by', title: 'By' },
    { name: 'backup', title: 'Backup' },
    { name: 'took', title: 'Took', format: 'duration' },
    { name: 'result', title: 'Result' },
  ] as const;
  const rows = drills.map((drill) => {
    const { id, path, by, at, endedAt, outcome, source, report } = drill;
    return {
      status: STATUS[outcome],
      page: { name: 'drills', title: 'its phases', inputs: { drill: id } },
      cells: {
        at,
        id,
        path,
        by,
        backup: source?.name ?? '',
        took: endedAt === undefined ? null : endedAt - at,
        result: outcome === 'failed' ? failureText(drill) : (report?.verdict ?? outcome),
      },
    };
  });
  return { kind: 'table', title: 'The last drills', columns, rows };
}
