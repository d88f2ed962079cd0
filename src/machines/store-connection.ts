import { assign, setup } from 'xstate';
import { type Alert, effect } from './effect.ts';

export interface StoreConnectionContext {
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

const lost = ({ event }: { event: StoreConnectionEvent }): Alert => ({
  name: 'router.store_lost',
  severity: 'critical',
  text: 'The Redis that holds the router config cannot be reached: the config is neither served nor changed.',
  labels: event.type === 'LOST' ? { store: event.store, reason: event.reason } : {},
});

/**
 * The connection to a store outside of this process, as the log tells of it: when it was lost and why, which writes
 * were refused meanwhile, when it was back. A loss is told to a person, each time.
 */
export const storeConnection = setup({
  types: {} as { context: StoreConnectionContext; events: StoreConnectionEvent },
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
  id: 'store-connection',
  context: { missed: 0 },
  initial: 'unknown',
  on: {
    CONNECTED: { target: '.connected', actions: 'connect' },
    LOST: { target: '.lost', actions: ['lose', { type: 'alert.raise', params: lost }] },
    MISSED: { actions: 'count' },
  },
  states: { unknown: {}, connected: {}, lost: {} },
});
