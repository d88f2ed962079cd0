import type { Singleton } from '../../core/contracts/cluster.ts';
import { newestTakeover } from '../../core/kernel/actors/adoption.ts';
import type { Takeover } from '../../machines/cluster/singleton.ts';
import type { ClusterRecords } from './records.ts';
import type { Inherited, SuccessionOptions } from './succession.ts';

export interface TakeoverNotes extends Pick<SuccessionOptions, 'services' | 'host' | 'recorded'> {
  readonly records: Pick<ClusterRecords, 'singleton'>;
}

/**
 * Records that the work of other hosts goes on here, when it does, and where that ends what counts of each.
 *
 * @param token of the tenure
 * @param inherited what it goes on from; after a crash undefined: then what was recorded says so
 * @param hasBegun whether the beginning was completed; without that the takeover must stand in the log
 */
export function noteTakeover(
  { services, host, recorded, records }: TakeoverNotes,
  { name, actorTypes }: Singleton,
  token: string,
  inherited?: Inherited,
  hasBegun = false,
): void {
  const { actors, clock, log } = services;
  const { left, passedOver = [] } = inherited ?? {};
  const newest = newestTakeover(actors.knownStates(actorTypes), () => true);
  const isNew = newest?.isComplete && newest.first > (recorded(name)?.tookOverBy ?? 0);
  const isOfLeft = !inherited || (left?.host === newest?.host && left?.seq === newest?.seq);
  const source = isNew && isOfLeft ? newest : hasBegun ? left : undefined;
  if (!source && !hasBegun) return;
  // One host can be both: it held the lease again since, and had begun by an earlier one.
  const ended = new Map([...passedOver, ...(source ? [source] : [])].map((one) => [one.host, one]));
  ended.delete(host);
  const own = [...ended.values()].map(({ host: of, seq, hash }) => ({
    host: of,
    seq,
    hash,
    by: host,
    token,
  }));
  const takeovers: Takeover[] = [...(left?.untold ?? []), ...own];
  if (takeovers.length === 0) return;
  records.singleton(name, { type: 'TOOK_OVER', at: clock.now(), by: log.lastSeq(), takeovers });
}
