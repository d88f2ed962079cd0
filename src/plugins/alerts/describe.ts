import type { LogRecord } from '../../core/kernel/log/record.ts';
import type { AlertEvent } from '../../machines/alerts/alert.ts';
import type { OutboxEvent } from '../../machines/alerts/outbox.ts';
import type { RuleEvent } from '../../machines/alerts/rule.ts';

/**
 * A look that changes nothing: a crash may cost it, for the next one finds the same. What begins or ends a firing is told
 * only when it is durable.
 */
export function isRoutineLook({ from, to, effects, failed, event }: LogRecord): boolean {
  if (failed !== undefined || from === undefined || event.type === 'DEFINE') return false;
  const same = to.value === undefined || verdictOf(from) === verdictOf(to.value);
  return same && !effects.some(({ type }) => type === 'alert.raise');
}

/** A record of a rule in an operator's words, for `holdfast log`. */
export function describeRuleRecord(record: LogRecord): string | undefined {
  if (isRoutineLook(record)) return '';
  const { event: recorded, to } = record;
  const event = recorded as unknown as RuleEvent;
  switch (event.type) {
    case 'EVALUATED': {
      const found = event.value === undefined ? 'found no data' : `found ${event.value}`;
      return `${found}: ${verdictOf(to.value)}${event.finding === undefined ? '' : `, ${event.finding}`}`;
    }
    case 'UNSEEN':
      return `could not look: ${event.reason}`;
    case 'DEFINE':
      return 'is defined, and looked at anew';
    case 'REMOVE':
      return 'is no longer listed';
    default:
      return undefined;
  }
}

/** `{ firing: 'resting' }` is firing. */
export function verdictOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  const [verdict = ''] = Object.keys(value);
  return verdict === 'noData' ? 'no data' : verdict;
}

/** A record of an alert. */
export function describeAlertRecord({ event: recorded, effects }: LogRecord): string | undefined {
  const event = recorded as unknown as AlertEvent;
  const told = effects.flatMap(({ type, params }) =>
    type === 'alerts.notify' ? ((params as { to?: string[] } | undefined)?.to ?? []) : [],
  );
  const to = told.length > 0 ? `; ${told.join(', ')} is told` : '';
  switch (event.type) {
    case 'RAISED':
      return `${event.kind === 'event' ? 'happened' : event.kind}: ${event.told.text}${to}`;
    case 'ACKNOWLEDGE':
      return `${event.by} is at it`;
    case 'SILENCE':
      return 'is silent for a while';
    case 'UNSILENCE':
      return `is no longer silent${to}`;
    default:
      return to === '' ? undefined : `nobody has acknowledged it${to}`;
  }
}

/** A record of what is still to be told to a receiver. */
export function describeOutboxRecord({ event: recorded }: LogRecord): string | undefined {
  const event = recorded as unknown as OutboxEvent;
  switch (event.type) {
    case 'QUEUE':
      return `is to be told: ${event.item.notice.state} ${event.item.notice.title}`;
    case 'POSTED':
      return `has taken it (${event.answer.status})`;
    case 'REFUSED':
      return `has not taken it: ${event.reason}`;
    default:
      return undefined;
  }
}
