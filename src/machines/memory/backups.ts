import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';
import { doomedOf } from './assessment.ts';
import type {
  Backup,
  BackupParams,
  PruneParams,
  Run,
  SnapshotJobContext,
  SnapshotJobEvent,
  SnapshotJobInput,
} from './backups-shapes.ts';

interface Reply {
  readonly to: string;
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}
type Args = { readonly context: SnapshotJobContext; readonly event: SnapshotJobEvent };

const MOST_TRIES = 3;
/** So many times larger or smaller than usual is far from it. */
const FAR = 4;
const COMPARABLE = 1024 * 1024;
/** A run that is due begins a moment later. */
const GRACE_MS = 5 * 60_000;
const DEFAULTS: SnapshotJobInput = {
  kind: 'snapshot',
  keepNewest: 14,
  staleMs: 26 * 3_600_000,
  missed: 'catch-up',
  retryMs: 600_000,
};
const NOUN = { snapshot: 'snapshot', volume: 'copy of the volume' } as const;

/** It was said to be made, and is not in the list. */
const isLost = ({ context: { run }, event }: Args): boolean =>
  event.type === 'LISTED' &&
  run?.made !== undefined &&
  !event.listed.some(({ name, size }) => name === run.made?.name && size > 0);

const reasonOf = ({ event, context }: Args): string => {
  if (event.type === 'effect.failed') return event.message;
  if (event.type === 'effect.lost') return 'it was interrupted';
  if (isLost({ event, context })) return `${context.run?.made?.name} is not in the list, or is empty`;
  return event.type === 'NOTHING_THERE' ? event.reason : '';
};

const runOf = (event: SnapshotJobEvent): Run | undefined => {
  if (event.type === 'REQUESTED')
    return { op: 'make', at: event.at, by: event.by, request: event.request, tries: 0 };
  if (event.type === 'PRUNE_REQUESTED') {
    return { op: 'prune', at: event.at, by: 'command', request: event.request, tries: 0 };
  }
  return event.type === 'WATCHED' ? { op: 'make', at: event.at, by: 'catch-up', tries: 0 } : undefined;
};

const goodAfter = ({ context: { good, run }, event }: Args): readonly Backup[] => {
  if (event.type !== 'LISTED') return good;
  const known = run?.made ? [run.made, ...good] : good;
  return known.filter(({ name }) => event.listed.some((one) => one.name === name));
};

/** Known to be good, and gone: what is pruned here is forgotten with it. */
const vanishedOf = ({ context: { good }, event }: Args): string[] =>
  event.type === 'LISTED'
    ? good.map(({ name }) => name).filter((name) => !event.listed.some((one) => one.name === name))
    : [];

const doomed = (args: Args): string[] =>
  args.event.type === 'LISTED'
    ? doomedOf(args.event.listed, goodAfter(args), args.context, args.event.at)
    : [];

const usualOf = ({ good, usualBytes }: SnapshotJobContext): number | undefined => {
  if (usualBytes !== undefined) return usualBytes;
  const before = good[0]?.size ?? 0;
  return before >= COMPARABLE ? before : undefined;
};

const isFar = ({ context }: Args): boolean => {
  const usual = usualOf(context);
  const size = context.run?.made?.size;
  return usual !== undefined && size !== undefined && (size > usual * FAR || size < usual / FAR);
};

const isFailedOf =
  (type: string) =>
  ({ event }: Args): boolean =>
    'effect' in event && event.effect === type;

const isMissed = ({ context, event }: Args): boolean => {
  if (event.type !== 'WATCHED' || event.at - event.due < GRACE_MS) return false;
  const last = Math.max(context.lastRunAt ?? 0, context.good[0]?.at ?? 0);
  // The clock may have been ahead when it last ran: what lies in the future proves nothing.
  return last < event.due || last > event.at + GRACE_MS;
};

const isStale = ({ context, event }: Args): boolean => {
  if (event.type !== 'WATCHED') return false;
  const last = context.good[0]?.at ?? context.since ?? event.at;
  return event.at - last > context.staleMs;
};

const alert = (name: string, severity: Alert['severity'], text: (args: Args) => string) =>
  ({
    type: 'alert.raise',
    params: (args: Args): Alert => {
      const reason = reasonOf(args);
      const { kind } = args.context;
      return { name, severity, text: text(args), labels: { kind, ...(reason !== '' && { reason }) } };
    },
  }) as const;

