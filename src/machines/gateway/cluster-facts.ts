/** How a host stands to the others at a call; absent without a cluster. */
export interface ClusterFacts {
  /** This host. */
  readonly host: string;
  /** How many there are, this one included. */
  readonly hosts: number;
  /** How long it has been cut off, milliseconds; absent while it is connected. */
  readonly isolatedMs?: number;
  /** For how long a host that is cut off serves keys that it knows, milliseconds. */
  readonly graceMs?: number;
  /** It has just started or come back, and has not read yet what it missed: absent when it has, and in decisions of older releases. */
  readonly isBehind?: true;
  /** Messages were lost to this host: for so long yet it does not know what was granted, and uses nothing. Milliseconds. */
  readonly closedMs?: number;
  /** Of a key with a limit of what is open at once: what this host had open when it last told the others. */
  readonly openAtBeat?: number;
  /** What the others had open as they last told. */
  readonly openElsewhere?: number;
}

/**
 * How many calls of a key this host may have open: what it last told of, and its part of what was free then, rounded up so
 * that nothing stays unused.
 *
 * @param limit for all hosts
 */
export function mayHaveOpen(
  limit: number,
  { hosts, openAtBeat = 0, openElsewhere = 0 }: ClusterFacts,
): number {
  const free = Math.max(0, limit - openAtBeat - openElsewhere);
  return Math.min(limit, openAtBeat + Math.ceil(free / Math.max(1, hosts)));
}
