/** Describes records of the router for `holdfast log`. It imports no code of the running plugin, so that commands load it quickly. */
import {
  DEFAULT_WORDS,
  HIDDEN,
  type ProblemTest,
  problemEvents,
  type RecordOf,
  type RecordWords,
  routineWords,
} from '../../core/kernel/actors/definition.ts';
import { isObject } from '../../core/kernel/json.ts';
import { delayOf, type LogRecord } from '../../core/kernel/log/record.ts';
import type { connection } from '../../machines/connection.ts';
import type { accessPoints } from '../../machines/router/access-points.ts';
import type { addressSets } from '../../machines/router/address-sets.ts';
import type { routerConfig } from '../../machines/router/config.ts';
import type { dhcpService } from '../../machines/router/dhcp.ts';
import type { observedConfig } from '../../machines/router/observed-config.ts';
import type { WanChange, wan } from '../../machines/router/wan.ts';

export const words: RecordWords = {
  'router.config': describeConfigRecord,
  'router.store': describeStoreRecord,
  'router.dhcp': describeDhcpRecord,
  'router.address_sets': describeSetsRecord,
  'router.wan': describeWanRecord,
  'router.observed_config': describeObservedRecord,
  'router.access_points': describeAccessPoints,
};

const OPS = { append: 'appends', commit: 'commits', revert: 'reverts' } as const;

export function describeConfigRecord(record: RecordOf<typeof routerConfig>): string | undefined {
  const { event } = record;
  if (delayOf(event.type) === 'window') return describeWindow(record);
  switch (event.type) {
    case 'SET': {
      const { who, op, transID, changed } = event;
      const what = op ? `${OPS[op]} ${transID}` : 'saves';
      const paths = changed ? `: ${listed(changed) || 'nothing changed'}` : '';
      return `${who} ${what}${paths}${describeRefusal(record, event.request)}`;
    }
    case 'APPLY_CURRENT':
      return `${event.who}${othersOf(event.callers)} reapplies the current config${describeRefusal(record, event.request)}`;
    case 'LOADED':
      return record.ignored ? HIDDEN : `the store contains ${short(event.ncid)}`;
    case 'APPLIED':
      return `${short(event.ncid)} is active, reapplied: ${listed(event.reapplied) || 'nothing'}`;
    case 'APPLY_FAILED':
      return `apply failed: ${event.errors.join('; ')}`;
    case 'OVERTAKEN':
      return `somebody else changed the store, which now contains ${short(event.ncid)}`;
    default:
      return describeEffectDone(record) ?? routineWords(record, CONFIG);
  }
}
describeConfigRecord.problem = {
  marks: ['"APPLY_FAILED"', '"xstate.after.window', '"http.reply"'],
  is: (record) =>
    record.event.type === 'APPLY_FAILED' ||
    delayOf(record.event.type) === 'window' ||
    ('request' in record.event && describeRefusal(record, String(record.event.request)) !== ''),
} satisfies ProblemTest;

const CONFIG = { CONFIGURE: 'is configured', retry: 'tries again' };

const othersOf = (callers = 1): string => (callers === 1 ? '' : ` (and ${callers - 1} more)`);

function describeEffectDone({ event }: LogRecord): string | undefined {
  if (event.type !== 'effect.done') return DEFAULT_WORDS;
  return event.gone ? 'nobody waits for the answer' : HIDDEN;
}

/** The timer that ends an uncommitted transaction. It reverts at once, unless another apply is still running. */
function describeWindow({ effects }: LogRecord): string {
  const apply = effects.find(({ type }) => type === 'router.apply')?.params;
  return isObject(apply)
    ? `the window of ${apply.transID} is over, reverts`
    : 'the window is over, reverts after the running apply';
}

