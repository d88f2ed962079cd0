import { assign, setup } from 'xstate';

export interface EndedSessionsContext {
  /** When each was ended, epoch milliseconds, by the hash of its sealed id: the newest ones. */
  readonly ended: Readonly<Record<string, number>>;
}

export type EndedSessionsEvent =
  | { readonly type: 'ENDED'; readonly at: number; readonly sessions: readonly string[] }
  /** Another host knows of sessions that this one did not hear of. */
  | { readonly type: 'HEARD'; readonly from: string; readonly ended: Readonly<Record<string, number>> };

interface Args {
  readonly context: EndedSessionsContext;
  readonly event: EndedSessionsEvent;
}

/** Of one actor: with one for each first character of a hash some 20,000 in all. */
const MOST = 320;

/** An imported log may hold anything. */
function toldBy(event: EndedSessionsEvent): Readonly<Record<string, number>> {
  const told: Readonly<Record<string, number>> =
    event.type === 'HEARD'
      ? event.ended
      : Object.fromEntries([event.sessions ?? []].flat().map((session) => [session, event.at]));
  return Object.fromEntries(Object.entries(told ?? {}).filter(([, at]) => Number.isFinite(at)));
}

/** Of more than are kept the oldest are forgotten: every host that knows of the same ones keeps the same. */
function both(own: Readonly<Record<string, number>>, heard: Readonly<Record<string, number>>) {
  const all = Object.entries({ ...heard, ...own });
  if (all.length <= MOST) return Object.fromEntries(all);
  const byAge = all.sort(([one, at], [other, otherAt]) => otherAt - at || (one < other ? -1 : 1));
  return Object.fromEntries(byAge.slice(0, MOST));
}

/** Whether there is a session to keep that is not kept yet. */
export function isNews({ ended }: EndedSessionsContext, heard: Readonly<Record<string, number>>): boolean {
  return Object.keys(both(ended, heard)).some((session) => !Object.hasOwn(ended, session));
}

/** Sessions of the gateway that their clients ended, whose sealed ids would open them again (C13, G18). */
export const endedSessions = setup({
  types: { context: {} as EndedSessionsContext, events: {} as EndedSessionsEvent },
  guards: { isNews: ({ context, event }: Args) => isNews(context, toldBy(event)) },
  actions: { keep: assign(({ context, event }) => ({ ended: both(context.ended, toldBy(event)) })) },
}).createMachine({
  id: 'gateway-ended-sessions',
  context: { ended: {} },
  initial: 'kept',
  states: { kept: {} },
  on: { ENDED: { guard: 'isNews', actions: 'keep' }, HEARD: { guard: 'isNews', actions: 'keep' } },
});
