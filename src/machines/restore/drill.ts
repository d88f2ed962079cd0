import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';
import {
  type CleanParams,
  type Drill,
  type DrillContext,
  type DrillEvent,
  type DrillSettings,
  drillFailed,
  type Failure,
  type Phase,
  type ReplyParams,
  type Result,
  type StepParams,
  scratchLeft,
} from './drill-shapes.ts';

const RETRY_MS = 60_000;
const LONGEST_RETRY_MS = 3_600_000;
const MOST_RESULTS = 10;

/** A drill without an id stands for the removal of instances that an earlier run left behind. */
const NO_DRILL: Drill = { id: '', path: 'a', by: '', at: 0 };

type Args = { readonly context: DrillContext; readonly event: DrillEvent };

const step = ({ context: { drill = NO_DRILL, source, url, copied } }: Args): StepParams => ({
  drill,
  ...(source && { source }),
  ...(url !== undefined && { url }),
  ...(copied && { copied }),
});

/** Without a positive duration the wait would end at once, again and again. */
const durationOf = (ms: number | undefined): number | undefined =>
  typeof ms === 'number' && ms >= 1 ? ms : undefined;

const reasonOf = (event: DrillEvent): string => {
  if (event.type === 'effect.failed') return event.message;
  if (event.type === 'effect.lost') return 'it was interrupted by the end of the runtime';
  if (event.type === 'CANCEL') return event.reason;
  return event.type === 'VERIFIED' ? event.report.verdict : '';
};

const failureOf = (event: DrillEvent, phase: Phase): Failure => ({
  phase,
  reason: reasonOf(event),
  ...(event.type === 'effect.failed' && event.code !== undefined && { code: event.code }),
});

/** The transitions that end a phase early. All of them lead to the clean-up. */
const failsWith = (phase: Phase, effectType: string) => {
  const fail = { type: 'noteFailure', params: { phase } } as const;
  const raise = {
    type: 'alerts.raise',
    params: ({ context, event }: Args) => drillFailed(context.drill ?? NO_DRILL, failureOf(event, phase)),
  } as const;
  const guard = { type: 'isOutcomeOf', params: { effect: effectType } } as const;
  return {
    'effect.failed': { guard, target: 'cleaning', actions: [fail, raise] },
    'effect.lost': { guard, target: 'cleaning', actions: [fail, raise] },
    CANCEL: { target: 'cleaning', actions: [fail] },
  } as const;
};

/**
 * Restore drills (B6): a backup is restored into a scratch instance, compared, and removed again in any case. One
 * drill at a time; every phase ends in `cleaning`, and a clean-up that fails is tried again until it works.
 */
