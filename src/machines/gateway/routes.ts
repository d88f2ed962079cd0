import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';
import type {
  LoadOrigin,
  RollbackRequested,
  RollbacksHeard,
  RoutesContext,
  RoutesLoaded,
} from './route-table.ts';
import {
  hearRollbacks,
  isNewRollback,
  noteRollback,
  revise,
  rollBack,
  rolledBack,
  routeOf,
} from './route-table.ts';

export type * from './route-table.ts';

export type RoutesEvent =
  | RoutesLoaded
  | { readonly type: 'REFUSED'; readonly at: number; readonly origin: LoadOrigin; readonly reason: string }
  | RollbackRequested
  | RollbacksHeard
  | { readonly type: 'SERVED'; readonly revision: number }
  | { readonly type: 'effect.failed'; readonly effect: string; readonly message: string };

/** Parameters of the effect `gateway.serve_routes`: put the table of this revision in place. */
export interface ServeParams {
  readonly revision: number;
}

interface Args {
  readonly context: RoutesContext;
  readonly event: RoutesEvent;
}

const rollbackOf = (event: RoutesEvent): RollbackRequested => {
  if (event.type !== 'ROLLBACK') throw new TypeError(`${event.type} is no rollback`);
  return event;
};
const rejections = ({ event }: Args): readonly string[] =>
  event.type === 'LOADED' ? event.rejected.map(({ name, reason }) => `${name}: ${reason}`) : [];
/** A rejection that an alert has reported already is not reported again at every start. */
const hasNewRejections = (args: Args): boolean => {
  const reported = args.context.rejected.map(({ name, reason }) => `${name}: ${reason}`);
  return rejections(args).some((text) => !reported.includes(text));
};

/**
 * Decides which definition of each route serves (G2, G24). When an entry is invalid, the last valid definition of its
 * route goes on serving; when the whole file is invalid, all routes stay as they are. A rollback holds until the entry in
 * the file changes. This is a reducer: `route-table.ts` computes the table, and the states only say whether all of the
 * file serves.
 */
export const routes = setup({
  types: {
    context: {} as RoutesContext,
    events: {} as RoutesEvent,
  },
  actions: {
    'gateway.serve_routes': effect<ServeParams>(),
    'http.reply': effect<{ readonly status: number; readonly body: Readonly<Record<string, unknown>> }>(),
    'alerts.raise': effect<Alert>(),
    load: assign(({ context, event }) => {
      if (event.type !== 'LOADED') return {};
      return { ...revise(context, event), rejected: event.rejected, refused: undefined };
    }),
    saveRefusal: assign(({ event }) =>
      event.type === 'REFUSED' ? { refused: { at: event.at, reason: event.reason } } : {},
    ),
    saveServed: assign({
      served: ({ context, event }) => (event.type === 'SERVED' ? event.revision : context.served),
    }),
    hear: assign(({ context, event }) =>
      event.type === 'ROLLBACKS_HEARD' ? hearRollbacks(context, event) : {},
    ),
    noteRollback: assign(({ context, event }) => noteRollback(context, rollbackOf(event))),
    rollBack: assign(({ context, event }) => rollBack(context, rollbackOf(event))),
    note: assign(({ event }) => {
      const { order } = rollbackOf(event);
      return order === undefined ? {} : { order };
    }),
  },
  guards: {
    allValid: ({ event }) => event.type === 'LOADED' && event.rejected.length === 0,
    newRejections: hasNewRejections,
    rollbackPossible: ({ context, event }) => typeof rolledBack(context, rollbackOf(event)) !== 'string',
    /** Messages to every host may come again. */
    isKnown: ({ context, event }) =>
      (rollbackOf(event).order ?? Number.POSITIVE_INFINITY) <= (context.order ?? 0),
    isNews: ({ context, event }) =>
      event.type === 'ROLLBACKS_HEARD' &&
      Object.entries(event.rollbacks).some(([name, rollback]) => {
        const known = routeOf(context, name);
        return known !== undefined && isNewRollback(known, rollback);
      }),
    requested: ({ event }) => event.type === 'REFUSED' && event.origin === 'requested',
  },
}).createMachine({
  id: 'gateway-routes',
  context: { revision: 0, served: 0, routes: {}, rejected: [], changes: [] },
  initial: 'empty',
  states: {
    empty: {},
    /** All entries of the file serve. */
    serving: {},
    /** Some entry, or the whole file, is invalid. The last valid definitions serve. */
    faulty: {},
  },
  on: {
    LOADED: [
      { guard: 'allValid', target: '.serving', actions: ['load', serve()] },
      { guard: 'newRejections', target: '.faulty', actions: [warnOfEntries(), 'load', serve()] },
      { target: '.faulty', actions: ['load', serve()] },
    ],
    REFUSED: [
      { guard: 'requested', target: '.faulty', actions: ['saveRefusal', replyRefused(), warnOfFile()] },
      { target: '.faulty', actions: ['saveRefusal', warnOfFile()] },
    ],
    ROLLBACK: [
      { guard: 'isKnown' },
      { guard: 'rollbackPossible', actions: ['rollBack', 'note', serve()] },
      { actions: [replyImpossible(), 'noteRollback', 'note'] },
    ],
    ROLLBACKS_HEARD: { guard: 'isNews', actions: ['hear', serve()] },
    SERVED: { actions: 'saveServed' },
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
      body: { reason: String(rolledBack(context, rollbackOf(event))), revision: context.revision },
    }),
  } as const;
}

/** Which of the rejected entries' routes go on with their last valid definition, and which have none. */
function whatServes({ context, event }: Args): string {
  const names = event.type === 'LOADED' ? [...new Set(event.rejected.map(({ route }) => route))] : [];
  const goOn = names.filter((name) => Object.hasOwn(context.routes, name) && context.routes[name]?.serving);
  if (goOn.length === names.length) return 'the last valid definitions of their routes go on serving';
  if (goOn.length === 0) return 'their routes do not serve, as they had no valid definition before';
  return `the last valid definitions go on serving of ${goOn.join(', ').slice(0, 500)}, and the other routes do not serve`;
}

function warnOfEntries() {
  return {
    type: 'alerts.raise',
    params: (args: Args): Alert => ({
      name: 'gateway.routes_rejected',
      severity: 'warning',
      text: `Some entries of the route table are invalid; ${whatServes(args)}: ${rejections(args).join('; ').slice(0, 1_000)}`,
      labels: {
        entries: args.event.type === 'LOADED' ? args.event.rejected.map(({ name }) => name).join(',') : '',
      },
    }),
  } as const;
}

function warnOfFile() {
  return {
    type: 'alerts.raise',
    params: ({ context, event }: Args): Alert => ({
      name: 'gateway.config_refused',
      severity: 'warning',
      text: `The changed configuration is invalid; the routes stay as they were: ${event.type === 'REFUSED' ? event.reason : ''}`,
      labels: { revision: String(context.revision) },
    }),
  } as const;
}

function warnOfSwap() {
  return {
    type: 'alerts.raise',
    params: ({ context, event }: Args): Alert => ({
      name: 'gateway.routes_not_swapped',
      severity: 'critical',
      text: 'The changed route table could not be put in place; the previous one goes on serving.',
      labels: {
        revision: String(context.revision),
        reason: event.type === 'effect.failed' ? event.message : '',
      },
    }),
  } as const;
}
