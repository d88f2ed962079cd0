import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import type { EventLog } from '../../../core/kernel/log/event-log.ts';
import type { NatsLink } from '../nats/link.ts';
import type { LogStreamLimits } from './incarnations.ts';
import type { OrphanedBranch } from './orphans.ts';
import type { ClusterPosition } from './position.ts';
import type { MetFence } from './standing.ts';

/** The states of actors after a record. */
export interface StatesAt {
  /** The newest record that they have seen. */
  readonly seq: number;
  /** Each as JSON. */
  readonly states: readonly string[];
}

/** Why a stream was left for the next incarnation. */
export interface NewIncarnation {
  readonly incarnation: number;
  readonly reason: string;
  /** Its first record; more than 1 when the local log was pruned. */
  readonly from: number;
}

export interface OutboxOptions {
  readonly link: NatsLink;
  /** Name of the cluster. */
  readonly cluster: string;
  /** Name of this host. */
  readonly host: string;
  readonly dataDir: string;
  /** Closed by whoever opened it, after the stop. */
  readonly position: ClusterPosition;
  readonly log: EventLog;
  /** The public key with which the log is signed. */
  readonly key: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: LogStreamLimits;
  /** Bytes that the body of a message may have: the servers' `max_payload` less the headers. */
  readonly largest: number;
  /** Resolves when it is known that no other process is this host, before its stream is replaced. @throws HF_CLUSTER_NAME_* */
  readonly nameIsOurs: () => Promise<void>;
  /** The states of the actors of singletons, as they are now. */
  readonly states: () => StatesAt;
  /** The types of a singleton's actors. */
  readonly typesOf: (singleton: string) => readonly string[];
  /** The token by which its work began here last. */
  readonly begunBy: (singleton: string) => string | undefined;
  /**
   * Another host took a singleton over. The lease has to end before this returns; the mirroring goes on when the promise
   * resolves, which is when no effect is under way any more.
   */
  readonly onFenced: (fence: MetFence) => void | Promise<void>;
  /**
   * Told when the work has ended and that is on the disk: how many records of a singleton no longer count. A crash may lose what is
   * recorded of it, so a branch can come once more.
   */
  readonly onOrphaned: (branch: OrphanedBranch) => void;
  readonly onIncarnation: (made: NewIncarnation) => void;
  /** Told once when it cannot go on, e.g. because the stream is full, and with undefined when it can again. */
  readonly onTrouble: (error: Error | undefined) => void;
}
