import type { ColumnarDatabase, QueryOptions } from '../../../core/contracts/columnar-database.ts';
import type { SignalTable } from '../../../core/contracts/columnar-tables.ts';
import { counted } from '../../../core/host/terminal.ts';
import { isAhead } from '../../../machines/backup-age.ts';
import type { Finding } from './findings.ts';

const MOST_HOSTS = 10;
/** A backup older than this is stale (`nas_backup_freshness_max_age_hours`). */
const MAX_AGE_HOURS = 36;
const HOUR_MS = 3_600_000;

export interface NasReport {
  readonly host: string;
  readonly logsLastHour: number;
  readonly gaugesLastHour: number;
  /** Age of the newest `file.mtime` sample, seconds; absent when there is none in the last week. */
  readonly sampleAge?: number;
  /** `now − Value` of that sample, seconds. */
  readonly newestFileAge?: number;
  /** `(now − max(Value)) / 3600`. */
  readonly hoursSinceSuccess?: number;
  /** `nas.backup…` gauges of the last ten minutes, by name. */
  readonly backup: readonly { readonly metric: string; readonly samples: number; readonly value: number }[];
  readonly failedSources: readonly string[];
  /** Only when nothing came from it: who sent metrics in the last hour, at most ten. */
  readonly hostsHeard?: readonly string[];
  readonly findings: readonly Finding[];
}

/**
 * Whether a NAS sends what it should (O21).
 *
 * @param host its `host.name`
 * @throws as `ColumnarDatabase.query`
 */
export async function verifyNas(
  host: string,
  database: ColumnarDatabase,
  options: QueryOptions,
): Promise<NasReport> {
  const ask = <R extends object>(sql: string) => database.query<R>(sql, { host }, options);
  const nameIn = async (table: SignalTable) =>
    (await database.schema(table)).attribute('ResourceAttributes', "'host.name'");
  const ofHost = async (table: SignalTable) => `${await nameIn(table)} = {host:String}`;
  const hostName = await nameIn('otel_metrics_gauge');
  const gauges = await ofHost('otel_metrics_gauge');
  const rowsOf = async (table: SignalTable, time: string) => {
    const [row] = await ask<{ n: string }>(
      `SELECT count() AS n FROM ${table} WHERE ${await ofHost(table)} AND ${time} > now() - INTERVAL 1 HOUR`,
    );
    return Number(row?.n ?? 0);
  };
  const logsLastHour = await rowsOf('otel_logs', 'Timestamp');
  const gaugesLastHour = await rowsOf('otel_metrics_gauge', 'TimeUnix');
  const [file] = await ask<{ n: string; sample: string; age: number; hours: number }>(
    `SELECT count() AS n, dateDiff('second', max(TimeUnix), now()) AS sample,
     toUnixTimestamp(now()) - argMax(Value, TimeUnix) AS age, (toUnixTimestamp(now()) - max(Value)) / 3600 AS hours
     FROM otel_metrics_sum WHERE ${await ofHost('otel_metrics_sum')} AND MetricName = 'file.mtime' AND TimeUnix > now() - INTERVAL 7 DAY`,
  );
  const backup = await ask<{ metric: string; samples: string; value: number }>(
    `SELECT MetricName AS metric, count() AS samples, argMax(Value, TimeUnix) AS value FROM otel_metrics_gauge
     WHERE ${gauges} AND MetricName LIKE 'nas.backup%' AND TimeUnix > now() - INTERVAL 10 MINUTE GROUP BY metric ORDER BY metric`,
  );
  const source = (await database.schema('otel_metrics_gauge')).attribute('Attributes', "'source'");
  const failed = await ask<{ source: string }>(
    `SELECT DISTINCT ${source} AS source FROM otel_metrics_gauge WHERE ${gauges} AND MetricName = 'nas.backup.snapshot.failed'
     AND Value > 0 AND TimeUnix > now() - INTERVAL 10 MINUTE ORDER BY source LIMIT 50`,
  );
  const isSilent = logsLastHour === 0 && gaugesLastHour === 0 && Number(file?.n ?? 0) === 0;
  const heard = isSilent
    ? await ask<{ name: string }>(
        `SELECT DISTINCT ${hostName} AS name FROM otel_metrics_gauge WHERE TimeUnix > now() - INTERVAL 1 HOUR AND name != ''
         ORDER BY name LIMIT ${MOST_HOSTS}`,
      )
    : [];
  const measured = file && Number(file.n) > 0;
  const facts = {
    host,
    logsLastHour,
    gaugesLastHour,
    ...(measured && {
      sampleAge: Number(file.sample),
      newestFileAge: Math.round(Number(file.age)),
      hoursSinceSuccess: Math.round(Number(file.hours) * 100) / 100,
    }),
    backup: backup.map(({ metric, samples, value }) => ({
      metric,
      samples: Number(samples),
      value: Number(value),
    })),
    failedSources: failed.map(({ source }) => source || '(no source named)'),
    ...(isSilent && { hostsHeard: heard.map(({ name }) => name) }),
  };
  return { ...facts, findings: findings(facts) };
}

