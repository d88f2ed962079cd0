import { assign, setup } from 'xstate';

export interface PushContext {
  /** How the newest push ended. */
  readonly last?: string | undefined;
  readonly lastAt?: number | undefined;
}

export type PushRecordEvent =
  | { type: 'PUSHED'; at: number; status: number }
  | { type: 'PUSH_REFUSED'; at: number; status: number; msg?: string; body: string; exitStatus: number }
  | { type: 'PUSH_FAILED'; at: number; reason: string; exitStatus: number };

/**
 * The answers to manual pushes, one actor for each push monitor (O15): the body of an answer is recorded nowhere else.
 * A reducer: its states only name how the newest push ended.
 */
export const manualPush = setup({
  types: { context: {} as PushContext, events: {} as PushRecordEvent },
  actions: {
    note: assign(({ event }) => ({ last: outcomeText(event), lastAt: event.at })),
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

function outcomeText(event: PushRecordEvent): string {
  switch (event.type) {
    case 'PUSHED':
      return `delivered, HTTP ${event.status}`;
    case 'PUSH_REFUSED':
      return `HTTP ${event.status}: ${event.msg ?? (event.body || 'an empty body')}`;
    case 'PUSH_FAILED':
      return event.reason;
  }
}
