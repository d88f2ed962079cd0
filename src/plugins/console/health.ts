import type { PluginStatus } from '../../core/host/plugin/definition.ts';
import { isObject, type Json } from '../../core/kernel/json.ts';
import type { LogStatus } from '../../core/kernel/log/event-log.ts';

/**
 * - `ok`: everything works.
 * - `degraded`: decisions are made and recorded, but a plugin has failed or lacks what it needs (its report says
 *   `ok: false`), so part of the product is missing.
 * - `failing`: the log takes no records, so nothing can be decided and no effect runs.
 */
export type HealthStatus = 'ok' | 'degraded' | 'failing';

/** What health is judged by. */
export interface Vitals {
  readonly log: LogStatus;
  /** False while the log is frozen or full, so that new events have to wait. */
  readonly accepting: boolean;
  readonly plugins: readonly PluginStatus[];
  /** What plugins contribute to health pages, by name. */
  readonly reports?: Readonly<Record<string, Json>>;
}

/** Why requests should go elsewhere for now; empty when this runtime can serve them. */
export function notReady({ log, accepting }: Vitals): string[] {
  if (log.state !== 'open') return [`the log is ${log.state}${log.reason ? `: ${log.reason}` : ''}`];
  return accepting ? [] : ['more waits for the log than it can take'];
}

export function healthStatus(vitals: Vitals): HealthStatus {
  if (notReady(vitals).length > 0) return 'failing';
  return degradedBy(vitals).length > 0 ? 'degraded' : 'ok';
}

/** What is missing, by the name of its plugin or report; empty when nothing is. */
export function degradedBy({ plugins, reports = {} }: Vitals): string[] {
  const failed = plugins.filter(({ state }) => state === 'failed');
  return [
    ...failed.map(({ name, reason }) => `plugin ${name} failed${reason ? `: ${reason}` : ''}`),
    ...Object.entries(reports).flatMap(([name, report]) => {
      if (!isObject(report) || report.ok !== false) return [];
      const reason = report.reason ?? report.fault;
      return [typeof reason === 'string' ? `${name}: ${reason}` : `${name} is not as it should be`];
    }),
  ];
}
