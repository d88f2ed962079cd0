import { assign, setup } from 'xstate';
import { type Alert, effect } from './effect.ts';
import type { AnswerParams, CallEnded, DoorRule } from './mcp-access/shapes.ts';

export interface DoorContext {
  /** How often each rule turned somebody away. */
  readonly counts: Partial<Readonly<Record<DoorRule, number>>>;
  /** When each was last told to a person, epoch milliseconds. */
  readonly told: Partial<Readonly<Record<DoorRule, number>>>;
}

export type DoorEvent =
  | {
      readonly type: 'TURNED_AWAY';
      readonly at: number;
      readonly rule: DoorRule;
      /** Address of the caller; never what it presented. */
      readonly source: string;
      readonly path: string;
    }
  | CallEnded;

interface Args {
  readonly context: DoorContext;
  readonly event: DoorEvent;
}

/** A scanner must not become a flood of alerts. */
const ALERT_EVERY_MS = 60_000;

const GRAVE: Partial<Readonly<Record<DoorRule, string>>> = {
  master_key_presented:
    'The master key was presented on an MCP route. It belongs to admin endpoints alone: rotate it.',
  key_only_in_authorization:
    'A virtual key came in the Authorization header instead of the admission header. It was not forwarded; rotate it.',
};

const grave = ({ context, event }: Args): boolean =>
  event.type === 'TURNED_AWAY' &&
  GRAVE[event.rule] !== undefined &&
  event.at - (context.told[event.rule] ?? Number.NEGATIVE_INFINITY) >= ALERT_EVERY_MS;

/**
 * Callers of the gateway without a key that is known (G3, G9, G25): why and from where, never with what.
 */
export const mcpDoor = setup({
  types: { context: {} as DoorContext, events: {} as DoorEvent },
  actions: {
    'gateway.answer': effect<AnswerParams>(),
    'alert.raise': effect<Alert>(),
    count: assign(({ context, event }) => {
      if (event.type !== 'TURNED_AWAY') return {};
      return { counts: { ...context.counts, [event.rule]: (context.counts[event.rule] ?? 0) + 1 } };
    }),
    told: assign(({ context, event }) => {
      if (event.type !== 'TURNED_AWAY') return {};
      return { told: { ...context.told, [event.rule]: event.at } };
    }),
  },
  guards: { grave },
}).createMachine({
  id: 'mcp-door',
  context: { counts: {}, told: {} },
  initial: 'shut',
  states: {
    shut: {
      on: {
        TURNED_AWAY: [
          {
            guard: 'grave',
            actions: [
              answer(),
              {
                type: 'alert.raise',
                params: ({ event }: Args): Alert => {
                  const { rule, source, path } = event as Extract<DoorEvent, { type: 'TURNED_AWAY' }>;
                  return {
                    name: `gateway.${rule}`,
                    severity: 'critical',
                    text: GRAVE[rule] ?? '',
                    labels: { source, path },
                  };
                },
              },
              'count',
              'told',
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
      rule: event.type === 'TURNED_AWAY' ? event.rule : 'no_key',
    }),
  } as const;
}
