import type { Args, Failure, RunReport, WatchdogContext } from './run-shapes.ts';
import { DEADLINE_MS, KILLED_EXIT } from './run-shapes.ts';

/** What is said of a healthy stack: on standard output, and as the heartbeat's msg. */
export function verdict({ stale, drift }: WatchdogContext): string {
  return `stale=${stale}s drift=${drift}`;
}

export function delivered(context: WatchdogContext): RunReport {
  return report(context, 'delivered', [verdict(context), '{"ok":true}'], 0);
}

/** Each failing check with what was asked, what came back and since when. */
export function unhealthy({ context, event }: Args): RunReport {
  const failures = event.type === 'CHECKED' ? event.failures : [];
  const told = failures.map(
    ({ check, asked, found }: Failure) =>
      `${check}: asked ${asked}, got ${found}, since ${context.failing[check] ?? 'now'}`,
  );
  return report(context, 'unhealthy', [`HEALTH CHECK FAILED: ${told.join('; ')}`], 0);
}

/** The line ends as the job's client ends it, for whoever looks for it in stored logs. */
export function undelivered({ context, event }: Args): RunReport {
  const line = `PUSH DELIVERY FAILED: ${why(event)} (wget exit status ${exitStatus(event)})`;
  return report(context, 'undelivered', [line], 1);
}

export function overdue(context: WatchdogContext): RunReport {
  const seconds = DEADLINE_MS / 1_000;
  return report(
    context,
    'killed',
    [`DEADLINE EXCEEDED: the run did not end within ${seconds} s`],
    KILLED_EXIT,
  );
}

/** An effect of the run was lost with its process, or failed where it never should. */
export function broken({ context, event }: Args): RunReport {
  const reason =
    event.type === 'effect.failed'
      ? `${event.effect} failed (${event.code}: ${event.message})`
      : 'the process ended while it ran';
  return report(context, 'killed', [`RUN KILLED: ${reason}`], KILLED_EXIT);
}

function why(event: Args['event']): string {
  switch (event.type) {
    case 'PUSH_REFUSED':
      return `HTTP ${event.status}: ${event.msg ?? (event.body || 'an empty body')}`.replace(/\s+/g, ' ');
    case 'PUSH_FAILED':
      return event.reason;
    default:
      return 'no answer';
  }
}

function exitStatus(event: Args['event']): number {
  return event.type === 'PUSH_REFUSED' || event.type === 'PUSH_FAILED' ? event.exitStatus : 1;
}

function report(
  { startedAt }: WatchdogContext,
  outcome: RunReport['outcome'],
  lines: readonly string[],
  exitCode: number,
): RunReport {
  return { outcome, lines, exitCode, startedAt };
}
