import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';

/** What the operator wants done when an upstream's tools change. */
export type PinPolicy = 'follow' | 'ask' | 'block';

/** Fingerprints of definitions, by the upstream's own names of its tools. */
export type ToolPrints = Readonly<Record<string, string>>;

/** How one tool differs from what was accepted. */
export interface ToolChange {
  readonly tool: string;
  readonly what: 'added' | 'removed' | 'changed';
  /** Of a changed tool: each part that differs, in short texts. */
  readonly parts?: readonly { readonly part: string; readonly before: string; readonly after: string }[];
}

/** An upstream's tools are others than before, or another policy holds. */
export interface ToolsSeen {
  readonly type: 'SEEN';
  readonly at: number;
  readonly policy: PinPolicy;
  readonly tools: ToolPrints;
  /** Against those that are accepted; empty the first time. */
  readonly changes: readonly ToolChange[];
  /** Digest of them all that every host of a cluster computes alike. */
  readonly digest?: string;
}

/** A person accepts what the upstream has now. */
export interface ToolsAccepted {
  readonly type: 'ACCEPTED';
  readonly at: number;
  readonly by: string;
  /** Its place among the messages to every host, and what the person saw: this host may see it later. */
  readonly order?: number;
  readonly digest?: string;
}

export interface ToolPinsContext {
  readonly route: string;
  readonly policy: PinPolicy;
  /** What was accepted; undefined until the tools were seen for the first time. */
  readonly accepted?: { readonly at: number; readonly by: string; readonly tools: ToolPrints };
  /** What the upstream has now, where that is not accepted. */
  readonly pending?:
    | {
        readonly at: number;
        readonly tools: ToolPrints;
        readonly changes: readonly ToolChange[];
        readonly digest?: string;
      }
    | undefined;
  /** Accepted on another host before this one saw it. */
  readonly expected?: { readonly digest: string; readonly by: string } | undefined;
  /** What a person accepted last on whichever host. */
  readonly agreed?: ToolsAgreed;
  /** Number of the last message to every host that it took. */
  readonly order?: number;
}

/** What a person accepted for all hosts. */
export interface ToolsAgreed {
  readonly order: number;
  readonly digest: string;
  readonly by: string;
}

export type ToolPinsEvent = ToolsSeen | ToolsAccepted;

interface Args {
  readonly context: ToolPinsContext;
  readonly event: ToolPinsEvent;
}

function agreedBy({ order, digest, by }: ToolsAccepted): Pick<ToolPinsContext, 'order' | 'agreed'> {
  if (order === undefined) return {};
  return { order, ...(digest !== undefined && { agreed: { order, digest, by } }) };
}

const FIRST_SIGHT = 'first sight';

const isAccepted = ({ context, event }: Args): boolean => {
  if (event.type !== 'SEEN' || !context.accepted) return false;
  const { tools } = context.accepted;
  const names = Object.keys(event.tools);
  return (
    names.length === Object.keys(tools).length && names.every((name) => tools[name] === event.tools[name])
  );
};

/** They are what a person accepted on another host. */
const isExpected = ({ context, event }: Args): boolean =>
  event.type === 'SEEN' && event.digest !== undefined && event.digest === context.expected?.digest;

/**
 * The definitions of one route's tools (their descriptions, schemas and annotations), which an upstream may change under
 * everybody's hands. The first sight is accepted. `changed`: the upstream has others now, and a person is asked; until they
 * are accepted, the gateway withholds those that differ (`ask`), or all (`block`). With `follow` each change is accepted,
 * recorded and told.
 */
