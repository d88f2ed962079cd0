import { assign, setup } from 'xstate';
import { type ClockSet, moved } from '../clock-set.ts';

/** Alerts of these names notify nobody until then. */
export interface Silence {
  readonly id: string;
  /** A name, or its beginning followed by `*`. */
  readonly pattern: string;
  readonly by: string;
  readonly until: number;
  readonly note?: string;
}

export type SilencesEvent =
  | { readonly type: 'ADD'; readonly at: number; readonly silence: Silence }
  | { readonly type: 'REMOVE'; readonly at: number; readonly id: string }
  | ClockSet;

/** The most silences at a time: the 101st replaces the oldest. */
const MAX_SILENCES = 100;

/** The silences of the runtime (a reducer): each ends by itself at its time. */
export const alertSilences = setup({
  types: {
    context: {} as { readonly silences: readonly Silence[] },
    events: {} as SilencesEvent,
  },
  guards: { hasSome: ({ context }) => context.silences.length > 0 },
  actions: {
    add: assign(({ context, event }) =>
      event.type === 'ADD'
        ? {
            silences: [
              ...context.silences.filter(({ id, until }) => until > event.at && id !== event.silence?.id),
              event.silence,
            ].slice(-MAX_SILENCES),
          }
        : {},
    ),
    remove: assign(({ context, event }) =>
      event.type === 'REMOVE'
        ? { silences: context.silences.filter(({ id, until }) => until > event.at && id !== event.id) }
        : {},
    ),
    /** They last as long as was asked for, however the clock is set. */
    followClock: assign(({ context, event }) =>
      event.type === 'CLOCK_SET'
        ? { silences: context.silences.map((each) => ({ ...each, ...moved(each, event.byMs, 'until') })) }
        : {},
    ),
  },
}).createMachine({
  id: 'alerts-silences',
  context: { silences: [] },
  initial: 'kept',
  states: {
    kept: {
      on: {
        ADD: { actions: 'add' },
        REMOVE: { actions: 'remove' },
        CLOCK_SET: { guard: 'hasSome', actions: 'followClock' },
      },
    },
  },
});
