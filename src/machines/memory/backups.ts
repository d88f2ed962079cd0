import { assign, setup } from 'xstate';
import { isAhead, isStale } from '../backup-age.ts';
import { type Alert, effect } from '../effect.ts';
import {
  type Args,
  type Backup,
  type BackupParams,
  type BackupRun,
  type BackupSettings,
  type BackupsContext,
  type BackupsEvent,
  datedBackups,
  expiredBackups,
  followClock,
  isMissed,
  isUnusualSize,
  type PruneParams,
  usualSize,
} from './backups-rules.ts';
import {
  alerts,
  failureReason,
  isNotListed,
  type Reply,
  replyBusy,
  replyDone,
  replyFailed,
} from './messages.ts';

const MOST_RETRIES = 2;
const DEFAULTS: BackupSettings = {
  kind: 'snapshot',
  keepNewest: 14,
  staleMs: 26 * 3_600_000,
  missed: 'catch-up',
  retryMs: 600_000,
};
/** The end of a run whose effect failed, or was lost in a restart. */
const failsWith = (name: string) => {
  const failed = {
    guard: { type: 'isOutcomeOf', params: { effect: name } },
    target: 'resting.failed',
    actions: ['noteFault', replyFailed],
  } as const;
  return { 'effect.failed': failed, 'effect.lost': failed } as const;
};

/**
 * Backups of the memory store (B1, B8, B10). One run at a time: made, found in the list, then old ones pruned. Each good
 * backup is kept with what a restore must reproduce (B4). A missed run is made later or reported; a store
 * without a good backup for too long raises an alert once.
 */
