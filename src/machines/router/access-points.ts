import { assign, setup } from 'xstate';
import { effect } from '../effect.ts';

export interface AccessPointsContext {
  /** Changes that the controller took. */
  readonly changes: number;
}

export interface AccessPointsEvent {
  readonly type: 'CHANGED';
  /** Addresses the answer. */
  readonly request: string;
}

/**
 * The access-point controller beside the config (R39): a change of its own is published on its channel. A counter
 * without states.
 */
export const accessPoints = setup({
  types: {
    context: {} as AccessPointsContext,
    events: {} as AccessPointsEvent,
  },
  actions: {
    'router.publish_apc': effect(),
    'http.reply': effect<{ readonly to: string; readonly status: number; readonly body: object }>(),
    count: assign({ changes: ({ context }) => context.changes + 1 }),
  },
}).createMachine({
  id: 'router-access-points',
  context: { changes: 0 },
  initial: 'steady',
  on: {
    CHANGED: {
      actions: [
        'router.publish_apc',
        { type: 'http.reply', params: ({ event }) => ({ to: event.request, status: 200, body: {} }) },
        'count',
      ],
    },
  },
  states: { steady: {} },
});
