import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';
import {
  type CleanParams,
  type Drill,
  drillFailed,
  type Failure,
  type Phase,
  type ReplyParams,
  type RestoreContext,
  type RestoreEvent,
  type RestoreSettings,
  type Result,
  type StepParams,
  scratchLeft,
} from './drill-shapes.ts';

const RETRY_MS = 60_000;
const LONGEST_RETRY_MS = 3_600_000;
const MOST_RESULTS = 10;

const NOBODY: Drill = { id: '', path: 'a', by: '', at: 0 };

type Args = { readonly context: RestoreContext; readonly event: RestoreEvent };

const step = ({ context: { drill = NOBODY, source, url, copied } }: Args): StepParams => ({
  drill,
  ...(source && { source }),
  ...(url !== undefined && { url }),
  ...(copied && { copied }),
});

/** What is no duration would end the wait at once, again and again. */
const durationOf = (ms: number | undefined): number | undefined =>
  typeof ms === 'number' && ms >= 1 ? ms : undefined;

const reasonOf = (event: RestoreEvent): string => {
  if (event.type === 'effect.failed') return event.message;
  if (event.type === 'effect.lost') return 'it was interrupted by the end of the runtime';
  if (event.type === 'CANCEL') return event.reason;
  return event.type === 'VERIFIED' ? event.report.verdict : '';
};

const failureOf = (event: RestoreEvent, phase: Phase): Failure => ({
  phase,
  reason: reasonOf(event),
  ...(event.type === 'effect.failed' && event.code !== undefined && { code: event.code }),
});

/** What ends a phase early: everything leads to the clean-up. */
const endsOf = (phase: Phase, asks: string) => {
  const fail = { type: 'fail', params: { phase } } as const;
  const tell = {
    type: 'alert.raise',
    params: ({ context, event }: Args) => drillFailed(context.drill ?? NOBODY, failureOf(event, phase)),
  } as const;
  const ofPhase = { type: 'answers', params: { effect: asks } } as const;
  return {
    'effect.failed': { guard: ofPhase, target: 'cleaning', actions: [fail, tell] },
    'effect.lost': { guard: ofPhase, target: 'cleaning', actions: [fail, tell] },
    CANCEL: { target: 'cleaning', actions: [fail] },
  } as const;
};

/**
 * A restore that is proven (B6): into a scratch instance, compared, and cleaned up whatever happened. One drill at a
 * time; the way out of every phase leads through `cleaning`, and a clean-up that fails is tried until it works.
 */