export const toolPins = setup({
  types: {
    context: {} as ToolPinsContext,
    events: {} as ToolPinsEvent,
    input: {} as { readonly route: string } | undefined,
  },
  actions: {
    'alerts.raise': effect<Alert>(),
    'http.reply': effect<{ readonly status: number; readonly body: Readonly<Record<string, unknown>> }>(),
    accept: assign(({ context, event }) => {
      if (event.type === 'ACCEPTED') {
        const { pending } = context;
        return pending
          ? { accepted: { at: event.at, by: event.by, tools: pending.tools }, pending: undefined }
          : {};
      }
      const { at, tools, policy } = event;
      if (isExpected({ context, event })) {
        const { by = '' } = context.expected ?? {};
        return { accepted: { at, by, tools }, pending: undefined, expected: undefined, policy };
      }
      const by = context.accepted ? 'policy follow' : FIRST_SIGHT;
      return { accepted: { at, by, tools }, pending: undefined, policy };
    }),
    expect: assign(({ event }) => {
      if (event.type !== 'ACCEPTED') return {};
      const { digest, by } = event;
      return {
        ...agreedBy(event),
        ...(digest !== undefined && { expected: { digest, by } }),
      };
    }),
    note: assign(({ event }) => (event.type === 'ACCEPTED' ? agreedBy(event) : {})),
    settle: assign(({ event }) =>
      event.type === 'SEEN' ? { pending: undefined, policy: event.policy } : {},
    ),
    hold: assign(({ event }) =>
      event.type === 'SEEN'
        ? {
            policy: event.policy,
            pending: {
              at: event.at,
              tools: event.tools,
              changes: event.changes,
              ...(event.digest !== undefined && { digest: event.digest }),
            },
          }
        : {},
    ),
  },
  guards: {
    isFirst: ({ context }) => context.accepted === undefined,
    isAccepted,
    isExpected,
    isAsSeen: ({ context, event }) =>
      event.type === 'ACCEPTED' && (event.digest === undefined || event.digest === context.pending?.digest),
    isKnown: ({ context, event }) =>
      event.type === 'ACCEPTED' && event.order !== undefined && event.order <= (context.order ?? 0),
    follows: ({ event }) => event.type === 'SEEN' && event.policy === 'follow',
  },
}).createMachine({
  id: 'gateway-tool-pins',
  context: ({ input }) => ({ route: input?.route ?? '', policy: 'follow' }),
  initial: 'unseen',
  states: {
    unseen: {
      on: { SEEN: { target: 'accepted', actions: 'accept' } },
    },
    accepted: {
      on: {
        SEEN: [
          { guard: 'isAccepted', actions: 'settle' },
          { guard: 'isExpected', actions: 'accept' },
          { guard: 'follows', actions: [alert('firing', 'warning', told), 'accept'] },
          { target: 'changed', actions: ['hold', alert('firing', 'critical', asked)] },
        ],
      },
    },
    changed: {
      on: {
        SEEN: [
          { guard: 'isAccepted', target: 'accepted', actions: ['settle', alert('resolved', 'info', undone)] },
          {
            guard: 'isExpected',
            target: 'accepted',
            actions: ['accept', alert('resolved', 'info', acceptedElsewhere)],
          },
          { guard: 'follows', target: 'accepted', actions: ['accept', alert('resolved', 'info', followed)] },
          { actions: ['hold', alert('firing', 'critical', asked)] },
        ],
        ACCEPTED: [
          { guard: 'isKnown' },
          {
            guard: 'isAsSeen',
            target: 'accepted',
            actions: [reply(200), 'accept', 'note', alert('resolved', 'info', accepted)],
          },
          { actions: [reply(409), 'expect'] },
        ],
      },
    },
  },
  on: { ACCEPTED: [{ guard: 'isKnown' }, { actions: [reply(409), 'expect'] }] },
});

function reply(status: number) {
  return {
    type: 'http.reply',
    params: ({ context }: Args) => ({
      status,
      body:
        status === 200
          ? { route: context.route, changes: context.pending?.changes ?? [] }
          : { reason: whyNot(context) },
    }),
  } as const;
}

const whyNot = ({ route, pending }: ToolPinsContext): string =>
  pending
    ? `the tools of ${route} are others again than those that were looked at`
    : `the tools of ${route} are as they were accepted`;

function alert(state: 'firing' | 'resolved', severity: Alert['severity'], text: (args: Args) => string) {
  return {
    type: 'alerts.raise',
    params: (args: Args): Alert => ({
      name: 'gateway.tools_changed',
      severity,
      text: text(args),
      // A change that is followed is over with its telling.
      labels: { route: args.context.route, ...(severity !== 'warning' && { state }) },
    }),
  } as const;
}

const MOST_NAMED = 5;

/** @returns e.g. `search changed (description), wipe added` */
export function toolChangesText(changes: readonly ToolChange[]): string {
  const texts = changes.slice(0, MOST_NAMED).map(({ tool, what, parts = [] }) => {
    const which = parts.map(({ part }) => part).join(', ');
    return `${tool} ${what}${which === '' ? '' : ` (${which})`}`;
  });
  const more = changes.length - texts.length;
  return `${texts.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

const changesOf = ({ event }: Args): string => (event.type === 'SEEN' ? toolChangesText(event.changes) : '');

function told(args: Args): string {
  return `The upstream of ${args.context.route} defines its tools anew: ${changesOf(args)}.`;
}

function asked(args: Args): string {
  const { route } = args.context;
  const policy = args.event.type === 'SEEN' ? args.event.policy : args.context.policy;
  const held = policy === 'block' ? 'All its tools are withheld' : 'Those are withheld';
  return `The upstream of ${route} defines its tools anew: ${changesOf(args)}. ${held} until a person accepts them: holdfast gateway tools accept ${route}.`;
}

function undone({ context }: Args): string {
  return `The upstream of ${context.route} defines its tools as they were accepted.`;
}

function followed({ context }: Args): string {
  return `The tools of ${context.route} are followed now, as its entry says.`;
}

function acceptedElsewhere({ context }: Args): string {
  return `The changed tools of ${context.route} were accepted on another host.`;
}

function accepted({ context, event }: Args): string {
  return `The changed tools of ${context.route} were accepted by ${event.type === 'ACCEPTED' ? event.by : ''}.`;
}
