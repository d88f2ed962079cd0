import type { Singleton } from '../../core/contracts/cluster.ts';
import { newestTakeover } from '../../core/kernel/actors/adoption.ts';
import type { Takeover } from '../../machines/cluster/singleton.ts';
import type { Left } from './mirror/inheritance.ts';
import type { ClusterRecords } from './records.ts';
import type { SuccessionOptions } from './succession.ts';

export interface TakeoverNotes extends Pick<SuccessionOptions, 'services' | 'host' | 'recorded'> {
  readonly records: Pick<ClusterRecords, 'singleton'>;
}

/**
 * Records that the work of another host goes on here, when it does.
 *
 * @param token of the tenure
 * @param left what it goes on from; after a crash undefined: then what was recorded says so
 * @param hasBegun whether the beginning was completed; without that the takeover must stand in the log
 */
export function noteTakeover(
  { services, host, recorded, records }: TakeoverNotes,
  { name, actorTypes }: Singleton,
  token: string,
  left?: Left,
  hasBegun = false,
): void {
  const { actors, clock, log } = services;
  const newest = newestTakeover(actors.knownStates(actorTypes), () => true);
  const isNew = newest?.isComplete && newest.first > (recorded(name)?.tookOverBy ?? 0);
  const isOfLeft = !left || (left.host === newest?.host && left.seq === newest.seq);
  const source = isNew && isOfLeft ? newest : hasBegun ? left : undefined;
  if (!source) return;
  const own = { host: source.host, seq: source.seq, hash: source.hash, by: host, token };
  const takeovers: Takeover[] = [...(left?.untold ?? []), ...(own.host === host ? [] : [own])];
  if (takeovers.length === 0) return;
  records.singleton(name, { type: 'TOOK_OVER', at: clock.now(), by: log.lastSeq(), takeovers });
}
