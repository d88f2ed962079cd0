import type { ColumnarDatabase } from '../../../core/contracts/columnar-database.ts';
import { SIGNAL_TABLES, type SignalTable } from '../../../core/contracts/columnar-tables.ts';
import type { PageMoment, PageSection } from '../../../core/contracts/console.ts';
import type { IngestKeys } from '../../../core/contracts/ingest-keys.ts';
import { pointsOf, rangeBefore, USUAL_RANGE } from '../../../core/host/history/time-ranges.ts';
import { duration } from '../../../core/host/terminal.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { SpoolLoad } from '../intake-actor.ts';
import type { IntakeCounts } from '../metrics.ts';

const SECONDS = 10;
/** How long counts of the database are shown again, milliseconds: the page follows the log, and they cost much. */
const KEPT_MS = 15_000;
const MOST_PRODUCERS = 100;

/** What the page reads of the running receiver. */
export interface IngestParts {
  readonly spool: () => SpoolLoad;
  readonly damaged: () => number;
  readonly counts: () => Promise<IntakeCounts>;
  readonly database: () => ColumnarDatabase | undefined;
  readonly keys: () => IngestKeys | undefined;
  /** What was counted in the database last. */
  stored?: { readonly key: string; readonly at: number; readonly sections: Promise<PageSection[]> };
}

/** What no record knows is shown of now alone; what the database has, of any moment. */
export async function liveSections(
  parts: IngestParts,
  moment: PageMoment,
): Promise<readonly [live: PageSection[], stored: PageSection[]]> {
  const live = moment.isNow
    ? [spoolFacts(parts, moment.time), ...(await countTables(parts)), ...keyTables(parts)]
    : [];
  return [live, await storedRows(parts, moment)];
}

function spoolFacts(parts: IngestParts, now: number): PageSection {
  const { rows, bytes, oldest } = parts.spool();
  const lag = oldest === undefined ? 0 : Math.max(0, now - oldest);
  const damaged = parts.damaged();
  return {
    kind: 'facts',
    title: 'Spool',
    facts: [
      {
        label: 'Rows that wait for the database',
        value: rows === 0 ? 'none' : `${rows}, ${Math.ceil(bytes / 1024)} KiB on disk`,
      },
      {
        label: 'Lag',
        value: rows === 0 || lag < 1_000 ? 'less than 1 s' : `the oldest waits for ${duration(lag)}`,
        status: lag < 60_000 ? 'ok' : 'degraded',
      },
      ...(damaged > 0
        ? [{ label: 'Damaged batches at the start', value: damaged, status: 'degraded' as const }]
        : []),
    ],
  };
}

async function countTables(parts: IngestParts): Promise<PageSection[]> {
  const { taken, refused, turnedAway, lost } = await parts.counts();
  const signals = ['logs', 'metrics', 'traces'].map((signal) => ({
    ...((refused.get(signal) ?? 0) > 0 && { status: 'degraded' as const }),
    cells: { signal, taken: taken.get(signal) ?? 0, refused: refused.get(signal) ?? 0 },
  }));
  const reasons = [...turnedAway].filter(([, count]) => count > 0);
  return [
    {
      kind: 'table',
      title: 'Taken since the start',
      columns: [
        { name: 'signal', title: 'Signal' },
        { name: 'taken', title: 'Rows taken', format: 'number' },
        { name: 'refused', title: 'Rows refused', format: 'number' },
      ],
      rows: signals,
    },
    ...(reasons.length === 0
      ? []
      : [
          {
            kind: 'bars' as const,
            title: 'Refused requests since the start, by reason',
            bars: reasons.map(([name, value]) => ({
              name: name.replaceAll('_', ' '),
              value,
              status: 'degraded' as const,
            })),
          },
        ]),
    ...(lost === 0
      ? []
      : [
          {
            kind: 'facts' as const,
            facts: [
              { label: 'Rows that the database refused for good', value: lost, status: 'failing' as const },
            ],
          },
        ]),
  ];
}

