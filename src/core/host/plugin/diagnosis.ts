import type { Place } from '../http/contract.ts';

/** What a check found, for a person. No secret may be in it. @public */
export interface CheckResult {
  /**
   * `ok` is only said of what was looked at. `fail` is what must be fixed, `warn` what one should know; `unknown` is what
   * could not be looked at, and `found` says why.
   */
  readonly state: 'ok' | 'warn' | 'fail' | 'unknown';
  /** What was looked at, e.g. an address or a file. */
  readonly lookedAt: string;
  readonly found: string;
  /** What to do; with every state but `ok`. */
  readonly remedy?: string;
}

/** What a check may use. The plugin has registered, and nothing of it has started. */
export interface CheckContext {
  /** Absolute path of the data folder. */
  readonly dataDir: string;
  /** Aborted when the check has taken too long, and when the command is interrupted. */
  readonly signal: AbortSignal;
  /**
   * What plugins report, by name: from the health page of the running instance, otherwise from the log of the last one;
   * undefined when neither can be read.
   */
  readonly facts?: Readonly<Record<string, unknown>>;
  /** The instance that runs on the data folder; undefined when none does, or it cannot be asked. */
  readonly running?: {
    /** Where its surfaces listen, by name. */
    readonly surfaces: Readonly<Record<string, Place>>;
    /** What plugins contribute to its health page, by name. */
    readonly facts: Readonly<Record<string, unknown>>;
  };
}

/** One thing that `holdfast doctor` looks at. What it throws becomes a `fail` with the error's own remedy. @public */
export interface CheckDefinition {
  /** `<area>.<what>`, e.g. `lamp.bulb`; `holdfast doctor lamp` makes the checks of one area. */
  readonly name: string;
  readonly run: (context: CheckContext) => CheckResult | Promise<CheckResult>;
}
