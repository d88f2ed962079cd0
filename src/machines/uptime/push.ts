import { assign, setup } from 'xstate';

export interface HandPushContext {
  /** How the newest push ended, in words. */
  readonly last?: string | undefined;
  readonly lastAt?: number | undefined;
}

export type HandPushEvent =
  | { type: 'PUSHED'; at: number; status: number }
  | { type: 'PUSH_REFUSED'; at: number; status: number; msg?: string; body: string; exitStatus: number }
  | { type: 'PUSH_FAILED'; at: number; reason: string; exitStatus: number };

/**
 * What pushes by hand came to, one actor a push monitor (O15): whoever tries out a push leaves its answer, with the body
 * that nobody else records, in the event log.
 */
export const handPush = setup({
  types: { context: {} as HandPushContext, events: {} as HandPushEvent },
  actions: {
    note: assign(({ event }) => ({ last: wordsOf(event), lastAt: event.at })),
  },
}).createMachine({
  id: 'uptime-push',
  context: {},
  initial: 'untried',
  states: { untried: {}, delivered: {}, failed: {} },
  on: {
    PUSHED: { target: '.delivered', actions: 'note' },
    PUSH_REFUSED: { target: '.failed', actions: 'note' },
    PUSH_FAILED: { target: '.failed', actions: 'note' },
  },
});

function wordsOf(event: HandPushEvent): string {
  switch (event.type) {
    case 'PUSHED':
      return `delivered, HTTP ${event.status}`;
    case 'PUSH_REFUSED':
      return `HTTP ${event.status}: ${event.msg ?? (event.body || 'an empty body')}`;
    case 'PUSH_FAILED':
      return event.reason;
  }
}
