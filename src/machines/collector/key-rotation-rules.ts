import { type ClockSet, moved, movedAll } from '../clock-set.ts';
import type { Alert } from '../effect.ts';

/** The rotation of the ingest key without its statechart: settings, context, events, and the rules over them. */

/** Who makes the new key. */
export type Maker =
  /** We do, being the collector: old and new are accepted side by side. */
  | 'own'
  /** The UI, by a request to its API. */
  | 'api'
  /** A person at the UI. */
  | 'operator';

/** Times in milliseconds. */
export type RotationSettings = {
  /** Until the new key must be seen in the collector's config. */
  readonly adoptMs: number;
  /** Between two readings of the sightings of producers; ten times as long for external producers. */
  readonly lookMs: number;
  /** The time in which producers take up a stored key by themselves. */
  readonly refreshMs: number;
  /** Until the old key ends, even if somebody still uses it. */
  readonly overlapMs: number;
  /** Between two tries to store the key. */
  readonly retryMs: number;
};

/** What is looked at after a new key was stored, in the order in which it is shown. */
export type CheckName =
  /** Who was seen at our own receiver. */
  | 'producers'
  /** The value that the cluster's copy of the secrets store has. */
  | 'synced_secret'
  /** Whether the workloads that read it were started since. */
  | 'pods'
  /** Whether those who sent metrics before send them still. */
  | 'metrics';

/** The outcome of a check. `not_checked` is no success: nobody has looked, for the reason in `text`. */
export type RefreshCheck = {
  readonly check: CheckName;
  readonly result: 'ok' | 'not' | 'not_checked';
  /** What was looked at and found, or why it could not be; for a person and without secrets. */
  readonly text: string;
};

export type Seen = {
  readonly producer: string;
  /** Epoch milliseconds. */
  readonly at: number;
};

/** When a producer was last seen with which key, epoch milliseconds. */
export interface Producer {
  readonly old?: number | undefined;
  readonly fresh?: number | undefined;
}

/** The steps in their order. */
export const STEPS = ['regenerate', 'adopt', 'store', 'refresh', 'external', 'retire'] as const;
export type Step = (typeof STEPS)[number];

export type FailureReason = 'not_regenerated' | 'not_adopted' | 'not_stored' | 'not_retired' | 'abandoned';

export interface Failure {
  readonly step: Step;
  readonly reason: FailureReason;
  /** For a person. */
  readonly text: string;
}

/** How the key in use was put in the secrets store without being rotated. */
export interface Adoption {
  readonly fingerprint: string;
  readonly state: 'storing' | 'stored' | 'by_hand' | 'failed';
  /** When it began, epoch milliseconds. */
  readonly at: number;
  /** Where it is, what a person must do, or why it failed. */
  readonly text?: string | undefined;
}

export interface RotationContext {
  readonly maker: Maker;
  readonly settings: RotationSettings;
  /** Fingerprints of the key before and of the new one. */
  readonly old?: string | undefined;
  readonly fresh?: string | undefined;
  readonly startedAt?: number | undefined;
  /**
   * The step under way; absent while there is none. It is no copy of the state: a step has several states (its work, its
   * pauses), and `failure` names the step that a person resumes.
   */
  readonly step?: Step | undefined;
  /** When each step was finished, epoch milliseconds. */
  readonly done: Partial<Readonly<Record<Step, number>>>;
  readonly producers: Readonly<Record<string, Producer>>;
  /** Producers outside of the cluster, which a person updates. */
  readonly external: readonly string[];
  /** A person has confirmed that all of them are updated. */
  readonly confirmed?: true | undefined;
  /** A cluster is configured in which a refresh can be forced. */
  readonly canForce: boolean;
  /** What the newest look at the refresh has found. */
  readonly checks?: readonly RefreshCheck[] | undefined;
  /** The storing of the first key, which rotates nothing. */
  readonly adoption?: Adoption | undefined;
  /** What was done to force the refresh. */
  readonly forced?: readonly string[] | undefined;
  /** When the time of the present step is over, epoch milliseconds. */
  readonly deadlineAt: number;
  readonly tries: number;
  /** What a person must do, or why the newest try failed. */
  readonly note?: string | undefined;
  readonly failure?: Failure | undefined;
  /** Why the newest request was refused. */
  readonly refused?: string | undefined;
}

