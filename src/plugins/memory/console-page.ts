import type { ConsolePage, PageMoment, PageSection, PageStatus } from '../../core/contracts/console.ts';
import { contextOf, keyOf, statesOf } from '../../core/host/history/page-states.ts';
import { stateName } from '../../core/host/terminal.ts';
import { actorRef } from '../../core/kernel/ids.ts';
import type { Backup, BackupsContext } from '../../machines/memory/backups-rules.ts';
import type { DrillContext, Result } from '../../machines/restore/drill-shapes.ts';

const BACKUPS_TYPE = 'memory.backups';
const DRILL = actorRef('restore.drill', 'store');
/** Digits of a digest that are shown: enough to compare by eye. */
const DIGITS = 16;

/** Backups of the memory store at a moment: when each was made, of what size and digest, and which drill proved it. */
export const backupsPage: ConsolePage = {
  name: 'memory',
  title: 'Memory backups',
  data: (moment) => {
    const kinds = statesOf(moment, BACKUPS_TYPE).map((state) => ({
      state,
      kind: keyOf(state),
      context: contextOf<Partial<BackupsContext>>(state),
    }));
    if (kinds.length === 0) return [];
    const { results = [] } = (moment.states.get(DRILL)?.context ?? {}) as Partial<DrillContext>;
    const facts = kinds.flatMap(({ state, kind, context }) =>
      kindFacts(state.ref, stateName(state.value), kind, context),
    );
    const findings = kinds.flatMap(({ context: { vanished = [], deployment = [] } }) => [
      ...vanished.map((name) => `somebody else deleted the good backup ${name}`),
      ...deployment,
    ]);
    return [
      { kind: 'facts', facts },
      ...kinds.map(({ kind, context }) => backupsTable(kind, context, results, moment)),
      ...kinds.flatMap(({ kind, context }) => sizes(kind, context)),
      ...(findings.length > 0
        ? [
            {
              kind: 'table' as const,
              title: 'Findings',
              columns: [{ name: 'finding', title: 'Finding' }],
              rows: findings.map((finding) => ({ status: 'degraded' as const, cells: { finding } })),
            },
          ]
        : []),
    ];
  },
};

function kindFacts(actor: string, state: string, kind: string, context: Partial<BackupsContext>) {
  const { good = [], fault, isStale = false, listed = 0, lastRunAt } = context;
  const [newest] = good;
  const status: PageStatus = isStale
    ? 'failing'
    : fault !== undefined
      ? 'degraded'
      : newest
        ? 'ok'
        : 'unknown';
  return [
    {
      label: `${kind}, the newest good one`,
      value: newest ? (isStale ? `${newest.name}: too old` : newest.name) : 'none yet',
      status,
      actor,
      ...(newest && { since: newest.at }),
    },
    {
      label: `${kind}, the last run`,
      value: fault === undefined ? state : `${state}: ${fault}`,
      ...(fault !== undefined && { status: 'degraded' as const }),
      ...(lastRunAt !== undefined && { since: lastRunAt }),
    },
    { label: `${kind}s in the store's list`, value: listed },
  ];
}

function backupsTable(
  kind: string,
  { good = [], seen = [] }: Partial<BackupsContext>,
  drills: readonly Result[],
  { time }: PageMoment,
): PageSection {
  const columns = [
    { name: 'name', title: 'Backup' },
    { name: 'at', title: 'Made', format: 'time' },
    { name: 'size', title: 'Size', format: 'bytes' },
    { name: 'points', title: 'Points', format: 'number' },
    { name: 'sha256', title: 'SHA-256' },
    { name: 'proven', title: 'Proven' },
    { name: 'provenAt', title: 'By the drill of', format: 'time' },
  ] as const;
  const others = seen.filter(({ name }) => !good.some((one) => one.name === name));
  const rows = [...good, ...others]
    .sort((a, b) => b.at - a.at)
    .map((backup) => {
      const proof = drills.findLast(({ source }) => source?.name === backup.name);
      return {
        status: statusOf(proof),
        ...(proof && { page: { name: 'drills', title: 'the drill', inputs: { drill: proof.id } } }),
        cells: {
          name: backup.seenAt === undefined ? backup.name : `${backup.name} (made by somebody else)`,
          at: Math.min(backup.at, time),
          size: backup.size,
          points: backup.count ?? null,
          sha256: digestOf(backup),
          proven: provenText(proof),
          provenAt: proof?.endedAt ?? null,
        },
      };
    });
  return { kind: 'table', title: kind === 'volume' ? 'Copies of the volume' : 'Snapshots', columns, rows };
}

/** A backup is well when a drill has restored it; what no drill restored is not known. */
function statusOf(proof: Result | undefined): PageStatus {
  if (!proof) return 'unknown';
  return proof.outcome === 'completed' ? 'ok' : 'failing';
}

function provenText(proof: Result | undefined): string {
  if (!proof) return 'by no drill that is remembered';
  if (proof.outcome === 'completed') return `by drill ${proof.id}`;
  return `not: ${proof.failure?.reason ?? proof.report?.verdict ?? 'the drill failed'}`;
}

const digestOf = ({ sha256, unread }: Backup): string =>
  sha256 === undefined
    ? `not read${unread === undefined ? '' : `: ${unread}`}`
    : `${sha256.slice(0, DIGITS)}…`;

/** How points and bytes grew, as a chart each, from the backups. */
function sizes(kind: string, { good = [] }: Partial<BackupsContext>): PageSection[] {
  if (good.length < 2) return [];
  const oldestFirst = good.toSorted((a, b) => a.at - b.at);
  const points = oldestFirst.flatMap(({ at, count }) => (count === undefined ? [] : [[at, count] as const]));
  return [
    {
      kind: 'chart',
      title: `Size of each ${kind === 'volume' ? 'copy' : 'snapshot'}`,
      unit: 'bytes',
      series: [{ name: 'size', points: oldestFirst.map(({ at, size }) => [at, size] as const) }],
    },
    ...(points.length > 1
      ? [
          {
            kind: 'chart' as const,
            title: `Points in each ${kind === 'volume' ? 'copy' : 'snapshot'}`,
            series: [{ name: 'points', points }],
          },
        ]
      : []),
  ];
}
