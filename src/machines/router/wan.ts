import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';

/** A change that a WAN's clients report, or that an operator simulates. */
export interface WanChange {
  readonly kind: 'pd-change' | 'down' | 'up';
  /** The delegated prefix of a `pd-change`. */
  readonly prefix?: string;
  /** The request of the simulation that is answered. */
  readonly request?: string;
}

export interface WanContext {
  /** The interface's name, from the actor's key. */
  readonly wan: string;
  readonly up: boolean;
  /** The last delegated prefix; absent while none is known. */
  readonly prefix?: string;
  readonly queue: readonly WanChange[];
  /** The change that is being applied to the kernel. */
  readonly job?: WanChange | undefined;
}

export type WanEvent =
  | ({ readonly type: 'CHANGED' } & WanChange)
  | { readonly type: 'WAN_APPLIED'; readonly ncid: string; readonly reapplied: readonly string[] }
  | { readonly type: 'WAN_REFUSED'; readonly reason: string }
  | { readonly type: 'effect.failed'; readonly effect: string; readonly message: string }
  | { readonly type: 'effect.lost'; readonly effect: string };

/** Effect `router.change_wan`: the kernel follows. */
export interface WanParams {
  readonly wan: string;
  readonly up: boolean;
  readonly prefix?: string | undefined;
}

/** Effect `router.publish_wan`: publish on the two WAN channels. */
export interface WanPublishParams {
  readonly wan: string;
  readonly up: boolean;
  readonly ncid: string;
}

interface Reply {
  readonly to: string;
  readonly status: number;
  readonly body: Readonly<Record<string, string | readonly string[]>>;
}
interface Published {
  readonly ncid: string;
  readonly reapplied: readonly string[];
}

type Args = { readonly context: WanContext; readonly event: WanEvent };

/** The WAN after the change. */
const changed = ({ context: { wan, up, prefix, job } }: Args): WanParams => {
  const isDelegation = job?.kind === 'pd-change';
  const next = isDelegation ? job.prefix : prefix;
  return { wan, up: isDelegation ? up : job?.kind !== 'down', ...(next !== undefined && { prefix: next }) };
};

const applied = ({ event }: Args): Published => {
  const { ncid = '', reapplied = [] } = event.type === 'WAN_APPLIED' ? event : {};
  return { ncid, reapplied };
};

const reasonOf = ({ event }: Args): string => {
  if (event.type === 'WAN_REFUSED') return event.reason;
  return event.type === 'effect.failed' ? event.message : 'it was interrupted';
};

const publishLegs = { type: 'router.publish', params: applied } as const;
const publishWan = {
  type: 'router.publish_wan',
  params: (args: Args): WanPublishParams => ({
    wan: args.context.wan,
    up: changed(args).up,
    ncid: applied(args).ncid,
  }),
} as const;
const replyDone = {
  type: 'http.reply',
  params: (args: Args): Reply => ({
    to: args.context.job?.request ?? '',
    status: 200,
    body: { wan: args.context.wan, ...applied(args) },
  }),
} as const;
const replyRefused = {
  type: 'http.reply',
  params: (args: Args): Reply => ({
    to: args.context.job?.request ?? '',
    status: 409,
    body: { code: 'HF_ROUTER_SIMULATION', reason: reasonOf(args) },
  }),
} as const;
const alertRefused = {
  type: 'alerts.raise',
  params: (args: Args): Alert => ({
    name: 'router.wan_change_failed',
    severity: 'critical',
    text: 'The kernel did not follow a change of a WAN. Legs may hold addresses of a prefix that is gone.',
    labels: { wan: args.context.wan, reason: reasonOf(args) },
  }),
} as const;

const refused = { target: 'steady', actions: [replyRefused, alertRefused, 'drop'] } as const;

/**
 * One WAN beside the config (R17, R39): whether it is up, and which prefix it was delegated. A new prefix reapplies the
 * legs that delegate from it and leaves the config, and so its ncid, alone.
 */
export const wan = setup({
  types: {
    context: {} as WanContext,
    events: {} as WanEvent,
    input: {} as { readonly wan?: string } | undefined,
  },
  actions: {
    'router.change_wan': effect<WanParams>(),
    'router.publish': effect<Published>(),
    'router.publish_wan': effect<WanPublishParams>(),
    'http.reply': effect<Reply>(),
    'alerts.raise': effect<Alert>(),
    enqueue: assign({
      queue: ({ context, event }) => {
        if (event.type !== 'CHANGED') return context.queue;
        const { type: _, ...change } = event;
        return [...context.queue, change];
      },
    }),
    begin: assign({
      job: ({ context }) => context.queue[0],
      queue: ({ context }) => context.queue.slice(1),
    }),
    settle: assign((args) => {
      const { up, prefix } = changed(args);
      return { up, ...(prefix !== undefined && { prefix }), job: undefined };
    }),
    drop: assign({ job: undefined }),
  },
  guards: {
    waits: ({ context }) => context.queue.length > 0,
    delegated: ({ context }) => context.job?.kind === 'pd-change',
    ofChange: ({ event }) => 'effect' in event && event.effect === 'router.change_wan',
  },
}).createMachine({
  id: 'router-wan',
  context: ({ input }) => ({ wan: input?.wan ?? '', up: true, queue: [] }),
  initial: 'steady',
  on: { CHANGED: { actions: 'enqueue' } },
  states: {
    steady: { always: { guard: 'waits', target: 'changing', actions: 'begin' } },
    changing: {
      entry: { type: 'router.change_wan', params: changed },
      on: {
        WAN_APPLIED: [
          { guard: 'delegated', target: 'steady', actions: [publishLegs, replyDone, 'settle'] },
          { target: 'steady', actions: [publishWan, replyDone, 'settle'] },
        ],
        WAN_REFUSED: refused,
        'effect.failed': { guard: 'ofChange', ...refused },
        'effect.lost': { guard: 'ofChange', ...refused },
      },
    },
  },
});