export type RotationEvent =
  | {
      readonly type: 'ROTATE';
      readonly at: number;
      /** Which secret, by its name in the table of keys. */
      readonly name: string;
      readonly maker: Maker;
      readonly old?: string;
      readonly producers: readonly Seen[];
      readonly external: readonly string[];
      readonly canForce: boolean;
      readonly settings: RotationSettings;
    }
  | { readonly type: 'REGENERATED'; readonly at: number }
  /** The key in use is to be stored as it is. */
  | {
      readonly type: 'ADOPT';
      readonly at: number;
      readonly fingerprint?: string;
      /** Fingerprint of what the secrets store holds; absent when it holds none. */
      readonly stored?: string;
      /** Whether another value in the store is replaced. */
      readonly replace: boolean;
    }
  /** What has been looked at after the new key was stored. */
  | { readonly type: 'CHECKED'; readonly at: number; readonly checks: readonly RefreshCheck[] }
  /** A person must do the step. */
  | { readonly type: 'BY_HAND'; readonly at: number; readonly text: string }
  | { readonly type: 'CONFIG_READ'; readonly at: number; readonly fingerprint?: string }
  | { readonly type: 'STORED'; readonly at: number; readonly place: string }
  | {
      readonly type: 'SIGHTINGS_READ';
      readonly at: number;
      readonly old: readonly Seen[];
      readonly fresh: readonly Seen[];
    }
  /** A producer was seen with the new key for the first time, so sightings are read at once. */
  | { readonly type: 'MOVED'; readonly at: number; readonly producer: string }
  | { readonly type: 'FORCE'; readonly at: number }
  | { readonly type: 'FORCED'; readonly at: number; readonly what: readonly string[] }
  | { readonly type: 'EXTERNAL_DONE'; readonly at: number }
  | { readonly type: 'RETIRED'; readonly at: number }
  | { readonly type: 'RESUME'; readonly at: number }
  | { readonly type: 'ABANDON'; readonly at: number }
  | ClockSet
  | {
      readonly type: 'effect.failed';
      readonly effect: string;
      readonly code: string;
      readonly message: string;
    }
  | { readonly type: 'effect.lost'; readonly effect: string };

/** What XState hands to a function that computes. */
export interface Args {
  readonly context: RotationContext;
  readonly event: RotationEvent;
}

export const rotationDefaults = {
  adoptMs: 600_000,
  lookMs: 60_000,
  refreshMs: 900_000,
  overlapMs: 86_400_000,
  retryMs: 30_000,
} as const satisfies RotationSettings;

/** The only key that is rotated, and the one that must never be rotated. */
const ROTATED = 'otel_ingest_api_key';
const LEGACY_TOKEN = 'otel_ingest_token';
const MOST_PRODUCERS = 256;

/** Why a request to rotate or to adopt is refused; undefined when it may begin. */
export function refusal({ context, event }: Args): string | undefined {
  if (event.type === 'ADOPT') return adoptionRefusal(context, event);
  if (event.type !== 'ROTATE') return undefined;
  if (context.adoption?.state === 'storing') return 'the key in use is being stored';
  if (event.name === LEGACY_TOKEN) {
    return `${LEGACY_TOKEN} admits nobody and is never rotated, emptied or deleted: a secret-sync object still refers to it`;
  }
  if (event.name !== ROTATED) return `${event.name} is not rotated here, only ${ROTATED} is`;
  if (context.step !== undefined) return 'a rotation is under way already';
  return event.old === undefined ? 'there is no ingest key to rotate' : undefined;
}

function adoptionRefusal(
  { step, adoption }: RotationContext,
  { fingerprint, stored, replace }: Extract<RotationEvent, { type: 'ADOPT' }>,
): string | undefined {
  if (step !== undefined) return 'a rotation is under way, and stores the new key itself';
  if (adoption?.state === 'storing') return 'the key in use is being stored already';
  if (fingerprint === undefined) return 'there is no ingest key to store';
  if (stored === undefined || stored === fingerprint || replace) return undefined;
  return `the secrets store holds another key (${stored}) than the one in use (${fingerprint}): if nobody needs that one, add --replace`;
}

export function nextStep(step: Step): Step | undefined {
  return STEPS[STEPS.indexOf(step) + 1];
}

/** Producers whose newest sighting is with the old key. */
export function pending({ producers }: RotationContext): string[] {
  return Object.entries(producers)
    .filter(([, { old, fresh }]) => old !== undefined && (fresh === undefined || fresh < old))
    .map(([name]) => name);
}

/** External producers that nobody has confirmed and that were not seen with the new key. */
export function unconfirmed({ external, confirmed, producers }: RotationContext): string[] {
  return confirmed ? [] : external.filter((name) => producers[name]?.fresh === undefined);
}

