import type { HttpSurface } from '../../core/host/http/contract.ts';
import type { EndedRun, Run } from '../../core/host/lifecycle/machine.ts';
import { HOST, runsOf } from '../../core/host/lifecycle/records.ts';
import { redact } from '../../core/host/logging/redact.ts';
import type { PluginStatus, Services } from '../../core/host/plugin/definition.ts';
import { isObject, type Json, type JsonObject } from '../../core/kernel/json.ts';
import type { LogStatus } from '../../core/kernel/log/event-log.ts';

/** The routes of health and metrics, for people, supervisors and collectors (C14, R29, R40; `docs/health.md`). */
export function healthRoutes(http: HttpSurface, services: Services): void {
  http.get('/livez', () => ({ alive: true }));

  http.get('/readyz', (_request, reply) => {
    const reasons = notReady({ ...vitals(services), reports: services.health() });
    return reply
      .code(reasons.length === 0 ? 200 : 503)
      .send(redact({ ready: reasons.length === 0, reasons }));
  });

  http.get('/healthz', (_request, reply) => {
    const { actors, health } = services;
    const reports = health();
    const seen = { ...vitals(services), reports };
    const { current, last } = runsOf(actors.snapshot(HOST));
    const status = healthStatus(seen);
    const reasons = [...undecided(seen), ...degradedBy(seen)];
    const own = {
      status,
      ...(reasons.length > 0 && { reasons }),
      ...(current && shown(current)),
      plugins: seen.plugins.map(({ name, state, reason }) => ({ name, state, reason })),
      log: logFacts(seen),
      lastStop: last && shown(last),
    };
    // The page's own fields come first, and no plugin can replace them.
    // What is degraded still decides: a probe that took 503 for dead would restart what no restart repairs.
    return reply.code(status === 'failing' ? 503 : 200).send(redact({ ...own, ...reports, ...own }));
  });

  http.get('/metrics', async (_request, reply) => {
    const { metrics } = services;
    return reply.type(metrics.contentType).send(await metrics.text());
  });
}

function vitals({ log, actors, plugins }: Services): Vitals {
  return { log: log.status(), accepting: actors.accepting(), plugins: plugins() };
}

function logFacts({ log: { state, seq, durableSeq, reason } }: Vitals) {
  return { state, seq, durableSeq, reason };
}

/** A run with its times in ISO 8601. */
function shown({ startedAt, ...run }: Run & Partial<EndedRun>) {
  const { stoppedAt, ...rest } = run;
  return {
    ...rest,
    startedAt: new Date(startedAt).toISOString(),
    stoppedAt: stoppedAt === undefined ? undefined : new Date(stoppedAt).toISOString(),
  };
}

/**
 * - `ok`: everything works.
 * - `degraded`: decisions are made and recorded, but a plugin has failed or lacks what it needs (its report says
 *   `ok: false`), so part of the product is missing.
 * - `failing`: the log takes no records, so nothing can be decided and no effect runs.
 */
export type HealthStatus = 'ok' | 'degraded' | 'failing';

/** The facts that decide about health. */
export interface Vitals {
  readonly log: LogStatus;
  /** False while the log is frozen or full, so that new events have to wait. */
  readonly accepting: boolean;
  readonly plugins: readonly PluginStatus[];
  /** What plugins contribute to health pages, by name. */
  readonly reports?: Readonly<Record<string, Json>>;
}

/** Why requests should go elsewhere for now; empty when this runtime can serve them. A plugin says so by `ready: false` in its report. */
export function notReady(vitals: Vitals): string[] {
  return [...undecided(vitals), ...reasonsOf(vitals.reports, ({ ready }) => ready === false, 'is not ready')];
}

/** Why nothing can be decided. */
function undecided({ log, accepting }: Vitals): string[] {
  if (log.state !== 'open') return [`the log is ${log.state}${log.reason ? `: ${log.reason}` : ''}`];
  return accepting ? [] : ['more waits for the log than it can take'];
}

export function healthStatus(vitals: Vitals): HealthStatus {
  if (undecided(vitals).length > 0) return 'failing';
  return degradedBy(vitals).length > 0 ? 'degraded' : 'ok';
}

/** What is missing, by the name of its plugin or report; empty when nothing is. */
export function degradedBy({ plugins, reports }: Vitals): string[] {
  const failed = plugins.filter(({ state }) => state === 'failed');
  return [
    ...failed.map(({ name, reason }) => `plugin ${name} failed${reason ? `: ${reason}` : ''}`),
    ...reasonsOf(reports, ({ ok }) => ok === false, 'is not as it should be'),
  ];
}

/** The reasons of the reports that match, by name. @param otherwise what is said of one that gives none */
function reasonsOf(
  reports: Vitals['reports'] = {},
  matches: (report: JsonObject) => boolean,
  otherwise: string,
): string[] {
  return Object.entries(reports).flatMap(([name, report]) => {
    if (!isObject(report) || !matches(report)) return [];
    const reason = report.reason ?? report.fault;
    return [typeof reason === 'string' ? `${name}: ${reason}` : `${name} ${otherwise}`];
  });
}
