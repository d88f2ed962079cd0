import { assign, setup } from 'xstate';
import { ALERT_RAISE, type AlertRaised } from '../../contracts/alerts.ts';
import { type DataCheckResult, isDamage, summaryOf } from './findings.ts';

export interface DataCheckContext {
  /** The newest reading of the whole folder. */
  readonly last?: DataCheckResult;
}

export type DataCheckEvent = { readonly type: 'CHECKED' } & DataCheckResult;

interface Args {
  readonly context: DataCheckContext;
  readonly event: DataCheckEvent;
}

const raise = {
  type: ALERT_RAISE,
  params: ({ event }: Args): AlertRaised => ({
    name: 'data.damaged',
    severity: event.findings.some(isDamage) ? 'critical' : 'warning',
    text: `The data folder is not as it was left: ${summaryOf(event)}.`,
    labels: { state: 'firing' },
  }),
} as const;

const resolve = {
  type: ALERT_RAISE,
  params: (): AlertRaised => ({
    name: 'data.damaged',
    severity: 'info',
    text: 'The newest check found everything in the data folder as it was left.',
    labels: { state: 'resolved' },
  }),
} as const;

/** What the checks of the data folder found. One record each; an alert when that is something else than the last time. */
export const dataCheck = setup({
  types: {} as { context: DataCheckContext; events: DataCheckEvent },
  guards: {
    isNews: ({ context, event }) =>
      event.findings.length > 0 && (!context.last || summaryOf(context.last) !== summaryOf(event)),
    isFound: ({ event }) => event.findings.length > 0,
    isResolved: ({ context }) => (context.last?.findings.length ?? 0) > 0,
  },
  actions: {
    [ALERT_RAISE]: (_: unknown, _alert: AlertRaised) => {},
    remember: assign(({ event: { type: _, ...last } }) => ({ last })),
  },
}).createMachine({
  id: 'data-check',
  context: {},
  initial: 'unchecked',
  on: {
    CHECKED: [
      { guard: 'isNews', target: '.damaged', actions: [raise, 'remember'] },
      { guard: 'isFound', target: '.damaged', actions: 'remember' },
      { guard: 'isResolved', target: '.sound', actions: [resolve, 'remember'] },
      { target: '.sound', actions: 'remember' },
    ],
  },
  states: { unchecked: {}, sound: {}, damaged: {} },
});
