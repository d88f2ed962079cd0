import { assign, setup } from 'xstate';
import { defineActor } from '../../src/core/kernel/actors/definition.ts';
import { effect } from '../../src/machines/effect.ts';

/** A door with a lock that falls shut by itself: small, with a timer, effects, a guard and a final state. */
export const doorMachine = setup({
  types: {} as {
    context: { opened: number; closeAfterMs: number; by?: string };
    input: { closeAfterMs: number };
    events:
      | { type: 'OPEN'; by: string }
      | { type: 'CLOSE' }
      | { type: 'KNOCK' }
      | { type: 'BREAK' }
      | { type: 'RANG'; loud: boolean };
  },
  actions: { 'bell.ring': effect<{ times: number }>(), 'lamp.on': effect<{ by: string }>() },
  guards: { known: ({ event }) => event.type === 'OPEN' && event.by !== 'stranger' },
  delays: { closing: ({ context }) => context.closeAfterMs },
}).createMachine({
  id: 'door',
  context: ({ input }) => ({ opened: 0, closeAfterMs: input?.closeAfterMs ?? 1_000 }),
  initial: 'closed',
  states: {
    closed: {
      on: {
        OPEN: {
          guard: 'known',
          target: 'open',
          actions: [
            assign({ opened: ({ context }) => context.opened + 1, by: ({ event }) => event.by }),
            { type: 'lamp.on', params: ({ event }) => ({ by: event.by }) },
          ],
        },
        KNOCK: { actions: { type: 'bell.ring', params: ({ context }) => ({ times: context.opened + 1 }) } },
        BREAK: 'broken',
      },
    },
    open: { after: { closing: 'closed' }, on: { CLOSE: 'closed', OPEN: { target: 'open', reenter: true } } },
    broken: { type: 'final' },
  },
});

export const door = defineActor({
  type: 'test.door',
  machine: doorMachine,
  version: 1,
  input: () => ({ closeAfterMs: 1_000 }),
});
