import type { StreamInfo } from '@nats-io/jetstream';

/** What a server says of the copies of a stream; nothing when it is the only server. */
export type Replication = StreamInfo['cluster'] | undefined;
type Replica = NonNullable<NonNullable<Replication>['replicas']>[number];

/** A leader hears of each of its replicas once a second. */
const SILENT_NANOS = 3_000_000_000;

/** Whether the stream can be written to. A single server leads without saying so. */
export function isLed(replication: Replication): boolean {
  return replication === undefined || replication.leader !== undefined;
}

/** Whether the server of a copy does not answer the leader. */
export function isAway({ offline, active }: Replica): boolean {
  return offline === true || active > SILENT_NANOS;
}
