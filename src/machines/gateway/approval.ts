import { assign, setup } from 'xstate';
import { type ClockSet, moved } from '../clock-set.ts';
import { type Alert, effect } from '../effect.ts';

/** What a person is asked: one call, by its key, route, tool and arguments. */
export interface ApprovalRequest {
  /** By which commands, pages and links name it. */
  readonly id: string;
  /** Id of the virtual key; a rotation does not change it. */
  readonly key: string;
  readonly alias?: string;
  readonly owner?: string;
  readonly route: string;
  /** The upstream's own name. */
  readonly tool: string;
  /** Keyed digest of the whole call; what a person sees of it is kept under this name, sealed, while it may be called. */
  readonly digest: string;
}

/** A call waits for a person. */
export interface ApprovalAsked {
  readonly type: 'ASKED';
  readonly at: number;
  readonly until: number;
  readonly request: ApprovalRequest;
}

export type Verdict = 'approved' | 'denied';

/** A person decides. */
export interface ApprovalDecided {
  readonly type: 'DECIDED';
  readonly at: number;
  readonly id: string;
  readonly verdict: Verdict;
  readonly by: string;
  readonly why: string;
  /** The host where the person was, if it is another one than that of the call. */
  readonly from?: string;
}

export type ApprovalEvent =
  | ApprovalAsked
  | ApprovalDecided
  /** One of the calls that wait takes the approval: it goes to the upstream, and no other does. */
  | { readonly type: 'CLAIMED'; readonly at: number; readonly id: string; readonly call: string }
  /** The call that took it surely did not reach the upstream. */
  | { readonly type: 'RETURNED'; readonly at: number; readonly id: string; readonly call: string }
  /** Nobody may call it any more, e.g. since its key was revoked. */
  | { readonly type: 'WITHDRAWN'; readonly at: number; readonly id: string; readonly reason: string }
  | ClockSet;

export interface ApprovalContext {
  /** Which of the places for requests this is. */
  readonly place: string;
  /** Time of the newest event that armed a timer. */
  readonly at: number;
  readonly askedAt: number;
  readonly until: number;
  readonly request?: Omit<ApprovalRequest, 'digest'>;
  /** Undefined when the request is over: nothing needs its sealed arguments then. */
  readonly digest?: string | undefined;
  readonly decision?: Pick<ApprovalDecided, 'verdict' | 'by' | 'why' | 'at' | 'from'> | undefined;
  /** Correlation of the call that took the approval. */
  readonly call?: string | undefined;
}

/** Parameters of `gateway.approval_settled`: those who wait look again. */
export interface SettledParams {
  readonly id: string;
}

interface Args {
  readonly context: ApprovalContext;
  readonly event: ApprovalEvent;
}

const isOurs = ({ context, event }: Args): boolean =>
  'id' in event && event.id === context.request?.id && context.digest !== undefined;

const decides = (verdict: Verdict) => (args: Args) =>
  args.event.type === 'DECIDED' && args.event.verdict === verdict && isOurs(args);

/**
 * One place for a request that a person approves or denies, one request at a time; a request that is over leaves its place
 * to the next. An approval is good for one call, a denial stands until the deadline.
 */
