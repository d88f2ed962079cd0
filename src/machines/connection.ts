import { assign, setup } from 'xstate';
import { type Alert, effect } from './effect.ts';

/** The alert that each loss of the connection raises. */
export interface LossAlert {
  readonly name: string;
  readonly text: string;
}

export interface ConnectionContext {
  /** Set once, with the actor. */
  readonly alert: LossAlert;
  /** The store, without credentials. */
  readonly store?: string;
  /** Why the connection is lost; absent while there is one. */
  readonly reason?: string | undefined;
  /** Writes that were refused since the loss. */
  readonly missed: number;
}

export type ConnectionEvent =
  | { readonly type: 'CONNECTED'; readonly store: string }
  | { readonly type: 'LOST'; readonly store: string; readonly reason: string }
  | { readonly type: 'MISSED'; readonly who: string };

interface Lost {
  readonly context: ConnectionContext;
  readonly event: ConnectionEvent;
}

const lost = ({ context: { alert }, event }: Lost): Alert => ({
  name: alert.name,
  severity: 'critical',
  text: alert.text,
  labels: event.type === 'LOST' ? { store: event.store, reason: event.reason } : {},
});

/**
 * The connection to a store outside of this process: when and why it was lost, how many writes were refused meanwhile, and
 * when it was back. Each loss raises an alert. A reducer: its states only name the newest event.
 */
export const connection = setup({
  types: {} as {
    context: ConnectionContext;
    events: ConnectionEvent;
    input: { readonly alert: LossAlert };
  },
  actions: {
    'alerts.raise': effect<Alert>(),
    lose: assign(({ event }) =>
      event.type === 'LOST' ? { store: event.store, reason: event.reason, missed: 0 } : {},
    ),
    connect: assign(({ event }) =>
      event.type === 'CONNECTED' ? { store: event.store, reason: undefined, missed: 0 } : {},
    ),
    count: assign({ missed: ({ context }) => context.missed + 1 }),
  },
}).createMachine({
  id: 'connection',
  context: ({ input: { alert } }) => ({ missed: 0, alert }),
  initial: 'unknown',
  on: {
    CONNECTED: { target: '.connected', actions: 'connect' },
    LOST: { target: '.lost', actions: ['lose', { type: 'alerts.raise', params: lost }] },
    MISSED: { actions: 'count' },
  },
  states: { unknown: {}, connected: {}, lost: {} },
});
