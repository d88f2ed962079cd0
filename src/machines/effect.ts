/**
 * The package's `holdfast/machines`, with which machines are written. It exports XState, because a machine must be built by
 * the same copy of XState that runs it.
 */

/** Of XState, by which machines are written. @public */
export { and, assign, not, or, setup } from 'xstate';

/**
 * Names a side effect in a machine's `setup`: it does nothing itself. The actor system finds the request among
 * the transition's actions, logs it, and only then runs the handler that a plugin registered for its name.
 *
 * @typeParam P the parameters, plain JSON without secrets
 * @example
 * setup({ actions: { 'reconciler.read_leg': effect<{ intf: string }>() } })
 *   .createMachine({ entry: { type: 'reconciler.read_leg', params: ({ context }) => ({ intf: context.intf }) } });
 * @public
 */
export function effect<P = undefined>(): (_: unknown, params: P) => void {
  return () => {};
}

/** Parameters of `alerts.raise`, the effect by which a machine notifies a person; core carries it out. @public */
export interface Alert {
  /** Stable id of the condition, e.g. `router.ncid_bypassed`. */
  readonly name: string;
  readonly severity: 'info' | 'warning' | 'critical';
  /** One sentence for the operator, without secrets. */
  readonly text: string;
  /** `state` among them says `firing` or `resolved` of a condition that lasts; without it this is one event. */
  readonly labels: Readonly<Record<string, string>>;
  /** Present when a rule measured it: what was measured, against which threshold. */
  readonly measured?: {
    readonly title: string;
    readonly value?: number;
    readonly threshold: string;
    readonly window: string;
    /** Hosts and instances of what was measured. */
    readonly places?: readonly string[];
    /** What a person does first. */
    readonly firstStep?: string;
    readonly runbook?: string;
  };
}