export const approval = setup({
  types: {
    context: {} as ApprovalContext,
    events: {} as ApprovalEvent,
    input: {} as { readonly place: string } | undefined,
  },
  delays: {
    deadline: ({ context }) => Math.max(0, context.until - context.at),
  },
  actions: {
    'gateway.approval_settled': effect<SettledParams>(),
    'alerts.raise': effect<Alert>(),
    ask: assign(({ event }) => {
      if (event.type !== 'ASKED') return {};
      const { at, until } = event;
      const { digest, ...request } = event.request;
      return { at, askedAt: at, until, request, digest, decision: undefined, call: undefined };
    }),
    decide: assign(({ event }) => {
      if (event.type !== 'DECIDED') return {};
      const { at, verdict, by, why, from } = event;
      return { at, decision: { at, verdict, by, why, ...(from !== undefined && { from }) } };
    }),
    claim: assign(({ event }) => (event.type === 'CLAIMED' ? { at: event.at, call: event.call } : {})),
    giveBack: assign(({ event }) => (event.type === 'RETURNED' ? { at: event.at, call: undefined } : {})),
    close: assign({ digest: undefined }),
    followClock: assign(({ context, event }) =>
      event.type === 'CLOCK_SET'
        ? {
            ...moved(context, event.byMs, 'at', 'askedAt', 'until'),
            ...(context.decision && {
              decision: { ...context.decision, ...moved(context.decision, event.byMs, 'at') },
            }),
          }
        : {},
    ),
  },
  guards: {
    isOurs,
    approves: decides('approved'),
    denies: decides('denied'),
    isTaker: (args) =>
      isOurs(args) &&
      args.event.type === 'RETURNED' &&
      args.event.call === args.context.call &&
      args.event.at < args.context.until,
    wasAsked: ({ context }) => context.askedAt > 0,
  },
}).createMachine({
  id: 'gateway-approval',
  context: ({ input }) => ({ place: input?.place ?? '', at: 0, askedAt: 0, until: 0 }),
  initial: 'unused',
  on: { CLOCK_SET: { guard: 'wasAsked', actions: 'followClock' } },
  states: {
    unused: { on: { ASKED: asked() } },
    waiting: {
      after: { deadline: { target: 'expired', actions: ['close', settled(), resolved(expiredText)] } },
      on: {
        DECIDED: [
          {
            guard: 'approves',
            target: 'approved',
            actions: ['decide', settled(), resolved(decidedText)],
          },
          {
            guard: 'denies',
            target: 'denied',
            actions: ['decide', settled(), resolved(decidedText)],
          },
        ],
        WITHDRAWN: {
          guard: 'isOurs',
          target: 'withdrawn',
          actions: ['close', settled(), resolved(withdrawnText)],
        },
      },
    },
    approved: {
      after: { deadline: { target: 'lapsed', actions: ['close', settled()] } },
      on: {
        CLAIMED: { guard: 'isOurs', target: 'used', actions: ['claim', settled()] },
        WITHDRAWN: { guard: 'isOurs', target: 'withdrawn', actions: ['close', settled()] },
      },
    },
    denied: {
      after: { deadline: { target: 'over', actions: 'close' } },
    },
    used: {
      after: { deadline: { target: 'over', actions: 'close' } },
      on: {
        RETURNED: { guard: 'isTaker', target: 'approved', actions: 'giveBack' },
        ASKED: asked(),
      },
    },
    /** Nobody decided in time. */
    expired: { on: { ASKED: asked() } },
    /** It was approved, and not called in time. */
    lapsed: { on: { ASKED: asked() } },
    withdrawn: { on: { ASKED: asked() } },
    /** Its decision has had its time. */
    over: { on: { ASKED: asked() } },
  },
});

function asked() {
  return { target: 'waiting', actions: ['ask', firing()] } as const;
}

function settled() {
  return {
    type: 'gateway.approval_settled',
    params: ({ context }: Args): SettledParams => ({ id: context.request?.id ?? '' }),
  } as const;
}

/** The place tells alerts apart, so that there are no more alerts than places. */
const labelsOf = ({ place, request }: ApprovalContext, state: 'firing' | 'resolved') => ({
  actor: `gateway.approval/${place}`,
  approval: request?.id ?? '',
  route: request?.route ?? '',
  state,
});

/** `ask` has run when this is resolved. */
function firing() {
  return {
    type: 'alerts.raise',
    params: ({ context }: Args): Alert => ({
      name: 'gateway.approval_waiting',
      severity: 'warning',
      text: askedText(context),
      labels: labelsOf(context, 'firing'),
    }),
  } as const;
}

function resolved(text: (context: ApprovalContext) => string) {
  return {
    type: 'alerts.raise',
    params: ({ context }: Args): Alert => ({
      name: 'gateway.approval_waiting',
      severity: 'info',
      text: text(context),
      labels: labelsOf(context, 'resolved'),
    }),
  } as const;
}

/** A client makes the name of a tool up where the route does not list its tools: it must not write the alert. */
const shownTool = (tool: string): string => tool.slice(0, 64).replaceAll(/[^\w.-]/g, '_');

/** @returns e.g. `laptop of ann: wiki delete_page` */
export function callText({
  alias,
  owner,
  route,
  tool,
}: Pick<ApprovalRequest, 'alias' | 'owner' | 'route' | 'tool'>): string {
  return `${alias ?? 'a key'}${owner === undefined ? '' : ` of ${owner}`}: ${route} ${shownTool(tool)}`;
}

const callOf = ({ request }: ApprovalContext): string => (request ? callText(request) : 'a call');

function askedText(context: ApprovalContext): string {
  const id = context.request?.id;
  const minutes = Math.ceil((context.until - context.askedAt) / 60_000);
  return `A call waits for a person, for ${minutes} min (${callOf(context)}). See what it asks by holdfast gateway approvals, then holdfast gateway approve ${id} --why TEXT, or deny ${id} --why TEXT.`;
}

function decidedText(context: ApprovalContext): string {
  const { verdict, by } = context.decision ?? { verdict: 'decided', by: 'a person' };
  return `The call was ${verdict} by ${by} (${callOf(context)}).`;
}

function expiredText(context: ApprovalContext): string {
  return `Nobody decided about the call in time, so it was refused (${callOf(context)}).`;
}

function withdrawnText(context: ApprovalContext): string {
  return `The call was withdrawn (${callOf(context)}).`;
}
