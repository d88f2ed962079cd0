import { assign, setup } from 'xstate';
import { type ClockSet, movedAll } from '../clock-set.ts';
import { type Alert, effect } from '../effect.ts';
import type { AnswerParams, CallEnded, MisplacedKey, RejectionRule } from './call-shapes.ts';

/** What a person should hear of: a rule, or a key in some other header. */
type Reason = RejectionRule | 'key_misplaced' | 'master_key_misplaced';

export interface RejectionsContext {
  /** How many requests each rule rejected. */
  readonly counts: Partial<Readonly<Record<RejectionRule, number>>>;
  /** When a person was last alerted about each, epoch milliseconds. */
  readonly alertedAt: Partial<Readonly<Record<Reason, number>>>;
}

export type RejectionEvent =
  | {
      readonly type: 'REJECTED';
      readonly at: number;
      readonly rule: RejectionRule;
      /** Address of the caller; never what it presented. */
      readonly source: string;
      readonly path: string;
      /** What stood where it may leak, whatever the rule was. */
      readonly misplaced?: MisplacedKey['key'];
      /** Where, if not in the Authorization header. */
      readonly where?: string;
      /** On a path of the REST API, where the master key does belong, in Authorization. */
      readonly rest?: true;
      /** How many requests of this source the same rule rejected together; absent: 1. */
      readonly count?: number;
    }
  | ClockSet
  | CallEnded;

interface Args {
  readonly context: RejectionsContext;
  readonly event: RejectionEvent;
}

/** A scanner must not become a flood of alerts. */
const ALERT_EVERY_MS = 60_000;

/** The text of the alert for each reason that a person should hear of. */
const ALERT_TEXTS: Partial<Readonly<Record<Reason, string>>> = {
  master_key_presented:
    'The master key was presented on an MCP route. It belongs to admin endpoints alone: rotate it.',
  key_only_in_authorization:
    'A virtual key came in the Authorization header instead of x-gateway-api-key. It was not forwarded; rotate it.',
  key_in_query:
    'A request had a key in its URL, which proxies log. It was refused, and the URL is not kept here; rotate the key.',
  master_key_misplaced:
    'The master key came in a header where it does not belong; it opens admin endpoints in Authorization alone. Rotate it.',
  key_misplaced: 'A virtual key came in a header where it does not belong. It was not forwarded; rotate it.',
};

/** What a person should hear of: the rule itself, or what was found beside it. */
const reasonOf = (event: RejectionEvent): Reason | undefined => {
  if (event.type !== 'REJECTED') return undefined;
  if (ALERT_TEXTS[event.rule] !== undefined) return event.rule;
  if (event.misplaced === undefined) return undefined;
  if (event.misplaced === 'master_key') return event.rest ? 'master_key_misplaced' : 'master_key_presented';
  if (event.where === undefined) return 'key_only_in_authorization';
  return event.where === 'query' || event.where === 'path' ? 'key_in_query' : 'key_misplaced';
};

/** Whether a person is alerted about it: at most once a minute for each reason. */
const mustAlert = ({ context, event }: Args): boolean => {
  const reason = reasonOf(event);
  if (reason === undefined || event.type !== 'REJECTED') return false;
  const passed = event.at - (context.alertedAt[reason] ?? Number.NEGATIVE_INFINITY);
  return passed >= ALERT_EVERY_MS || passed < 0; // below zero the clock was set back
};

/**
 * Callers of the gateway without a key that is known (G3, G9, G25): why and from where, never with what.
 * A reducer: it counts, answers and alerts in its one state.
 */
export const rejections = setup({
  types: { context: {} as RejectionsContext, events: {} as RejectionEvent },
  actions: {
    'gateway.answer': effect<AnswerParams>(),
    'alerts.raise': effect<Alert>(),
    count: assign(({ context, event }) => {
      if (event.type !== 'REJECTED') return {};
      return {
        counts: { ...context.counts, [event.rule]: (context.counts[event.rule] ?? 0) + (event.count ?? 1) },
      };
    }),
    followClock: assign(({ context, event }) =>
      event.type === 'CLOCK_SET' ? { alertedAt: movedAll(context.alertedAt, event.byMs) } : {},
    ),
    alerted: assign(({ context, event }) => {
      const reason = reasonOf(event);
      if (reason === undefined || event.type !== 'REJECTED') return {};
      return { alertedAt: { ...context.alertedAt, [reason]: event.at } };
    }),
  },
  guards: { mustAlert, hasAlerted: ({ context }) => Object.keys(context.alertedAt).length > 0 },
}).createMachine({
  id: 'gateway-rejections',
  context: { counts: {}, alertedAt: {} },
  initial: 'counting',
  states: {
    counting: {
      on: {
        CLOCK_SET: { guard: 'hasAlerted', actions: 'followClock' },
        REJECTED: [
          {
            guard: 'mustAlert',
            actions: [
              answer(),
              {
                type: 'alerts.raise',
                params: ({ event }: Args): Alert => {
                  const { source, path, where } = event as Extract<RejectionEvent, { type: 'REJECTED' }>;
                  const reason = reasonOf(event) ?? 'no_key';
                  return {
                    name: `gateway.${reason}`,
                    severity: 'critical',
                    text: ALERT_TEXTS[reason] ?? '',
                    labels: { source, path, ...(where !== undefined && { where }) },
                  };
                },
              },
              'count',
              'alerted',
            ],
          },
          { actions: [answer(), 'count'] },
        ],
      },
    },
  },
});

function answer() {
  return {
    type: 'gateway.answer',
    params: ({ event }: Args): AnswerParams => ({
      rule: event.type === 'REJECTED' ? event.rule : 'no_key',
    }),
  } as const;
}
