import { assign, setup } from 'xstate';
import { type Alert, effect } from './effect.ts';

/** How a loss is told, where the store is another than the router's. */
export interface StoreAlert {
  readonly name: string;
  readonly text: string;
}

export interface StoreConnectionContext {
  /** Set once, with the actor. */
  readonly alert?: StoreAlert;
  /** The store as it may be shown, without credentials. */
  readonly store?: string;
  /** Why it is away; absent while it is there. */
  readonly reason?: string | undefined;
  /** Writes that were refused since it is away. */
  readonly missed: number;
}

export type StoreConnectionEvent =
  | { readonly type: 'CONNECTED'; readonly store: string }
  | { readonly type: 'LOST'; readonly store: string; readonly reason: string }
  | { readonly type: 'MISSED'; readonly who: string };

const ROUTER_STORE: StoreAlert = {
  name: 'router.store_lost',
  text: 'The Redis that holds the router config cannot be reached: the config is neither served nor changed.',
};

interface Lost {
  readonly context: StoreConnectionContext;
  readonly event: StoreConnectionEvent;
}

const lost = ({ context: { alert = ROUTER_STORE }, event }: Lost): Alert => ({
  name: alert.name,
  severity: 'critical',
  text: alert.text,
  labels: event.type === 'LOST' ? { store: event.store, reason: event.reason } : {},
});

/**
 * The connection to a store outside of this process, as the log tells of it: when it was lost and why, which writes
 * were refused meanwhile, when it was back. A loss is told to a person, each time.
 */
export const storeConnection = setup({
  types: {} as {
    context: StoreConnectionContext;
    events: StoreConnectionEvent;
    input: { readonly alert?: StoreAlert } | undefined;
  },
  actions: {
    'alert.raise': effect<Alert>(),
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
  context: ({ input }) => ({ missed: 0, ...(input?.alert && { alert: input.alert }) }),
  initial: 'unknown',
  on: {
    CONNECTED: { target: '.connected', actions: 'connect' },
    LOST: { target: '.lost', actions: ['lose', { type: 'alert.raise', params: lost }] },
    MISSED: { actions: 'count' },
  },
  states: { unknown: {}, connected: {}, lost: {} },
});