export const restore = setup({
  types: {
    context: {} as RestoreContext,
    events: {} as RestoreEvent,
    input: {} as RestoreSettings | undefined,
  },
  delays: {
    retryClean: ({ context }) =>
      Math.min(context.retryMs * 2 ** (context.cleanFailures - 1), LONGEST_RETRY_MS),
  },
  guards: {
    answers: ({ event }, params: { effect: string }) => 'effect' in event && event.effect === params.effect,
    good: ({ event }) => event.type === 'VERIFIED' && event.report.ok,
    leftovers: ({ event }) => event.type === 'STARTED' && event.leftovers.length > 0,
    ofDrill: ({ context }) => context.drill !== undefined,
    failed: ({ context }) => context.failure !== undefined,
    answersFirst: ({ context, event }, params: { effect: string }) =>
      context.cleanFailures === 0 && 'effect' in event && event.effect === params.effect,
  },
  actions: {
    'restore.choose': effect<StepParams>(),
    'restore.prepare': effect<StepParams>(),
    'restore.recover': effect<StepParams>(),
    'restore.verify': effect<StepParams>(),
    'restore.clean': effect<CleanParams>(),
    'http.reply': effect<ReplyParams>(),
    'alert.raise': effect<Alert>(),
    begin: assign(({ event }) => {
      if (event.type !== 'ASKED') return {};
      const { type, ...drill } = event;
      return { drill };
    }),
    take: assign(({ event }) => {
      if (event.type === 'CHOSEN') return { source: event.source };
      if (event.type === 'PREPARED') return { place: event.place, url: event.url, copied: event.copied };
      if (event.type === 'RECOVERED') return { url: event.url };
      return event.type === 'VERIFIED' ? { report: event.report } : {};
    }),
    fail: assign(({ event }, { phase }: { phase: Phase }) => ({ failure: failureOf(event, phase) })),
    started: assign(({ context, event }) => {
      if (event.type !== 'STARTED') return {};
      return {
        leftovers: [...new Set([...context.leftovers, ...event.leftovers])],
        retryMs: durationOf(event.retryMs) ?? context.retryMs,
      };
    }),
    cleanFailed: assign(({ context, event }) => ({
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
  // A drill runs: what a second one is told, and what a start brings.
  on: {
    ASKED: {
      actions: {
        type: 'http.reply',
        params: ({ context }) => ({ status: 409, body: { id: context.drill?.id ?? 'the sweep' } }),
      },
    },
    STARTED: { actions: 'started' },
  },
  states: {
    resting: {
      initial: 'idle',
      states: { idle: {}, completed: {}, failed: {} },
      on: {
        ASKED: {
          target: 'choosing',
          actions: [
            'begin',
            {
              type: 'http.reply',
              params: ({ event }) => ({ status: 202, body: { id: event.id } }),
            },
          ],
        },
        STARTED: [{ guard: 'leftovers', target: 'cleaning', actions: 'started' }, { actions: 'started' }],
      },
    },

    choosing: {
      entry: { type: 'restore.choose', params: step },
      on: {
        CHOSEN: { target: 'preparing', actions: 'take' },
        ...endsOf('choosing', 'restore.choose'),
      },
    },

    preparing: {
      entry: { type: 'restore.prepare', params: step },
      on: {
        PREPARED: { target: 'recovering', actions: 'take' },
        ...endsOf('preparing', 'restore.prepare'),
      },
    },

    recovering: {
      entry: { type: 'restore.recover', params: step },
      on: {
        RECOVERED: { target: 'verifying', actions: 'take' },
        ...endsOf('recovering', 'restore.recover'),
      },
    },

    verifying: {
      entry: { type: 'restore.verify', params: step },
      on: {
        VERIFIED: [
          { guard: 'good', target: 'cleaning', actions: 'take' },
          {
            target: 'cleaning',
            actions: [
              'take',
              { type: 'fail', params: { phase: 'verifying' } },
              {
                type: 'alert.raise',
                params: ({ context, event }) =>
                  drillFailed(context.drill ?? NOBODY, failureOf(event, 'verifying')),
              },
            ],
          },
        ],
        ...endsOf('verifying', 'restore.verify'),
      },
    },

    /** Of a drill, however it ended, or of what an earlier run left behind. */
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
            guard: { type: 'answersFirst', params: { effect: 'restore.clean' } },
            target: 'uncleaned',
            actions: [
              'cleanFailed',
              {
                type: 'alert.raise',
                params: ({ context, event }) => scratchLeft(context, reasonOf(event)),
              },
            ],
          },
          {
            guard: { type: 'answers', params: { effect: 'restore.clean' } },
            target: 'uncleaned',
            actions: 'cleanFailed',
          },
        ],
        'effect.lost': {
          guard: { type: 'answers', params: { effect: 'restore.clean' } },
          target: 'uncleaned',
          actions: 'cleanFailed',
        },
      },
    },

    /** Something is left, and will be until this has worked. */
    uncleaned: {
      after: { retryClean: 'cleaning' },
      on: { STARTED: { target: 'cleaning', actions: 'started' } },
    },

    /** Choice: which of the resting states? */
    cleaned: {
      always: [
        { guard: 'failed', target: 'resting.failed' },
        { guard: 'ofDrill', target: 'resting.completed' },
        { target: 'resting.idle' },
      ],
      exit: 'conclude',
    },
  },
});