function findings(facts: Omit<NasReport, 'findings'>): Finding[] {
  const {
    host,
    hostsHeard,
    logsLastHour,
    gaugesLastHour,
    hoursSinceSuccess,
    failedSources,
    backup,
    sampleAge,
  } = facts;
  const collector = `Look at the collector on ${host}: \`systemctl status otelcol-contrib\`, and http://127.0.0.1:13133 there.`;
  const some = (n: number, one: string, what: string): Finding =>
    n > 0
      ? { state: 'ok', text: `${counted(n, one, what)} in the last hour` }
      : { state: 'fail', text: `no ${what} in the last hour`, remedy: collector };
  if (hostsHeard !== undefined) {
    const heard =
      hostsHeard.length > 0
        ? `Hosts that sent metrics in the last hour: ${hostsHeard.join(', ')}. If it is none of these: `
        : '';
    const text = `nothing comes from ${host}: no logs and no metrics in the last hour, no file.mtime in the last week`;
    return [{ state: 'fail', text, remedy: heard + collector }];
  }
  return [
    some(logsLastHour, 'journald log', 'journald logs'),
    some(gaugesLastHour, 'sample of host metrics', 'samples of host metrics'),
    hoursSinceSuccess === undefined
      ? {
          state: 'fail',
          text: 'no file.mtime in otel_metrics_sum within the last week',
          remedy: `${collector} The metric is a sum: it is never in otel_metrics_gauge.`,
        }
      : isAhead(-hoursSinceSuccess * HOUR_MS, 0)
        ? {
            state: 'fail',
            text: `the last success is dated ${-hoursSinceSuccess} h in the future, so its age is not known`,
            remedy: `Set the clock of ${host}, and run the backup once more.`,
          }
        : hoursSinceSuccess > MAX_AGE_HOURS
          ? {
              state: 'fail',
              text: `${hoursSinceSuccess} h since the last success, more than ${MAX_AGE_HOURS} h`,
              remedy: `Look at the backup's own log on ${host}, and run it by hand.`,
            }
          : {
              state: 'ok',
              text: `${hoursSinceSuccess} h since the last success (file.mtime, sampled ${sampleAge} s ago)`,
            },
    ...backupFindings(host, backup, failedSources),
  ];
}

/** What its last backup run reported; a healthy one reports its duration, and no source. */
function backupFindings(
  host: string,
  backup: NasReport['backup'],
  failedSources: readonly string[],
): Finding[] {
  const hasRun = backup.some(({ metric }) => metric.endsWith('duration.seconds'));
  if (failedSources.length === 0 && !hasRun) {
    const text = 'no backup run reported in the last 10 minutes, so it is not known whether a source failed';
    const remedy =
      'A run reports only when it ends: ask again right after one. The rule nas-backup-failed reads each of them.';
    return [{ state: 'unknown', text, remedy }];
  }
  return [
    failedSources.length > 0
      ? {
          state: 'fail',
          text: `the snapshot failed for: ${failedSources.join(', ')}`,
          remedy: `Look at the backup's own log on ${host} for these sources.`,
        }
      : { state: 'ok', text: 'no source reported a failed snapshot in the last 10 minutes' },
    hasRun
      ? { state: 'ok', text: 'a backup run reported its duration in the last 10 minutes' }
      : {
          state: 'unknown',
          text: 'no backup run reported its duration in the last 10 minutes',
          remedy: `Look at the backup's own log on ${host}: a run reports its duration when it ends.`,
        },
  ];
}