/** Why the request was refused at once, when it was. */
function describeRefusal({ effects }: LogRecord, request: string): string {
  for (const { type, params } of effects) {
    if (type !== 'http.reply' || !isObject(params) || params.to !== request || params.status === 200)
      continue;
    const errors = isObject(params.body) ? params.body.errors : undefined;
    if (Array.isArray(errors)) return ` (refused: ${errors.join('; ')})`;
  }
  return '';
}

function listed(items: readonly string[]): string {
  return items.length > 4 ? `${items.slice(0, 3).join(', ')} and ${items.length - 3} more` : items.join(', ');
}

function short(ncid: string): string {
  return `ncid ${ncid.slice(0, 8)}…`;
}

export function describeStoreRecord(record: RecordOf<typeof connection>): string | undefined {
  const { event } = record;
  switch (event.type) {
    case 'CONNECTED':
      return `connected to ${event.store}`;
    case 'LOST':
      return `cannot reach ${event.store}: ${event.reason}`;
    case 'MISSED':
      return `${event.who} saves: refused, the store cannot be reached`;
    default:
      return isDone(record) ? HIDDEN : DEFAULT_WORDS;
  }
}
describeStoreRecord.problem = problemEvents('LOST', 'MISSED');

function isDone({ event }: LogRecord): boolean {
  return event.type === 'effect.done';
}

export function describeDhcpRecord({ event }: RecordOf<typeof dhcpService>): string | undefined {
  if (delayOf(event.type) !== undefined) return 'the burst is over, restarts';
  if (event.type === 'REWRITTEN') return `files of ${event.legs.join(', ')} were rewritten`;
  if (event.type !== 'RESTARTED') return DEFAULT_WORDS;
  const { files, adopted } = event;
  return `restarted, read ${files.length} files${adopted.length > 0 ? `, adopted ${adopted.join(', ')}` : ''}`;
}

export function describeSetsRecord({ event }: RecordOf<typeof addressSets>): string | undefined {
  if (delayOf(event.type) !== undefined) return 'fills the sets';
  if (event.type === 'ADDRESSES')
    return `addresses changed, ${Object.keys(event.sets).length} sets will follow`;
  if (event.type === 'READ') return `the kernel holds ${Object.keys(event.sets).length} sets with prefixes`;
  return event.type === 'POPULATED' ? `${Object.keys(event.sets).length} sets are filled` : DEFAULT_WORDS;
}

export function describeWanRecord({ event }: RecordOf<typeof wan>): string | undefined {
  if (event.type === 'CHANGED') return describeWanChange(event);
  if (event.type === 'WAN_APPLIED')
    return event.reapplied.length > 0 ? `reapplied: ${event.reapplied.join(', ')}` : 'reapplied nothing';
  return event.type === 'WAN_REFUSED' ? `could not be applied: ${event.reason}` : DEFAULT_WORDS;
}

function describeWanChange({ kind, prefix, legs = [] }: WanChange): string {
  const texts: Readonly<Record<WanChange['kind'], string>> = {
    'pd-change': `was delegated ${prefix}`,
    down: 'goes down',
    up: 'goes up',
    lost: 'lost its carrier or its default route',
    connected: 'has a carrier and a default route again',
    readdressed: `somebody else changed addresses of ${listed(legs) || 'the WAN itself'}`,
  };
  return texts[kind];
}

export function describeObservedRecord({ event }: RecordOf<typeof observedConfig>): string | undefined {
  if (event.type === 'SEEN') return `the router serves ${short(event.ncid)}`;
  if (event.type !== 'WRITTEN') return DEFAULT_WORDS;
  const { ncid, posted, ignoreNcid } = event;
  const from =
    posted === ncid
      ? ''
      : posted === undefined
        ? ', posted without an ncid'
        : `, posted with ${short(posted)}`;
  return `the history holds the write of ${short(ncid)}${from}${ignoreNcid ? ', with ignoreNcid' : ''}`;
}

export function describeAccessPoints({ event }: RecordOf<typeof accessPoints>): string | undefined {
  return event.type === 'CHANGED' ? 'the controller of the access points was changed' : DEFAULT_WORDS;
}
