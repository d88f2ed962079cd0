/** What goes into and comes out of the rotation of the ingest key: settings, context and events. */

/** Who makes the new key. */
export type Maker =
  /** We do, being the collector: old and new are accepted side by side. */
  | 'own'
  /** The UI, asked over its API. */
  | 'api'
  /** A person at the UI. */
  | 'operator';

/** Times in milliseconds. */
export interface RotationSettings {
  /** Until the new key must be seen in the collector's config. */
  readonly adoptMs: number;
  /** Between two looks at who uses which key, when nobody is newly seen; ten times as long for external producers. */
  readonly lookMs: number;
  /** In which producers take up a stored key by themselves. */
  readonly refreshMs: number;
  /** Until the old key ends whoever still uses it. */
  readonly overlapMs: number;
  /** Between two tries to store the key. */
  readonly retryMs: number;
}

export interface Seen {
  readonly producer: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** When a producer was last seen with which key, epoch milliseconds. */
export interface Producer {
  readonly old?: number | undefined;
  readonly fresh?: number | undefined;
}

/** In their order. */
export const STEPS = ['regenerate', 'adopt', 'store', 'refresh', 'external', 'retire'] as const;
export type Step = (typeof STEPS)[number];

export type FailureReason = 'not_regenerated' | 'not_adopted' | 'not_stored' | 'not_retired' | 'abandoned';

export interface Failure {
  readonly step: Step;
  readonly reason: FailureReason;
  /** For a person. */
  readonly text: string;
}

export interface RotationContext {
  readonly maker: Maker;
  readonly settings: RotationSettings;
  /** Fingerprints of the key before and of the new one. */
  readonly old?: string | undefined;
  readonly fresh?: string | undefined;
  readonly startedAt?: number | undefined;
  /** What is being done; absent while nothing is under way. */
  readonly step?: Step | undefined;
  /** When each step was finished, epoch milliseconds. */
  readonly done: Partial<Readonly<Record<Step, number>>>;
  readonly producers: Readonly<Record<string, Producer>>;
  /** Producers outside of the cluster, which a person updates. */
  readonly external: readonly string[];
  /** A person said that they all are. */
  readonly confirmed?: true | undefined;
  /** A cluster is configured in which a refresh can be forced. */
  readonly canForce: boolean;
  /** What was done to force it. */
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
  /** A person must do the step. */
  | { readonly type: 'BY_HAND'; readonly at: number; readonly text: string }
  | { readonly type: 'CONFIG_READ'; readonly at: number; readonly fingerprint?: string }
  | { readonly type: 'STORED'; readonly at: number; readonly place: string }
  | {
      readonly type: 'LOOKED';
      readonly at: number;
      readonly old: readonly Seen[];
      readonly fresh: readonly Seen[];
    }
  /** One is seen with the new key for the first time: worth a look at once. */
  | { readonly type: 'MOVED'; readonly at: number; readonly producer: string }
  | { readonly type: 'FORCE'; readonly at: number }
  | { readonly type: 'FORCED'; readonly at: number; readonly what: readonly string[] }
  | { readonly type: 'EXTERNAL_DONE'; readonly at: number }
  | { readonly type: 'RETIRED'; readonly at: number }
  | { readonly type: 'RESUME'; readonly at: number }
  | { readonly type: 'ABANDON'; readonly at: number }
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