const failedAlert = alert(
  'memory.backup_failed',
  'critical',
  ({ context }) => `A ${NOUN[context.kind]} of the memory store could not be made.`,
);
const pruneAlert = alert(
  'memory.prune_failed',
  'warning',
  ({ context }) => `Old ones beside a new ${NOUN[context.kind]} of the memory store could not be deleted.`,
);
const staleAlert = alert(
  'memory.backup_stale',
  'critical',
  ({ context }) =>
    `The memory store has had no good ${NOUN[context.kind]} for ${context.staleMs / 3_600_000} h.`,
);
const missedAlert = alert(
  'memory.backup_missed',
  'warning',
  ({ context }) => `A ${NOUN[context.kind]} of the memory store was due and was not made.`,
);
const sizeAlert = alert(
  'memory.backup_size',
  'warning',
  ({ context }) =>
    `A ${NOUN[context.kind]} of the memory store has ${context.run?.made?.size} bytes; usual are ${usualOf(context)}.`,
);

const deploymentAlert = {
  type: 'alert.raise',
  params: ({ event }: Args): Alert => ({
    name: 'memory.deployment',
    severity: 'critical',
    text: `Backups of the memory store will fail, or do: ${event.type === 'LOOKED_AT' ? event.findings.join('; ') : ''}.`,
    labels: { kind: 'snapshot' },
  }),
} as const;

const isAsked = ({ context }: Args): boolean => context.run?.request !== undefined;
const reply = (status: number, body: (args: Args) => Reply['body']) =>
  ({
    type: 'http.reply',
    params: (args: Args): Reply => ({ to: args.context.run?.request ?? '', status, body: body(args) }),
  }) as const;
const replyDone = reply(200, ({ context }) => ({
  ...context.run?.made,
  deleted: context.doomed,
  fault: context.fault,
}));
const replyFailed = reply(503, ({ context }) => ({ code: 'HF_MEMORY_BACKUP', reason: context.fault }));
/** To who comes while a run is under way: there are never two at once. */
const replyBusy = {
  type: 'http.reply',
  params: ({ event, context }: Args): Reply => ({
    to: 'request' in event ? (event.request ?? '') : '',
    status: 409,
    body: {
      code: 'HF_MEMORY_BACKUP',
      reason: `one is under way since ${context.run?.at} (${context.run?.by})`,
    },
  }),
} as const;
const busy = {
  guard: ({ event }: Args) => 'request' in event && event.request !== undefined,
  actions: replyBusy,
};

const failOn = (type: string) =>
  [
    {
      guard: (args: Args) => isFailedOf(type)(args) && isAsked(args),
      target: 'resting.failed',
      actions: ['noteFault', replyFailed],
    },
    { guard: isFailedOf(type), target: 'resting.failed', actions: 'noteFault' },
  ] as const;

/**
 * Backups of the memory store (B1, B8, B10): one run at a time, made, found in the list, then old ones pruned. What a
 * restore must reproduce is recorded with each good one (B4). A run that was missed while the machine slept or was down
 * is made up for or told; none good for too long is told once, until there is one.
 */