/** Keys by their fingerprints, and who uses them; never the keys. */
function keyTables(parts: IngestParts): PageSection[] {
  const known = parts.keys()?.known() ?? [];
  if (known.length === 0) return [];
  const producers = known.flatMap(({ fingerprint, producers: seen }) =>
    seen.map(({ producer, at }) => ({ cells: { producer, print: fingerprint, at } })),
  );
  return [
    {
      kind: 'table',
      title: 'Ingest keys',
      columns: [
        { name: 'print', title: 'Fingerprint' },
        { name: 'use', title: 'Use' },
        { name: 'producers', title: 'Producers seen', format: 'number' },
      ],
      rows: known.map(({ fingerprint, isCurrent, producers: seen }) => ({
        cells: {
          print: fingerprint,
          use: isCurrent ? 'handed to producers' : 'still accepted',
          producers: seen.length,
        },
      })),
    },
    ...(producers.length === 0
      ? []
      : [
          {
            kind: 'table' as const,
            title: 'Producers',
            columns: [
              { name: 'producer', title: 'Producer' },
              { name: 'print', title: 'Key' },
              { name: 'at', title: 'Seen last', format: 'time' as const },
            ],
            rows: producers.sort((a, b) => b.cells.at - a.cells.at).slice(0, MOST_PRODUCERS),
          },
        ]),
  ];
}

/** Rows in the database by signal, until the moment. A database that does not answer says so in its place. */
async function storedRows(parts: IngestParts, moment: PageMoment): Promise<PageSection[]> {
  const database = parts.database();
  if (!database)
    return [
      {
        kind: 'facts',
        title: 'Rows in the database',
        facts: [
          {
            label: 'Database',
            status: 'degraded',
            value: 'no plugin provides one here; `holdfast status` says why. What is taken is kept on disk.',
          },
        ],
      },
    ];
  const range = moment.inputs.range ?? USUAL_RANGE;
  const key = `${range} ${moment.isNow ? 'now' : moment.time}`;
  const isFresh = parts.stored?.key === key && Math.abs(moment.time - parts.stored.at) < KEPT_MS;
  if (!isFresh || !parts.stored)
    parts.stored = { key, at: moment.time, sections: countStored(database, range, moment.time) };
  try {
    return await parts.stored.sections;
  } catch (error) {
    delete parts.stored;
    if (!isCoded(error)) throw error;
    return [
      {
        kind: 'facts',
        title: 'Rows in the database',
        facts: [{ label: 'Database', status: 'failing', value: `${error.what} ${error.remedy}` }],
      },
    ];
  }
}

/** Not by the signal of who asks: the next one may be shown the same counts. */
async function countStored(database: ColumnarDatabase, range: string, to: number): Promise<PageSection[]> {
  const shown = rangeBefore(to, range);
  const tables = (await Promise.all(SIGNAL_TABLES.map((table) => presentTable(database, table)))).flat();
  const seconds = shown.step / 1_000;
  const each = tables.map((table) => {
    const time = timeOf(table);
    return `SELECT '${table}' AS table, intDiv(toUnixTimestamp(${time}), ${seconds}) * ${seconds} AS at, count() AS rows FROM ${table}
      WHERE ${time} > fromUnixTimestamp64Milli({from:Int64}) AND ${time} <= fromUnixTimestamp64Milli({to:Int64}) GROUP BY at`;
  });
  if (each.length === 0) return [];
  const counts = await database.query<{ table: string; at: string; rows: string }>(
    each.join(' UNION ALL '),
    { from: shown.from, to },
    { maxSeconds: SECONDS },
  );
  const bySignal = Map.groupBy(counts, ({ table }) => signalOf(table));
  const series = ['logs', 'metrics', 'traces'].map((name) => {
    const rows = new Map<number, number>();
    for (const { at, rows: count } of bySignal.get(name) ?? [])
      rows.set(Number(at) * 1_000, (rows.get(Number(at) * 1_000) ?? 0) + Number(count));
    return { name, points: pointsOf(shown, rows) };
  });
  return [{ kind: 'chart', title: 'Rows in the database over time', form: 'bars', series }];
}

/** A foreign schema need not have every table. */
async function presentTable(database: ColumnarDatabase, table: SignalTable): Promise<SignalTable[]> {
  try {
    await database.schema(table);
    return [table];
  } catch (error) {
    if (isCoded(error, 'HF_COLUMNAR_SCHEMA')) return [];
    throw error;
  }
}

const timeOf = (table: SignalTable): string => (table.startsWith('otel_metrics') ? 'TimeUnix' : 'Timestamp');

const signalOf = (table: string): string =>
  table === 'otel_logs' ? 'logs' : table === 'otel_traces' ? 'traces' : 'metrics';
