import type { LogRecord } from '../../core/log/index.ts';
import type { TransactionEvent } from '../../machines/config-transaction/shapes.ts';

const OPS = { append: 'appends', commit: 'commits', revert: 'reverts' } as const;

/** A record of the config actor in an operator's words, for `holdfast log`. */
export function describeConfigRecord(record: LogRecord): string | undefined {
  const event = record.event as unknown as TransactionEvent | { type: string; effect?: string };
  if (!isKnown(event)) return event.type === 'effect.done' ? '' : undefined;
  switch (event.type) {
    case 'SET': {
      const { who, op, transID, changed = [] } = event;
      const what = op ? `${OPS[op]} ${transID}` : 'saves';
      return `${who} ${what}${op && op !== 'append' ? '' : `: ${listed(changed) || 'nothing changed'}`}`;
    }
    case 'APPLY_CURRENT':
      return `${event.who} reapplies the current config`;
    case 'LOADED':
      return record.ignored ? '' : `store holds ${short(event.ncid)}`;
    case 'APPLIED':
      return `${short(event.ncid)} stands, reapplied: ${listed(event.reapplied) || 'nothing'}`;
    case 'APPLY_FAILED':
      return `apply failed: ${event.errors.join('; ')}`;
    case 'OVERTAKEN':
      return `store was changed by somebody else, holds ${short(event.ncid)}`;
    case 'effect.failed':
    case 'effect.lost':
      return undefined;
  }
}

const KNOWN: ReadonlySet<string> = new Set<TransactionEvent['type']>([
  'SET',
  'APPLY_CURRENT',
  'LOADED',
  'APPLIED',
  'APPLY_FAILED',
  'OVERTAKEN',
  'effect.failed',
  'effect.lost',
]);

function isKnown(event: { type: string }): event is TransactionEvent {
  return KNOWN.has(event.type);
}

function listed(items: readonly string[]): string {
  return items.length > 4 ? `${items.slice(0, 3).join(', ')} and ${items.length - 3} more` : items.join(', ');
}

function short(ncid: string): string {
  return `ncid ${ncid.slice(0, 8)}…`;
}