export const snapshotJob = setup({
  types: {
    context: {} as SnapshotJobContext,
    events: {} as SnapshotJobEvent,
    input: {} as SnapshotJobInput | undefined,
  },
  actions: {
    'memory.backup': effect<BackupParams>(),
    'memory.list_backups': effect<BackupParams>(),
    'memory.prune_backups': effect<PruneParams>(),
    'http.reply': effect<Reply>(),
    'alert.raise': effect<Alert>(),
    begin: assign(({ context, event }) => {
      const run = runOf(event);
      const due = run?.op === 'make' ? { lastRunAt: run.at } : {};
      return { run, ...due, since: context.since ?? run?.at ?? 0, doomed: [], fault: undefined };
    }),
    again: assign({ run: ({ context }) => context.run && { ...context.run, tries: context.run.tries + 1 } }),
    note: assign({
      run: ({ context, event }) =>
        context.run && event.type === 'MADE' ? { ...context.run, made: event.backup } : context.run,
    }),
    noteFault: assign({ fault: (args) => reasonOf(args as Args) }),
    accept: assign((args) => {
      const good = goodAfter(args as Args);
      return {
        good,
        doomed: doomed(args as Args),
        listed: args.event.type === 'LISTED' ? args.event.listed.length : args.context.listed,
        vanished: vanishedOf(args as Args),
        isStale: args.context.isStale && !args.context.run?.made,
      };
    }),
    forget: assign({
      good: ({ context: { good, doomed } }) => good.filter(({ name }) => !doomed.includes(name)),
    }),
    noteDeployment: assign({
      deployment: ({ context, event }) => (event.type === 'LOOKED_AT' ? event.findings : context.deployment),
    }),
    noteSeeds: assign({
      seeds: ({ context, event }) => (event.type === 'SEEDED' ? event.ids : context.seeds),
    }),
    noteWatch: assign(({ context, event }) => ({
      since: context.since ?? (event.type === 'WATCHED' ? event.at : 0),
    })),
    noteReported: assign({
      lastRunAt: ({ context, event }) => (event.type === 'WATCHED' ? event.at : (context.lastRunAt ?? 0)),
    }),
    becomeStale: assign({ isStale: true }),
  },
  guards: {
    isNewFinding: ({ context, event }) =>
      event.type === 'LOOKED_AT' && event.findings.some((one) => !context.deployment.includes(one)),
    canRetry: ({ context: { run } }) =>
      run?.by !== 'command' && run?.op === 'make' && run.tries + 1 < MOST_TRIES,
  },
  delays: { retry: ({ context }) => context.retryMs },
}).createMachine({
  id: 'memory-backups',
  context: ({ input }) => ({
    ...DEFAULTS,
    ...input,
    good: [],
    seeds: [],
    doomed: [],
    isStale: false,
    listed: 0,
    vanished: [],
    deployment: [],
  }),
  initial: 'resting',
  on: {
    SEEDED: { actions: 'noteSeeds' },
    LOOKED_AT: [
      { guard: 'isNewFinding', actions: [deploymentAlert, 'noteDeployment'] },
      { actions: 'noteDeployment' },
    ],
    REQUESTED: busy,
    PRUNE_REQUESTED: busy,
  },
  states: {
    resting: {
      initial: 'idle',
      on: {
        REQUESTED: { target: 'creating', actions: 'begin' },
        PRUNE_REQUESTED: { target: 'listing', actions: 'begin' },
        WATCHED: [
          {
            guard: (args: Args) => isMissed(args) && args.context.missed === 'catch-up',
            target: 'creating',
            actions: 'begin',
          },
          { guard: isMissed, actions: [missedAlert, 'noteReported', 'noteWatch'] },
          {
            guard: (args: Args) => isStale(args) && !args.context.isStale,
            actions: [staleAlert, 'becomeStale'],
          },
          { actions: 'noteWatch' },
        ],
      },
      states: {
        idle: {},
        done: {},
        failed: {
          entry: failedAlert,
          after: { retry: { guard: 'canRetry', target: '#memory-backups.creating', actions: 'again' } },
        },
      },
    },
    creating: {
      entry: { type: 'memory.backup', params: ({ context }) => ({ kind: context.kind }) },
      on: {
        MADE: { target: 'listing', actions: 'note' },
        NOTHING_THERE: [
          { guard: isAsked, target: 'resting.idle', actions: ['noteFault', replyFailed] },
          { target: 'resting.idle', actions: 'noteFault' },
        ],
        'effect.failed': failOn('memory.backup'),
        'effect.lost': failOn('memory.backup'),
      },
    },
    listing: {
      entry: { type: 'memory.list_backups', params: ({ context }) => ({ kind: context.kind }) },
      on: {
        LISTED: [
          {
            guard: (args: Args) => isLost(args) && isAsked(args),
            target: 'resting.failed',
            actions: ['noteFault', replyFailed],
          },
          { guard: isLost, target: 'resting.failed', actions: 'noteFault' },
          { guard: isFar, target: 'pruning', actions: [sizeAlert, 'accept'] },
          { target: 'pruning', actions: 'accept' },
        ],
        'effect.failed': failOn('memory.list_backups'),
        'effect.lost': failOn('memory.list_backups'),
      },
    },
    pruning: {
      entry: {
        type: 'memory.prune_backups',
        params: ({ context }) => ({ kind: context.kind, names: context.doomed }),
      },
      on: {
        PRUNED: [
          { guard: isAsked, target: 'resting.done', actions: ['forget', replyDone] },
          { target: 'resting.done', actions: 'forget' },
        ],
        'effect.failed': [
          { guard: isAsked, target: 'resting.done', actions: [pruneAlert, 'noteFault', 'forget', replyDone] },
          { target: 'resting.done', actions: [pruneAlert, 'noteFault', 'forget'] },
        ],
        'effect.lost': { target: 'resting.done', actions: [pruneAlert, 'noteFault', 'forget'] },
      },
    },
  },
});
