import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';

/** Something that a WAN's clients tell of it, or that an operator simulates. `request` is who waits for an answer. */
export interface WanAsk {
  readonly kind: 'pd-change' | 'down' | 'up';
  /** The delegated prefix of a `pd-change`. */
  readonly prefix?: string;
  readonly request?: string;
}

export interface WanContext {
  /** The interface's name, from the actor's key. */
  readonly wan: string;
  readonly up: boolean;
  /** The prefix that it was delegated last; absent while none is known. */
  readonly prefix?: string;
  readonly queue: readonly WanAsk[];
  readonly job?: WanAsk | undefined;
}

export type WanEvent =
  | ({ readonly type: 'ASKED' } & WanAsk)
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

/** Effect `router.publish_wan`: tell the two WAN channels. */
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

const askOf = (event: WanEvent): WanAsk[] => {
  if (event.type !== 'ASKED') return [];
  const { type: _, ...ask } = event;
  return [ask];
};

/** What the WAN is once the job stands. */
const after = ({ context: { wan, up, prefix, job } }: Args): WanParams => {
  const next = job?.kind === 'pd-change' ? job.prefix : prefix;
  return {
    wan,
    up: job?.kind === 'pd-change' ? up : job?.kind !== 'down',
    ...(next !== undefined && { prefix: next }),
  };
};

const isAsked = ({ context }: Args): boolean => context.job?.request !== undefined;
const isDelegation = ({ context }: Args): boolean => context.job?.kind === 'pd-change';
const ofChange = ({ event }: Args): boolean => 'effect' in event && event.effect === 'router.change_wan';
const ncidOf = (event: WanEvent): string => (event.type === 'WAN_APPLIED' ? event.ncid : '');
const reapplied = (event: WanEvent): readonly string[] =>
  event.type === 'WAN_APPLIED' ? event.reapplied : [];
const reasonOf = ({ event }: Args): string => {
  if (event.type === 'WAN_REFUSED') return event.reason;
  return event.type === 'effect.failed' ? event.message : 'it was interrupted';
};

const publishLegs = {
  type: 'router.publish',
  params: ({ event }: Args): Published => ({ ncid: ncidOf(event), reapplied: reapplied(event) }),
} as const;
const publishWan = {
  type: 'router.publish_wan',
  params: (args: Args): WanPublishParams => ({
    wan: args.context.wan,
    up: after(args).up,
    ncid: ncidOf(args.event),
  }),
} as const;
const replyDone = {
  type: 'http.reply',
  params: ({ context, event }: Args): Reply => ({
    to: context.job?.request ?? '',
    status: 200,
    body: { wan: context.wan, ncid: ncidOf(event), reapplied: reapplied(event) },
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
const alert = {
  type: 'alert.raise',
  params: (args: Args): Alert => ({
    name: 'router.wan_change_failed',
    severity: 'critical',
    text: 'The kernel did not follow a change of a WAN; legs may hold addresses of a prefix that is gone.',
    labels: { wan: args.context.wan, reason: reasonOf(args) },
  }),
} as const;

const onRefusal = [
  { guard: isAsked, target: 'steady', actions: [replyRefused, 'drop'] },
  { target: 'steady', actions: [alert, 'drop'] },
] as const;

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
    'alert.raise': effect<Alert>(),
    enqueue: assign({ queue: ({ context, event }) => [...context.queue, ...askOf(event)] }),
    begin: assign({
      job: ({ context }) => context.queue[0],
      queue: ({ context }) => context.queue.slice(1),
    }),
    settle: assign((args) => {
      const { up, prefix } = after(args);
      return { up, ...(prefix !== undefined && { prefix }), job: undefined };
    }),
    drop: assign({ job: undefined }),
  },
  guards: { waits: ({ context }) => context.queue.length > 0 },
}).createMachine({
  id: 'router-wan',
  context: ({ input }) => ({ wan: input?.wan ?? '', up: true, queue: [] }),
  initial: 'steady',
  on: { ASKED: { actions: 'enqueue' } },
  states: {
    steady: { always: { guard: 'waits', target: 'changing', actions: 'begin' } },
    changing: {
      entry: { type: 'router.change_wan', params: after },
      on: {
        WAN_APPLIED: [
          {
            guard: (args: Args) => isDelegation(args) && isAsked(args),
            target: 'steady',
            actions: [publishLegs, replyDone, 'settle'],
          },
          { guard: isDelegation, target: 'steady', actions: [publishLegs, 'settle'] },
          { guard: isAsked, target: 'steady', actions: [publishWan, replyDone, 'settle'] },
          { target: 'steady', actions: [publishWan, 'settle'] },
        ],
        WAN_REFUSED: onRefusal,
        'effect.failed': onRefusal.map((one) => ({
          ...one,
          guard: (args: Args) => ofChange(args) && (!('guard' in one) || one.guard(args)),
        })),
        'effect.lost': onRefusal.map((one) => ({
          ...one,
          guard: (args: Args) => ofChange(args) && (!('guard' in one) || one.guard(args)),
        })),
      },
    },
  },
});
