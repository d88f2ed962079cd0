/** Settings, context and events of the machine `rule.ts`. Times are epoch milliseconds. */
import type { ClockSet } from '../clock-set.ts';

/** The longest time without a record of an evaluation, milliseconds: what changes nothing in between is counted. */
export const REPORT_MS = 3_600_000;

/** The values that are wrong; the bound itself is not one of them. */
export interface Condition {
  readonly kind: 'above' | 'below';
  readonly than: number;
}

/** The settings of a rule that its machine needs; the query stays in the plugin. */
export interface RuleSettings {
  readonly name: string;
  /** For people. */
  readonly title: string;
  readonly severity: 'info' | 'warning' | 'critical';
  readonly condition: Condition;
  /** The time that a query covers, as configured, e.g. `1d`. */
  readonly window: string;
  readonly windowMs: number;
  readonly everyMs: number;
  /** The longest time between two recorded evaluations, where others are made outside and sent when they change something. */
  readonly reportMs?: number | undefined;
  /** How long it must last before it fires, milliseconds. */
  readonly forMs: number;
  /** What missing data means. */
  readonly onNoData: 'fire' | 'ok';
  /**
   * From when on its signal must come: from the beginning, since it came for a day without a gap, or never. Until then missing
   * data is no fault, so that a trial of telemetry ends in no alert at night.
   */
  readonly expect: 'required' | 'steady' | 'optional';
  /** A sample that is older than this does not come any more, milliseconds. */
  readonly freshMs: number;
  /** How long a signal that is not required yet may be absent before that is an alert of its own, milliseconds. */
  readonly unseenAfterMs: number;
  /** The metric, for people. */
  readonly metric: string;
  /** What the value is, for people, e.g. `hours since the last success`. */
  readonly reads?: string | undefined;
  /** What to do first when it fires. */
  readonly firstStep?: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly runbook?: string | undefined;
}

export interface RuleContext extends RuleSettings {
  /** Since when signals could have arrived (epoch ms): missing data of a shorter time means nothing. */
  readonly watchingSince: number;
  /** Starts of the runtime while data has been missing. */
  readonly restarts: number;
  /** Since when it has been looked for, whatever restarts there were (epoch ms). */
  readonly lookedForSince: number;
  /** When the newest sample was seen (epoch ms); undefined when none has ever come. */
  readonly seenAt?: number | undefined;
  /** It comes, or came until the runtime stopped. */
  readonly comes: boolean;
  /** Since when it came without a gap, the newest time that it did (epoch ms). */
  readonly comesSince?: number | undefined;
  /** It has come for a day without a gap. */
  readonly steady: boolean;
  /** Hosts and instances of the newest samples. */
  readonly places: readonly string[];
  readonly evaluations: number;
  /** When the newest evaluation ended (epoch ms). */
  readonly evaluatedAt?: number | undefined;
  /** Its value; undefined when there was no data, which is not zero. */
  readonly value?: number | undefined;
  /** What else the evaluation found that explains the value. */
  readonly finding?: string | undefined;
  readonly breachSince?: number | undefined;
  readonly firingSince?: number | undefined;
  /** Evaluations in a row that failed, and why the last one did. */
  readonly failures: number;
  readonly failure?: string | undefined;
}

export type RuleEvent =
  | { readonly type: 'DEFINE'; readonly at: number; readonly settings: RuleSettings }
  /** The runtime starts: what was sent while it was down may be lost. */
  | { readonly type: 'WATCH'; readonly at: number }
  | { readonly type: 'REMOVE'; readonly at: number }
  /** An operator asks for an evaluation now. */
  | { readonly type: 'EVALUATE'; readonly at: number }
  | {
      readonly type: 'EVALUATED';
      readonly at: number;
      /** Absent when the window holds no data. */
      readonly value?: number;
      readonly finding?: string;
      /** When the newest sample was taken (epoch ms); the evaluation's time unless given. */
      readonly newestAt?: number;
      /** Hosts and instances of the samples. */
      readonly places?: readonly string[];
      /** How many evaluations it stands for: this one, and those before it that changed nothing. */
      readonly looks?: number;
    }
  /** The database could not be queried. */
  | {
      readonly type: 'EVALUATION_FAILED';
      readonly at: number;
      readonly reason: string;
      readonly looks?: number;
    }
  | ClockSet
  | { readonly type: 'effect.failed' };

/** What an evaluation gives. */
export type RuleLook = Extract<RuleEvent, { readonly type: 'EVALUATED' | 'EVALUATION_FAILED' }>;

export interface RuleArgs {
  readonly context: RuleContext;
  readonly event: RuleEvent;
}