export const memoryBackups = setup({
  types: {
    context: {} as BackupsContext,
    events: {} as BackupsEvent,
    input: {} as BackupSettings | undefined,
  },
  actions: {
    'memory.backup': effect<BackupParams>(),
    'memory.list_backups': effect<BackupParams>(),
    'memory.prune_backups': effect<PruneParams>(),
    'http.reply': effect<Reply>(),
    'alerts.raise': effect<Alert>(),
    begin: assign(({ context, event }) => {
      const run = newRun(event);
      const due = run?.operation === 'make' ? { lastRunAt: run.at, ...ofRightClock(context) } : {};
      return { run, ...due, since: context.since ?? run?.at ?? 0, deleted: [], fault: undefined };
    }),
    countRetry: assign(({ context: { run } }) => (run ? { run: { ...run, retries: run.retries + 1 } } : {})),
    noteMade: assign(({ context: { run }, event }) =>
      run && event.type === 'MADE' ? { run: { ...run, made: event.backup } } : {},
    ),
    noteFault: assign((args) => ({ fault: failureReason(args) })),
    acceptList: assign(({ context, event }) => {
      if (event.type !== 'LISTED') return {};
      const isListed = ({ name }: Backup) => event.listed.some((one) => one.name === name);
      const made = context.run?.made;
      const listed = datedBackups(event.listed, context, event.at);
      const datedAt = context.datedAt && Object.fromEntries(listed.map(({ name, at }) => [name, at]));
      const dated = made && {
        ...made,
        ...(datedAt?.[made.name] !== undefined && { at: datedAt[made.name] }),
      };
      const good = [...(dated ? [dated] : []), ...context.good].filter(isListed);
      return {
        good,
        ...(datedAt && { datedAt }),
        seen: (context.seen ?? []).filter(
          (one) => isListed(one) && !good.some(({ name }) => name === one.name),
        ),
        deleted: expiredBackups(listed, good, context, event.at),
        listed: event.listed.length,
        vanished: context.good.filter((one) => !isListed(one)).map(({ name }) => name),
        isStale: context.isStale && !made,
      };
    }),
    forgetDeleted: assign(({ context: { good, seen = [], deleted } }) => ({
      good: good.filter(({ name }) => !deleted.includes(name)),
      seen: seen.filter(({ name }) => !deleted.includes(name)),
    })),
    noteSeen: assign(({ context: { seen = [] }, event }) => {
      if (event.type !== 'SEEN') return {};
      // What was recorded first stays: later nobody knows more of what it was.
      const isNew = ({ name }: Backup) => !seen.some((one) => one.name === name);
      const kept = seen.filter(({ name }) => !event.gone?.includes(name));
      return { seen: [...event.backups.filter(isNew), ...kept] };
    }),
    noteDeployment: assign(({ event }) =>
      event.type === 'DEPLOYMENT_CHECKED' ? { deployment: event.findings } : {},
    ),
    noteSeeds: assign(({ event }) => (event.type === 'SEEDED' ? { seeds: event.ids } : {})),
    noteCheck: assign(({ context, event }) =>
      event.type === 'CHECK' ? { since: context.since ?? event.at } : {},
    ),
    /** A missed run is reported once. */
    countAsRun: assign(({ context, event }) =>
      event.type === 'CHECK' ? { lastRunAt: event.at, ...ofRightClock(context) } : {},
    ),
    followClock: assign(followClock),
    becomeStale: assign({ isStale: true }),
  },
  guards: {
    isOutcomeOf: ({ event }, params: { effect: string }) =>
      'effect' in event && event.effect === params.effect,
    hasNewFinding: ({ context, event }) =>
      event.type === 'DEPLOYMENT_CHECKED' &&
      event.findings.some((finding) => !context.deployment.includes(finding)),
    mustCatchUp: (args) => args.context.missed === 'catch-up' && hasMissedRun(args),
    mustReportMissed: (args) => hasMissedRun(args),
    becomesStale: ({ context, event }) =>
      event.type === 'CHECK' && !context.isStale && isStale(context, event.at),
    isNotListed: (args) => isNotListed(args),
    isUnusualSize: ({ context }) =>
      context.run?.made !== undefined &&
      isUnusualSize(context.run.made.size, usualSize(context.good, context)),
    canRetry: ({ context: { run } }) =>
      run?.by !== 'command' && run?.operation === 'make' && run.retries < MOST_RETRIES,
  },
  delays: { retry: ({ context }) => context.retryMs },
}).createMachine({
  id: 'memory-backups',
  context: ({ input }) => ({
    ...(input ?? DEFAULTS),
    good: [],
    seeds: [],
    deleted: [],
    isStale: false,
    listed: 0,
    vanished: [],
    deployment: [],
  }),
  initial: 'resting',
  on: {
    CLOCK_SET: { actions: 'followClock' },
    SEEDED: { actions: 'noteSeeds' },
    SEEN: { actions: 'noteSeen' },
    DEPLOYMENT_CHECKED: [
      { guard: 'hasNewFinding', actions: [alerts.deployment, 'noteDeployment'] },
      { actions: 'noteDeployment' },
    ],
    REQUESTED: { actions: replyBusy },
    PRUNE_REQUESTED: { actions: replyBusy },
  },
  states: {
    resting: {
      initial: 'idle',
      on: {
        REQUESTED: { target: 'creating', actions: 'begin' },
        PRUNE_REQUESTED: { target: 'listing', actions: 'begin' },
        CHECK: [
          { guard: 'mustCatchUp', target: 'creating', actions: 'begin' },
          { guard: 'mustReportMissed', actions: [alerts.missed, 'countAsRun', 'noteCheck'] },
          { guard: 'becomesStale', actions: [alerts.stale, 'becomeStale'] },
          { actions: 'noteCheck' },
        ],
      },
      states: {
        idle: {},
        done: {},
        failed: {
          entry: alerts.failed,
          after: {
            retry: { guard: 'canRetry', target: '#memory-backups.creating', actions: 'countRetry' },
          },
        },
      },
    },
    creating: {
      entry: { type: 'memory.backup', params: ({ context: { kind } }) => ({ kind }) },
      on: {
        MADE: { target: 'listing', actions: 'noteMade' },
        NOTHING_TO_BACK_UP: { target: 'resting.idle', actions: ['noteFault', replyFailed] },
        ...failsWith('memory.backup'),
      },
    },
    listing: {
      entry: { type: 'memory.list_backups', params: ({ context: { kind } }) => ({ kind }) },
      on: {
        LISTED: [
          { guard: 'isNotListed', target: 'resting.failed', actions: ['noteFault', replyFailed] },
          { guard: 'isUnusualSize', target: 'pruning', actions: [alerts.size, 'acceptList'] },
          { target: 'pruning', actions: 'acceptList' },
        ],
        ...failsWith('memory.list_backups'),
      },
    },
    pruning: {
      entry: {
        type: 'memory.prune_backups',
        params: ({ context: { kind, deleted } }) => ({ kind, names: deleted }),
      },
      on: {
        PRUNED: { target: 'resting.done', actions: ['forgetDeleted', replyDone] },
        // The new backup is good nevertheless.
        'effect.failed': {
          target: 'resting.done',
          actions: [alerts.pruneFailed, 'noteFault', 'forgetDeleted', replyDone],
        },
        'effect.lost': {
          target: 'resting.done',
          actions: [alerts.pruneFailed, 'noteFault', 'forgetDeleted', replyDone],
        },
      },
    },
  },
});

function newRun(event: BackupsEvent): BackupRun | undefined {
  switch (event.type) {
    case 'REQUESTED':
      return { operation: 'make', at: event.at, by: event.by, request: event.request, retries: 0 };
    case 'PRUNE_REQUESTED':
      return { operation: 'prune', at: event.at, by: 'command', request: event.request, retries: 0 };
    case 'CHECK':
      return { operation: 'make', at: event.at, by: 'catch-up', retries: 0 };
    default:
      return undefined;
  }
}

/** The run that begins is by the clock as it is set now. */
const ofRightClock = ({ isClockSet }: BackupsContext) => (isClockSet ? { isClockSet: false } : {});

function hasMissedRun({ context, event }: Args): boolean {
  if (event.type !== 'CHECK') return false;
  const newest = context.good.find(({ at }) => !isAhead(at, event.at));
  // After the clock was set, the last run may have been due at another time of its day.
  const earlyMs = context.isClockSet ? (event.due - (event.dueBefore ?? event.due)) / 2 : 0;
  return isMissed(event.at, event.due, Math.max(context.lastRunAt ?? 0, newest?.at ?? 0), earlyMs);
}
