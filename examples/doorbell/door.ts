import { assign, effect, setup } from 'holdfast/machines';

/** A door whose bell rests for a while after it has rung: a ring meanwhile is recorded and ignored. */
export const door = setup({
  types: {} as {
    context: { rings: number };
    events: { type: 'RUNG' } | { type: 'effect.done' } | { type: 'effect.failed'; code: string };
  },
  actions: {
    count: assign({ rings: ({ context }) => context.rings + 1 }),
    'doorbell.chime': effect<{ rings: number }>(),
  },
  delays: { rest: 3_000 },
}).createMachine({
  id: 'doorbell-door',
  context: { rings: 0 },
  initial: 'quiet',
  states: {
    quiet: {
      on: {
        RUNG: {
          target: 'resting',
          actions: ['count', { type: 'doorbell.chime', params: ({ context }) => ({ rings: context.rings }) }],
        },
      },
    },
    resting: { after: { rest: 'quiet' } },
  },
});
