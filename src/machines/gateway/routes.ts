import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';
import { revise, rollBack, rolledBack } from './routes-revise.ts';

/** A route as it may be shown and recorded: no query of its URL, no token. Times are epoch milliseconds. */
export interface RouteFacts {
  readonly name: string;
  /** Names the whole definition (entry, environment entry, reference of its secret), sealed beside the record. */
  readonly fingerprint: string;
  readonly disposition: string;
  /** Where it goes, without query; absent while it is not configured. */
  readonly upstream?: string;
  /** Where its token comes from: `file:…`, `env:…` or `store:<path>#<property>`. */
  readonly secret?: string;
  /** A short fingerprint of each setting, so that a change can be told by name. */
  readonly parts: Readonly<Record<string, string>>;
}

/** A definition that serves, or did. */
export interface ServedRoute extends RouteFacts {
  /** Since when it serves. */
  readonly since: number;
  /** Revision of the table in which it began to. */
  readonly revision: number;
}

/** What is known of one name. */
export interface RouteState {
  /** Absent once its entry was taken out. */
  readonly serving?: ServedRoute;
  /** Fingerprint of what the file says; empty when it says nothing. */
  readonly source: string;
  /** It was rolled back, and stays so until the file says something else than `source`. */
  readonly pinned?: true;
  /** Why what the file says does not serve. */
  readonly problem?: string;
  /** What served before, newest first. */
  readonly before: readonly ServedRoute[];
}

/** An entry that can't be a route. */
export interface RejectedEntry {
  readonly name: string;
  /** The route that it would be: a hyphen stands for an underscore. */
  readonly route: string;
  readonly reason: string;
}

/** What a revision changed. */
export interface RouteChange {
  readonly name: string;
  readonly what: 'added' | 'changed' | 'removed' | 'rolled_back';
  /** The settings that differ. */
  readonly parts?: readonly string[];
}

export interface RoutesContext {
  /** Of the table; raised by every change. */
  readonly revision: number;
  /** Revision of the table that is in place. */
  readonly served: number;
  readonly routes: Readonly<Record<string, RouteState>>;
  readonly rejected: readonly RejectedEntry[];
  /** Why the file as a whole could not be taken. */
  readonly refused?: { readonly at: number; readonly reason: string };
  /** Of the newest revision. */
  readonly changes: readonly RouteChange[];
  readonly changedAt?: number;
}

/** Why the file was read. */
export type LoadOrigin = 'start' | 'changed' | 'asked';

export interface RoutesLoaded {
  readonly type: 'LOADED';
  readonly at: number;
  readonly origin: LoadOrigin;
  readonly routes: readonly RouteFacts[];
  readonly rejected: readonly RejectedEntry[];
}

export interface RollbackRequested {
  readonly type: 'ROLLBACK';
  readonly at: number;
  readonly route: string;
  /** A revision in which the wanted definition began to serve; the one before the present unless given. */
  readonly to?: number;
}

export type RoutesEvent =
  | RoutesLoaded
  | { readonly type: 'REFUSED'; readonly at: number; readonly origin: LoadOrigin; readonly reason: string }
  | RollbackRequested
  | { readonly type: 'SERVED'; readonly revision: number }
  | { readonly type: 'effect.failed'; readonly effect: string; readonly message: string };

/** Effect `gateway.serve_routes`: the table of this revision is to serve. */
export interface ServeParams {
  readonly revision: number;
}

interface Args {
  readonly context: RoutesContext;
  readonly event: RoutesEvent;
}

const asked = (event: RoutesEvent): RollbackRequested => {
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
