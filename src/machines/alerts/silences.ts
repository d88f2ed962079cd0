import { assign, setup } from 'xstate';

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
  | { readonly type: 'REMOVE'; readonly at: number; readonly id: string };

/** The most silences at a time: the 101st replaces the oldest. */
const MAX_SILENCES = 100;

/** The silences of the runtime (a reducer): each ends by itself at its time. */
export const alertSilences = setup({
  types: {
    context: {} as { readonly silences: readonly Silence[] },
    events: {} as SilencesEvent,
  },
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
  },
}).createMachine({
  id: 'alerts-silences',
  context: { silences: [] },
  initial: 'kept',
  states: { kept: { on: { ADD: { actions: 'add' }, REMOVE: { actions: 'remove' } } } },
});
