import { assign, setup } from 'xstate';

/** Who was let into the console, and what was done from there. */
export interface AccessContext {
  readonly logins: number;
  readonly actions: number;
  /** The newest login: who, and when (epoch milliseconds). */
  readonly lastBy?: string | undefined;
  readonly lastAt?: number | undefined;
}

export type AccessEvent =
  /** `by` is who asked for the code; `from` is the address of the browser; `until` is when the session ends at the latest. */
  | { type: 'LOGGED_IN'; at: number; by: string; from: string; until: number }
  | { type: 'LOGGED_OUT'; at: number; by: string }
  /** So many wrong codes came from one address that it has to wait. */
  | { type: 'LOGIN_REFUSED'; at: number; from: string }
  /** An action of the console begins; its own records say how it went. */
  | { type: 'ACTED'; at: number; by: string; action: string };

/** Remembers logins and actions of the console; the decision to let somebody in is made where the secrets are. */
export const consoleAccess = setup({
  types: { context: {} as AccessContext, events: {} as AccessEvent },
}).createMachine({
  id: 'console-access',
  context: { logins: 0, actions: 0 },
  initial: 'watching',
  states: {
    watching: {
      on: {
        LOGGED_IN: {
          actions: assign(({ context, event }) => ({
            logins: context.logins + 1,
            lastBy: event.by,
            lastAt: event.at,
          })),
        },
        LOGGED_OUT: {},
        LOGIN_REFUSED: {},
        ACTED: { actions: assign(({ context }) => ({ actions: context.actions + 1 })) },
      },
    },
  },
});
