import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';

/** A change that a WAN's clients report, that was seen in the kernel, or that an operator simulates. */
export interface WanChange {
  /** `lost`, `connected` and `readdressed` have happened in the kernel already; the others are applied to it. */
  readonly kind: 'pd-change' | 'down' | 'up' | 'lost' | 'connected' | 'readdressed';
  /** The delegated prefix of a `pd-change`. */
  readonly prefix?: string;
  /** Only for `readdressed`: the legs on which somebody else changed a delegated address; none when it was the WAN's own. */
  readonly legs?: readonly string[];
  /** The request of the simulation that is answered. */
  readonly request?: string;
}

export interface WanContext {
  /** The interface's name, from the actor's key. */
  readonly wan: string;
  readonly up: boolean;
  /** Whether it has a carrier and a default route, as the kernel showed last; absent until a change was seen. */
  readonly connected?: boolean;
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
  /** The kernel has changed by itself, these legs with it: nothing is applied. */
  readonly observed?: readonly string[];
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
  const next = job?.kind === 'pd-change' ? job.prefix : prefix;
  const isSwitched = job?.kind === 'down' || job?.kind === 'up';
  return {
    wan,
    up: isSwitched ? job.kind === 'up' : up,
    ...(next !== undefined && { prefix: next }),
    ...(isObserved(job) && { observed: job.legs ?? [] }),
  };
};

const isObserved = (job: WanChange | undefined): job is WanChange =>
  job?.kind === 'lost' || job?.kind === 'connected' || job?.kind === 'readdressed';

/** Whether the WAN can be used after the change. */
const usable = (args: Args): boolean => {
  const { connected = true, job } = args.context;
  if (job?.kind === 'lost' || job?.kind === 'connected') return job.kind === 'connected';
  return changed(args).up && (job?.kind === 'up' || connected);
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
    up: usable(args),
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
 * One WAN beside the config (R17, R18, R39): whether it is up and connected, and which prefix it was delegated. A new prefix reapplies the
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
      const { kind } = args.context.job ?? {};
      const isConnection = kind === 'lost' || kind === 'connected';
      return {
        up,
        ...(isConnection && { connected: kind === 'connected' }),
        ...(prefix !== undefined && { prefix }),
        job: undefined,
      };
    }),
    drop: assign({ job: undefined }),
  },
  guards: {
    waits: ({ context }) => context.queue.length > 0,
    readdresses: ({ context: { job } }) =>
      job?.kind === 'pd-change' || (job?.kind === 'readdressed' && (job.legs ?? []).length > 0),
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
          { guard: 'readdresses', target: 'steady', actions: [publishLegs, replyDone, 'settle'] },
          { target: 'steady', actions: [publishWan, replyDone, 'settle'] },
        ],
        WAN_REFUSED: refused,
        'effect.failed': { guard: 'ofChange', ...refused },
        'effect.lost': { guard: 'ofChange', ...refused },
      },
    },
  },
});