/** All producers within the cluster use the new key, as far as our receiver sees. */
export function isRefreshed(context: RotationContext): boolean {
  const outside = new Set(context.external);
  const inside = pending(context).filter((name) => !outside.has(name));
  // Producers that send to another collector are not seen here, so that nobody is pending proves nothing.
  const isProof = context.maker === 'own' || Object.values(context.producers).some(({ fresh }) => fresh);
  return inside.length === 0 && isProof;
}

export function isFinished(context: RotationContext): boolean {
  return unconfirmed(context).length === 0 && (context.confirmed === true || pending(context).length === 0);
}

/** Adds sightings to the times of producers. */
export function merge(
  producers: Readonly<Record<string, Producer>>,
  old: readonly Seen[],
  fresh: readonly Seen[],
): Readonly<Record<string, Producer>> {
  const merged: Record<string, Producer> = { ...producers };
  const note = (kind: keyof Producer, { producer, at }: Seen) => {
    if (producer === '__proto__') return; // it would set the prototype
    const before = Object.hasOwn(merged, producer) ? merged[producer] : undefined;
    if (before === undefined && Object.keys(merged).length >= MOST_PRODUCERS) return;
    merged[producer] = { ...before, [kind]: Math.max(at, before?.[kind] ?? 0) };
  };
  for (const seen of old) note('old', seen);
  for (const seen of fresh) note('fresh', seen);
  return merged;
}

/** The clock was set: the times of the steps, their deadline, and when each producer was seen. */
export function followClock({ context, event }: Args): Partial<RotationContext> {
  if (event.type !== 'CLOCK_SET') return {};
  const { byMs } = event;
  const producers = Object.entries(context.producers).map(
    ([name, seen]) => [name, { ...seen, ...moved(seen, byMs, 'old', 'fresh') }] as const,
  );
  const { adoption } = context;
  return {
    ...moved(context, byMs, 'startedAt', 'deadlineAt'),
    done: movedAll(context.done, byMs),
    producers: Object.fromEntries(producers),
    ...(adoption && { adoption: { ...adoption, ...moved(adoption, byMs, 'at') } }),
  };
}

export const timeOf = ({ context, event }: Args): number => ('at' in event ? event.at : context.deadlineAt);

/** Why the event ends a step, for a person. */
export function wordsOf({ event }: Args): string | undefined {
  if (event.type === 'effect.failed') return event.message;
  if (event.type === 'effect.lost') return 'the process ended meanwhile, so the outcome is unknown';
  if (event.type === 'ABANDON') return 'it was abandoned';
  if (event.type === 'BY_HAND') return event.text;
  return undefined;
}

const FAILED: Readonly<Record<Step, { readonly reason: FailureReason; readonly text: string }>> = {
  regenerate: { reason: 'not_regenerated', text: 'The UI made no new key' },
  adopt: {
    reason: 'not_adopted',
    text: "The new key was not seen in the collector's effective config in time",
  },
  store: { reason: 'not_stored', text: 'The new key could not be put in the secrets store' },
  refresh: { reason: 'abandoned', text: 'The rotation ended while producers were refreshed' },
  external: { reason: 'abandoned', text: 'The rotation ended while it waited for external producers' },
  retire: { reason: 'not_retired', text: 'The old key could not be retired' },
};

/** Why the present step failed. */
export function failure(args: Args): Failure {
  const step = args.context.step ?? 'regenerate';
  if (args.event.type === 'ABANDON') return { step, reason: 'abandoned', text: 'A person abandoned it.' };
  const { reason, text } = FAILED[step];
  const why = wordsOf(args) ?? args.context.note;
  return { step, reason, text: `${text}${why === undefined ? '' : `: ${why.replace(/\.$/, '')}`}.` };
}

export function failedAlert({ context }: Args): Alert {
  const { step = '', reason = '', text = '' } = context.failure ?? {};
  return {
    name: 'collector.rotation_failed',
    severity: 'critical',
    text: `The rotation of the ingest key has failed. ${text} Fix it, then: holdfast stack rotate-ingest-key --resume`,
    labels: { step, reason },
  };
}

export function leftBehind({ context }: Args): Alert {
  const left = [...new Set([...pending(context), ...unconfirmed(context)])].join(', ').slice(0, 500);
  return {
    name: 'collector.rotation_left_behind',
    severity: 'warning',
    text: `The overlap of the ingest keys is over, and these were not seen with the new one: ${left}.`,
    labels: { producers: left },
  };
}
