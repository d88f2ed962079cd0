import { delayOf, type LogEvent, type LogRecord } from '../../core/kernel/log/record.ts';
import type { ApplyParams, ReplyParams, TransactionEvent } from '../../machines/router/config-shapes.ts';

const OPS = { append: 'appends', commit: 'commits', revert: 'reverts' } as const;

/** A record of the config actor in an operator's words, for `holdfast log`. */
export function describeConfigRecord(record: LogRecord): string | undefined {
  if (record.event.type === 'effect.done')
    return record.event.gone ? 'nobody waits for the answer any more' : '';
  if (delayOf(record.event.type) === 'window') return windowOver(record);
  const event = known(record.event);
  if (!event) return undefined;
  switch (event.type) {
    case 'SET': {
      const { who, op, transID, changed = [] } = event;
      const what = op ? `${OPS[op]} ${transID}` : 'saves';
      const paths = op === 'commit' || op === 'revert' ? '' : `: ${listed(changed) || 'nothing changed'}`;
      return `${who} ${what}${paths}${refusalOf(record, event.request)}`;
    }
    case 'APPLY_CURRENT':
      return `${event.who} reapplies the current config${refusalOf(record, event.request)}`;
    case 'CONFIGURE':
      return undefined;
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
  'CONFIGURE',
  'LOADED',
  'APPLIED',
  'APPLY_FAILED',
  'OVERTAKEN',
  'effect.failed',
  'effect.lost',
]);

function known(event: LogEvent): TransactionEvent | undefined {
  return KNOWN.has(event.type) ? (event as unknown as TransactionEvent) : undefined;
}

/** The timer that ends an uncommitted transaction. It reverts at once, unless another apply is still running. */
function windowOver({ effects }: LogRecord): string {
  const apply = effects.find(({ type }) => type === 'router.apply')?.params as ApplyParams | undefined;
  return apply
    ? `window of ${apply.transID} ran out, reverts`
    : 'window ran out, reverts after the running apply';
}

/** Why the request was turned away at once, when it was. */
function refusalOf({ effects }: LogRecord, request: string): string {
  for (const { type, params } of effects) {
    if (type !== 'http.reply') continue;
    const { to, status, body } = params as unknown as ReplyParams;
    if (to === request && status !== 200) return ` (refused: ${body.errors.join('; ')})`;
  }
  return '';
}

function listed(items: readonly string[]): string {
  return items.length > 4 ? `${items.slice(0, 3).join(', ')} and ${items.length - 3} more` : items.join(', ');
}

function short(ncid: string): string {
  return `ncid ${ncid.slice(0, 8)}…`;
}
