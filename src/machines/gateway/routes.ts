import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';
import { revise, rollBack, rolledBack } from './routes-revise.ts';
import type { RollbackAsked, RoutesContext, RoutesEvent, ServeParams } from './routes-shapes.ts';

export type * from './routes-shapes.ts';

interface Args {
  readonly context: RoutesContext;
  readonly event: RoutesEvent;
}

const asked = (event: RoutesEvent): RollbackAsked => {
  if (event.type !== 'ROLLBACK') throw new TypeError(`${event.type} asks for no rollback`);
  return event;
};
const rejections = ({ event }: Args): readonly string[] =>
  event.type === 'LOADED' ? event.rejected.map(({ name, reason }) => `${name}: ${reason}`) : [];
/** What was told already is not told again at every start. */
const isNews = (args: Args): boolean => {
  const told = args.context.rejected.map(({ name, reason }) => `${name}: ${reason}`);
  return rejections(args).some((text) => !told.includes(text));
};

/**
 * The route table of the gateway through its life (G2, G24): which definition of each route serves, what served before,
 * and what of the file can't. A bad entry leaves the last good one of its route serving, a bad file all of them; a
 * rollback holds until the file says something else.
 */
export const mcpRoutes = setup({
  types: {
    context: {} as RoutesContext,
    events: {} as RoutesEvent,
  },
  actions: {
    'gateway.serve_routes': effect<ServeParams>(),
    'http.reply': effect<{ readonly status: number; readonly body: Readonly<Record<string, unknown>> }>(),
    'alert.raise': effect<Alert>(),
    load: assign(({ context, event }) => {
      if (event.type !== 'LOADED') return {};
      return { ...revise(context, event), rejected: event.rejected, refused: undefined };
    }),
    refuse: assign(({ event }) =>
      event.type === 'REFUSED' ? { refused: { at: event.at, reason: event.reason } } : {},
    ),
    noteServed: assign({
      served: ({ context, event }) => (event.type === 'SERVED' ? event.revision : context.served),
    }),
    rollBack: assign(({ context, event }) => rollBack(context, asked(event))),
  },
  guards: {
    sound: ({ event }) => event.type === 'LOADED' && event.rejected.length === 0,
    news: isNews,
    possible: ({ context, event }) => typeof rolledBack(context, asked(event)) !== 'string',
    wasAsked: ({ event }) => event.type === 'REFUSED' && event.origin === 'asked',
  },
}).createMachine({
  id: 'gateway-routes',
  context: { revision: 0, served: 0, routes: {}, rejected: [], changes: [] },
  initial: 'empty',
  states: {
    empty: {},
    /** All of the file serves. */
    serving: {},
    /** Something in the file does not; what is good, and what was, serves. */
    faulty: {},
  },
  on: {
    LOADED: [
      { guard: 'sound', target: '.serving', actions: ['load', serve()] },
      { guard: 'news', target: '.faulty', actions: [warnOfEntries(), 'load', serve()] },
      { target: '.faulty', actions: ['load', serve()] },
    ],
    REFUSED: [
      { guard: 'wasAsked', target: '.faulty', actions: ['refuse', replyRefused(), warnOfFile()] },
      { target: '.faulty', actions: ['refuse', warnOfFile()] },
    ],
    ROLLBACK: [{ guard: 'possible', actions: ['rollBack', serve()] }, { actions: replyImpossible() }],
    SERVED: { actions: 'noteServed' },
    'effect.failed': { actions: warnOfSwap() },
  },
});

function serve() {
  return {
    type: 'gateway.serve_routes',
    params: ({ context }: Args): ServeParams => ({ revision: context.revision }),
  } as const;
}

function replyRefused() {
  return {
    type: 'http.reply',
    params: ({ context, event }: Args) => ({
      status: 422,
      body: { reason: event.type === 'REFUSED' ? event.reason : '', revision: context.revision },
    }),
  } as const;
}

function replyImpossible() {
  return {
    type: 'http.reply',
    params: ({ context, event }: Args) => ({
      status: 409,
      body: { reason: String(rolledBack(context, asked(event))), revision: context.revision },
    }),
  } as const;
}

function warnOfEntries() {
  return {
    type: 'alert.raise',
    params: (args: Args): Alert => ({
      name: 'gateway.routes_rejected',
      severity: 'warning',
      text: `Entries of the route table can not be served, the last good ones of their routes go on: ${rejections(args).join('; ').slice(0, 1_000)}`,
      labels: {
        entries: args.event.type === 'LOADED' ? args.event.rejected.map(({ name }) => name).join(',') : '',
      },
    }),
  } as const;
}

function warnOfFile() {
  return {
    type: 'alert.raise',
    params: ({ context, event }: Args): Alert => ({
      name: 'gateway.config_refused',
      severity: 'warning',
      text: `The changed configuration can not be taken, the routes stay as they were: ${event.type === 'REFUSED' ? event.reason : ''}`,
      labels: { revision: String(context.revision) },
    }),
  } as const;
}

function warnOfSwap() {
  return {
    type: 'alert.raise',
    params: ({ context, event }: Args): Alert => ({
      name: 'gateway.routes_not_swapped',
      severity: 'critical',
      text: 'The changed route table could not be put in place; the one before goes on serving.',
      labels: {
        revision: String(context.revision),
        reason: event.type === 'effect.failed' ? event.message : '',
      },
    }),
  } as const;
}
