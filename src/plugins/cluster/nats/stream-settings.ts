import type { DiscardPolicy, RetentionPolicy, StorageType, StreamConfig } from '@nats-io/jetstream';

/** How a stream is to be (docs/cluster.md, "The log on a stream"). */
export interface StreamSettings {
  readonly name: string;
  readonly subjects: readonly string[];
  /** `file` unless set. */
  readonly storage?: 'file' | 'memory';
  /** The most that it may hold, bytes. */
  readonly maxBytes: number;
  /** The most messages that it may hold; any number unless set. */
  readonly maxMessages?: number;
  /** Of a message with its headers, bytes; as large as the servers take unless set. */
  readonly largestMessage?: number;
  /** What happens when it is full: new messages are refused, or old ones removed. `new` unless set. */
  readonly discard?: 'new' | 'old';
  /** Copies on different servers; three where the servers of NATS are a cluster, else one, unless set. */
  readonly replicas?: number | undefined;
  /** With fewer copies it is refused: one server alone would stand for a quorum, or lose it. Not unless set. */
  readonly needsCopies?: boolean;
  /** Whether the oldest messages may be removed together to make room; not unless set. */
  readonly isTrimmed?: boolean;
}

const NANOS = 1_000_000;
/** How long an id of a message is known again. */
const DUPLICATE_WINDOW_MS = 120_000;
/** One of three may be lost. */
export const CLUSTER_REPLICAS = 3;

/** What of a stream must be as we need it; the rest may be what the server makes of it. */
type Wanted = Pick<
  StreamConfig,
  | 'name'
  | 'subjects'
  | 'retention'
  | 'storage'
  | 'discard'
  | 'max_bytes'
  | 'max_msgs'
  | 'max_msgs_per_subject'
  | 'max_msg_size'
  | 'max_age'
  | 'num_replicas'
  | 'duplicate_window'
  | 'allow_direct'
  | 'allow_rollup_hdrs'
  | 'deny_delete'
  | 'deny_purge'
>;

/** An operator may change these without any harm. */
const SIZES = new Set<string>(['max_bytes', 'max_msg_size', 'num_replicas']);
/** How the client of NATS names a thing is a type of its own; the values are these words. */
const LIMITS = 'limits' satisfies `${RetentionPolicy}`;

/**
 * @param isClustered whether the server is one of several
 * @returns the configuration as JetStream takes it: each setting is named, none left to the server
 */
export function configOf(settings: StreamSettings, isClustered: boolean): Wanted {
  const { storage = 'file', discard = 'new', isTrimmed = false } = settings;
  return {
    name: settings.name,
    subjects: [...settings.subjects],
    retention: LIMITS as RetentionPolicy,
    storage: storage as StorageType,
    discard: discard as DiscardPolicy,
    max_bytes: settings.maxBytes,
    max_msgs: settings.maxMessages ?? -1,
    max_msgs_per_subject: -1,
    max_msg_size: settings.largestMessage ?? -1,
    max_age: 0,
    num_replicas: settings.replicas ?? (isClustered ? CLUSTER_REPLICAS : 1),
    duplicate_window: DUPLICATE_WINDOW_MS * NANOS,
    // Any replica would answer such reads, also one that lags behind.
    allow_direct: false,
    allow_rollup_hdrs: false,
    deny_delete: true,
    deny_purge: !isTrimmed,
  };
}

/**
 * Compares a stream that is there with what is needed; JetStream itself would say nothing.
 *
 * @returns with what it does not keep what it promises
 */
export function differencesOf(
  settings: StreamSettings,
  there: StreamConfig,
  isClustered: boolean,
): readonly string[] {
  const found: string[] = [];
  const wanted = configOf(settings, isClustered);
  const lacksCopies = settings.needsCopies === true && there.num_replicas < wanted.num_replicas;
  for (const [name, value] of Object.entries(wanted)) {
    if (SIZES.has(name) && !(name === 'num_replicas' && lacksCopies)) continue;
    const is = there[name as keyof StreamConfig];
    const [left, right] = [textOf(is ?? (typeof value === 'boolean' ? false : undefined)), textOf(value)];
    if (left !== right) found.push(`${name} is ${left}, not ${right}`);
  }
  if (there.sealed) found.push('it is sealed');
  if (there.mirror || there.sources?.length) found.push('it copies another stream');
  if (there.no_ack) found.push('no_ack is true, not false');
  return found;
}

function textOf(value: unknown): string {
  return Array.isArray(value) ? [...value].sort().join(' ') : String(value);
}