export const restoreDrill = setup({
  types: {
    context: {} as DrillContext,
    events: {} as DrillEvent,
    input: {} as DrillSettings | undefined,
  },
  delays: {
    retryClean: ({ context }) =>
      Math.min(context.retryMs * 2 ** (context.cleanFailures - 1), LONGEST_RETRY_MS),
  },
  guards: {
    isOutcomeOf: ({ event }, params: { effect: string }) =>
      'effect' in event && event.effect === params.effect,
    isProven: ({ event }) => event.type === 'VERIFIED' && event.report.ok,
    hasLeftovers: ({ event }) => event.type === 'STARTED' && event.leftovers.length > 0,
    hasDrill: ({ context }) => context.drill !== undefined,
    hasFailed: ({ context }) => context.failure !== undefined,
    isFirstFailureOf: ({ context, event }, params: { effect: string }) =>
      context.cleanFailures === 0 && 'effect' in event && event.effect === params.effect,
  },
  actions: {
    'restore.choose': effect<StepParams>(),
    'restore.prepare': effect<StepParams>(),
    'restore.recover': effect<StepParams>(),
    'restore.verify': effect<StepParams>(),
    'restore.clean': effect<CleanParams>(),
    'http.reply': effect<ReplyParams>(),
    'alerts.raise': effect<Alert>(),
    begin: assign(({ event }) => {
      if (event.type !== 'REQUESTED') return {};
      const { type, ...drill } = event;
      return { drill };
    }),
    noteResult: assign(({ event }) => {
      if (event.type === 'CHOSEN') return { source: event.source };
      if (event.type === 'PREPARED') return { place: event.place, url: event.url, copied: event.copied };
      if (event.type === 'RECOVERED') return { url: event.url };
      return event.type === 'VERIFIED' ? { report: event.report } : {};
    }),
    noteFailure: assign(({ event }, { phase }: { phase: Phase }) => ({ failure: failureOf(event, phase) })),
    noteStart: assign(({ context, event }) => {
      if (event.type !== 'STARTED') return {};
      return {
        leftovers: [...new Set([...context.leftovers, ...event.leftovers])],
        retryMs: durationOf(event.retryMs) ?? context.retryMs,
      };
    }),
    noteCleanFailure: assign(({ context, event }) => ({
      cleanFailures: context.cleanFailures + 1,
      cleanReason: reasonOf(event),
    })),
    conclude: assign(({ context, event }) => {
      const { drill, source, place, report, failure, cleanFailures, results } = context;
      const nothing = {
        drill: undefined,
        source: undefined,
        url: undefined,
        place: undefined,
        copied: undefined,
        report: undefined,
        failure: undefined,
        cleanReason: undefined,
        leftovers: [],
        cleanFailures: 0,
      };
      if (!drill || event.type !== 'CLEANED') return nothing;
      const result: Result = {
        ...drill,
        outcome: failure ? 'failed' : 'completed',
        endedAt: event.at,
        cleanFailures,
        ...(source && { source }),
        ...(place !== undefined && { place }),
        ...(report && { report }),
        ...(failure && { failure }),
      };
      return { ...nothing, results: [...results, result].slice(-MOST_RESULTS) };
    }),
  },
}).createMachine({
  id: 'restore-drill',
  context: ({ input }) => ({
    retryMs: input?.retryMs ?? RETRY_MS,
    leftovers: [],
    cleanFailures: 0,
    results: [],
  }),
  initial: 'resting',
  // While a drill runs, a second one is refused.
  on: {
    REQUESTED: {
      actions: {
        type: 'http.reply',
        params: ({ context }) => ({ status: 409, body: { id: context.drill?.id ?? 'clean-up' } }),
      },
    },
    STARTED: { actions: 'noteStart' },
  },
  states: {
    resting: {
      initial: 'idle',
      states: { idle: {}, completed: {}, failed: {} },
      on: {
        REQUESTED: {
          target: 'choosing',
          actions: [
            'begin',
            {
              type: 'http.reply',
              params: ({ event }) => ({ status: 202, body: { id: event.id } }),
            },
          ],
        },
        STARTED: [
          { guard: 'hasLeftovers', target: 'cleaning', actions: 'noteStart' },
          { actions: 'noteStart' },
        ],
      },
    },

    choosing: {
      entry: { type: 'restore.choose', params: step },
      on: {
        CHOSEN: { target: 'preparing', actions: 'noteResult' },
        ...failsWith('choosing', 'restore.choose'),
      },
    },

    preparing: {
      entry: { type: 'restore.prepare', params: step },
      on: {
        PREPARED: { target: 'recovering', actions: 'noteResult' },
        ...failsWith('preparing', 'restore.prepare'),
      },
    },

    recovering: {
      entry: { type: 'restore.recover', params: step },
      on: {
        RECOVERED: { target: 'verifying', actions: 'noteResult' },
        ...failsWith('recovering', 'restore.recover'),
      },
    },

    verifying: {
      entry: { type: 'restore.verify', params: step },
      on: {
        VERIFIED: [
          { guard: 'isProven', target: 'cleaning', actions: 'noteResult' },
          {
            target: 'cleaning',
            actions: [
              'noteResult',
              { type: 'noteFailure', params: { phase: 'verifying' } },
              {
                type: 'alerts.raise',
                params: ({ context, event }) =>
                  drillFailed(context.drill ?? NO_DRILL, failureOf(event, 'verifying')),
              },
            ],
          },
        ],
        ...failsWith('verifying', 'restore.verify'),
      },
    },

    /** Removes what a drill made, however it ended, or what an earlier run left behind. */
    cleaning: {
      entry: {
        type: 'restore.clean',
        params: ({ context: { drill, leftovers } }) => ({
          ids: [...new Set([...(drill ? [drill.id] : []), ...leftovers])],
        }),
      },
      on: {
        CLEANED: { target: 'cleaned' },
        'effect.failed': [
          {
            guard: { type: 'isFirstFailureOf', params: { effect: 'restore.clean' } },
            target: 'uncleaned',
            actions: [
              'noteCleanFailure',
              {
                type: 'alerts.raise',
                params: ({ context, event }) => scratchLeft(context, reasonOf(event)),
              },
            ],
          },
          {
            guard: { type: 'isOutcomeOf', params: { effect: 'restore.clean' } },
            target: 'uncleaned',
            actions: 'noteCleanFailure',
          },
        ],
        'effect.lost': {
          guard: { type: 'isOutcomeOf', params: { effect: 'restore.clean' } },
          target: 'uncleaned',
          actions: 'noteCleanFailure',
        },
      },
    },

    /** A scratch instance is left, and the clean-up is repeated until it works. */
    uncleaned: {
      after: { retryClean: 'cleaning' },
      on: { STARTED: { target: 'cleaning', actions: 'noteStart' } },
    },

    /** Concludes the drill, and chooses the resting state. */
    cleaned: {
      always: [
        { guard: 'hasFailed', target: 'resting.failed' },
        { guard: 'hasDrill', target: 'resting.completed' },
        { target: 'resting.idle' },
      ],
      exit: 'conclude',
    },
  },
});
