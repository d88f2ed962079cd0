/** A call of a tool, as its client and its upstream saw it. Times are those of the test's monotonic clock, milliseconds. */
export interface Call {
  readonly id: number;
  readonly key: string;
  /** The host whose gateway was asked. */
  readonly host: string;
  /** Of a route that writes: a host that is cut off refuses it at once. */
  readonly writes: boolean;
  readonly sentAt: number;
  /** When its client had the answer; absent when it got none. */
  answeredAt?: number;
  /** Its client has the result of the tool. */
  isDone: boolean;
  /** How often the upstream was asked to do it. */
  times: number;
}

/** A key that all hosts know. */
export interface CalledKey {
  readonly alias: string;
  readonly mintedAt: number;
  /** When somebody was told that it is revoked. */
  revokedAt?: number;
  /** Calls a minute, over all hosts. */
  readonly limit?: number;
}

export interface CallFacts {
  readonly calls: readonly Call[];
  readonly keys: readonly CalledKey[];
  readonly hosts: number;
  /** How long the processor kept a process waiting between two times, milliseconds. */
  readonly stalledMs: (from: number, to: number) => number;
  /** Which time of the message servers' clock a time of the calls is, epoch milliseconds: a limit is of its minutes. */
  readonly serverTime: (at: number) => number;
}

/** Within so long after its revocation was acknowledged every host refuses a key, or knows that it is cut off. */
const REVOKED_WITHIN_MS = 2_000;
const MINUTE_MS = 60_000;
/** Calls that were sent so near to the end of a minute may be counted for the next one, and those after it for the one before. */
const EDGE_MS = 4_000;

/**
 * What is wrong with the calls of tools at the gateways of all hosts:
 * - A call is done once at most, and once if its client has the result.
 * - Nothing that writes is done by a key that was revoked 2 s before the call was sent, whether the host is connected or not.
 * - Nothing at all is done so by a host that is connected. That it was is seen by what it did since: a call that writes, by another key.
 * - In the minute of a limit no more is done than the limit and a slice of each host.
 */
export function callViolations({ calls, keys, hosts, stalledMs, serverTime }: CallFacts): string[] {
  const found: string[] = [];
  for (const call of calls) {
    const what = `call ${call.id} of ${call.key} at ${call.host}`;
    if (call.times > 1) found.push(`a call was done twice: ${what}, ${call.times} times`);
    if (call.isDone && call.times === 0) found.push(`a result of nothing: ${what}`);
  }
  for (const key of keys) {
    const done = calls.filter(({ key: by, times }) => by === key.alias && times > 0);
    const { revokedAt, limit } = key;
    if (revokedAt !== undefined) {
      const from = (until: number) => revokedAt + REVOKED_WITHIN_MS + stalledMs(revokedAt, until);
      const late = done.filter((call) => call.sentAt > from(call.sentAt));
      for (const call of late) {
        if (!call.writes && !wasConnected(call, calls, from(call.sentAt))) continue;
        const ms = Math.round(call.sentAt - revokedAt);
        found.push(`a revoked key: ${textOf(call)} ${ms} ms after the revocation`);
      }
    }
    if (limit === undefined) continue;
    for (const counted of Object.values(Object.groupBy(done, ({ sentAt }) => minuteOf(serverTime(sentAt))))) {
      const inside = (counted ?? []).filter(({ sentAt }) => !isAtEdge(serverTime(sentAt)));
      if (inside.length <= mostOf(limit, hosts)) continue;
      const by = Object.entries(Object.groupBy(inside, ({ host }) => host));
      const shares = by.map(([host, of = []]) => `${of.length} at ${host}`).join(', ');
      found.push(
        `a limit: ${inside.length} calls of ${key.alias}, ${mostOf(limit, hosts)} are the most: ${shares}`,
      );
    }
  }
  return found;
}

const minuteOf = (at: number): number => Math.floor(at / MINUTE_MS);
const isAtEdge = (at: number): boolean => at % MINUTE_MS < EDGE_MS || at % MINUTE_MS > MINUTE_MS - EDGE_MS;

/** The limit, and a slice of each host: half of its even part (`machines/gateway/shares.ts`). */
function mostOf(limit: number, hosts: number): number {
  return limit + hosts * Math.max(1, Math.floor(limit / hosts / 2));
}

/** Whether the host admitted a call that writes, by another key, between a time and a call. */
function wasConnected({ host, key, sentAt }: Call, calls: readonly Call[], from: number): boolean {
  return calls.some(
    (other) =>
      other.writes &&
      other.times > 0 &&
      other.host === host &&
      other.key !== key &&
      other.sentAt > from &&
      (other.answeredAt ?? Number.POSITIVE_INFINITY) < sentAt,
  );
}

function textOf({ id, key, host, writes }: Call): string {
  return `call ${id} of ${key}, which ${writes ? 'writes' : 'reads'}, at ${host},`;
}
