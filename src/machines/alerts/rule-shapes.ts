/** What goes into and comes out of an alert rule: settings, context and events. Times are epoch milliseconds. */

/** When a measured value is wrong; the bound itself is not. */
export interface Condition {
  readonly kind: 'above' | 'below';
  readonly than: number;
}

/** A rule as its machine needs it; what it asks of the database is the plugin's business. */
export interface RuleSettings {
  readonly name: string;
  /** For people. */
  readonly title: string;
  readonly severity: 'info' | 'warning' | 'critical';
  readonly condition: Condition;
  /** What it looks back over, in words, e.g. `1d`. */
  readonly window: string;
  readonly windowMs: number;
  readonly everyMs: number;
  /** It must last so long before anybody is told. */
  readonly forMs: number;
  /** What silence means. */
  readonly onNoData: 'fire' | 'ok';
  /** Whether it means that too before the first sample has ever come. */
  readonly onNeverSeen: 'fire' | 'ok';
  readonly labels: Readonly<Record<string, string>>;
  readonly runbook?: string | undefined;
}

export interface RuleContext extends RuleSettings {
  /** Since when signals could have been heard: silence of a shorter time says nothing. */
  readonly watchingSince: number;
  /** Own starts within this silence. */
  readonly restarts: number;
  /** Some look has given a value. */
  readonly seen: boolean;
  readonly looks: number;
  /** The newest look. */
  readonly lookedAt?: number | undefined;
  /** What it gave; undefined when there was no data, which is not zero. */
  readonly value?: number | undefined;
  /** What else was found that explains it. */
  readonly finding?: string | undefined;
  readonly breachSince?: number | undefined;
  readonly firingSince?: number | undefined;
  /** Looks in a row that saw nothing at all, and why. */
  readonly misses: number;
  readonly missed?: string | undefined;
}

export type RuleEvent =
  | { readonly type: 'DEFINE'; readonly at: number; readonly settings: RuleSettings }
  /** The runtime starts: what was sent while it was away may not have been heard. */
  | { readonly type: 'WATCH'; readonly at: number }
  | { readonly type: 'REMOVE'; readonly at: number }
  /** Somebody wants to know now. */
  | { readonly type: 'LOOK'; readonly at: number }
  | {
      readonly type: 'EVALUATED';
      readonly at: number;
      /** Absent when the window holds no data. */
      readonly value?: number;
      readonly finding?: string;
    }
  /** The database could not be asked. */
  | { readonly type: 'UNSEEN'; readonly at: number; readonly reason: string }
  | { readonly type: 'effect.failed' };

/** Own starts that lengthen one silence: a runtime that restarts all the time must not hide that nothing comes. */
export const RESTARTS_FORGIVEN = 3;

/** How long a database that could not be asked is left alone, milliseconds, where the rule itself waits longer. */
export const AGAIN_MS = 30_000;
