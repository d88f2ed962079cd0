import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';
import { checksOf, hasFailedCheck, isConfirmed, unconfirmedAlert } from './key-rotation-checks.ts';
import {
  type Args,
  failedAlert,
  failure,
  followClock,
  isFinished,
  leftBehind,
  merge,
  nextStep,
  type RotationContext,
  type RotationEvent,
  refusal,
  rotationDefaults,
  type Step,
  timeOf,
  wordsOf,
} from './key-rotation-rules.ts';

/** Tries to store the key before the rotation fails. */
const MOST_TRIES = 5;

/** The context with the sightings of this event. */
const withSightings = ({ context, event }: Args): RotationContext =>
  event.type === 'SIGHTINGS_READ'
    ? { ...context, producers: merge(context.producers, event.old, event.fresh) }
    : context;

const isOver = ({ context, event }: Args): boolean => 'at' in event && event.at >= context.deadlineAt;

const readSightings = {
  type: 'collector.read_sightings',
  params: ({ context: { old = '', fresh = '' } }: Args) => ({ old, fresh }),
} as const;

/** The config names yet another key, because somebody regenerated it once more: that one is stored. */
const replaced = {
  CONFIG_READ: { guard: 'isNewer', target: 'storing', reenter: true, actions: 'adopt' },
} as const;
const stored = { target: 'refreshing', actions: ['finish', 'waitForRefresh'] } as const;
const inRefresh = {
  ...replaced,
  FORCE: { guard: 'canForce', target: 'forcing' },
  EXTERNAL_DONE: { actions: 'confirm' },
} as const;
const refreshed = { target: 'external', actions: ['noteChecks', 'finish', 'waitForOthers'] } as const;
const inExternal = {
  ...replaced,
  EXTERNAL_DONE: { target: 'external', reenter: true, actions: 'confirm' },
} as const;

/**
 * Rotates the ingest key (O9). The key is regenerated, adopted by the collector, stored where producers read it, and
 * refreshed in them; then external producers are waited for, and the old key is retired. A step is done when its result
 * was observed. Each may be interrupted, since its effect can be repeated after a crash.
 */
export const keyRotation = setup({
  types: {
    context: {} as RotationContext,
    events: {} as RotationEvent,
  },
  delays: {
    adoption: ({ context: { maker, settings } }) =>
      maker === 'operator' ? settings.overlapMs : settings.adoptMs,
    sightings: ({ context }) => context.settings.lookMs,
    rareSightings: ({ context }) => context.settings.lookMs * 10,
    retry: ({ context }) => context.settings.retryMs,
    byHand: ({ context }) => context.settings.overlapMs,
  },
  guards: {
    refused: (args) => refusal(args) !== undefined,
    underWay: ({ context }) => context.step !== undefined,
    isNew: ({ context, event }) =>
      event.type === 'CONFIG_READ' && event.fingerprint !== undefined && event.fingerprint !== context.old,
    isNewer: ({ context, event }) =>
      event.type === 'CONFIG_READ' &&
      event.fingerprint !== undefined &&
      event.fingerprint !== context.old &&
      event.fingerprint !== context.fresh,
    exhausted: ({ context, event }) =>
      'effect' in event && event.effect === 'collector.store_key' && context.tries + 1 >= MOST_TRIES,
    confirmed: isConfirmed,
    isOverWithFailure: (args) => isOver(args) && hasFailedCheck(args),
    forceable: (args) => isOver(args) && args.context.canForce && args.context.forced === undefined,
    isOver,
    adoptable: ({ event }) => event.type === 'ADOPT' && event.stored !== event.fingerprint,
    storing: ({ context }) => context.adoption?.state === 'storing',
    storingFailed: ({ context, event }) =>
      context.adoption?.state === 'storing' && 'effect' in event && event.effect === 'collector.store_key',
    canForce: ({ context }) => context.canForce,
    finished: (args) => isFinished(withSightings(args)),
    owned: ({ context }) => context.maker === 'own',
    failedAt: ({ context }, { step }: { step: Step }) => context.failure?.step === step,
    // Outcomes of other effects, alerts among them, reach every state too.
    isOutcomeOf: ({ event }, { effect: type }: { effect: string }) =>
      'effect' in event && event.effect === type,
  },
  actions: {
    'collector.regenerate_key': effect<{ maker: string; old: string }>(),
    'collector.read_config': effect(),
    'collector.store_key': effect<{ fresh: string }>(),
    'collector.read_sightings': effect<{ old: string; fresh: string }>(),
    'collector.check_refresh': effect<{ fresh: string; startedAt: number; storedAt: number }>(),
    'collector.force_refresh': effect(),
    'collector.retire_key': effect<{ fresh: string }>(),
    'alerts.raise': effect<Alert>(),
    refuse: assign((args) => ({ refused: refusal(args) })),
    begin: assign(({ event }) => {
      if (event.type !== 'ROTATE') return {};
      const { maker, old, at, external, canForce, settings, producers } = event;
      return {
        ...{ maker, old, settings, canForce, startedAt: at, deadlineAt: at },
        step: 'regenerate' as const,
        external: external.slice(0, 64),
        producers: merge({}, producers, []),
        ...{ fresh: undefined, done: {}, confirmed: undefined, forced: undefined, checks: undefined },
        ...{ tries: 0, note: undefined, failure: undefined, refused: undefined },
      };
    }),
    note: assign((args) => ({ note: wordsOf(args) })),
    adopt: assign(({ event }) =>
      event.type === 'CONFIG_READ'
        ? { fresh: event.fingerprint, step: 'store' as const, tries: 0, note: undefined }
        : {},
    ),
    /** The present step is done. */
    finish: assign((args) => {
      const { step = 'regenerate', done } = args.context;
      return { step: nextStep(step), done: { ...done, [step]: timeOf(args) }, note: undefined };
    }),
    countTry: assign((args) => ({ tries: args.context.tries + 1, note: wordsOf(args) })),
    noteSightings: assign((args) => ({ producers: withSightings(args).producers })),
    noteChecks: assign((args) => ({ checks: checksOf(args) })),
    /** Begins to store the key in use, or finds it stored. */
    beginAdoption: assign(({ event }) => {
      if (event.type !== 'ADOPT' || event.fingerprint === undefined) return {};
      const { fingerprint, stored, at } = event;
      const state = stored === fingerprint ? ('stored' as const) : ('storing' as const);
      return { adoption: { fingerprint, state, at }, refused: undefined };
    }),
    endAdoption: assign(({ context: { adoption }, event }) => {
      if (!adoption) return {};
      if (event.type === 'STORED') {
        return { adoption: { ...adoption, state: 'stored' as const, text: event.place } };
      }
      if (event.type === 'BY_HAND') {
        return { adoption: { ...adoption, state: 'by_hand' as const, text: event.text } };
      }
      if (event.type !== 'effect.failed') return {};
      return { adoption: { ...adoption, state: 'failed' as const, text: event.message } };
    }),
    force: assign(({ event }) => ({ forced: event.type === 'FORCED' ? event.what : [] })),
    waitForRefresh: assign((args) => ({ deadlineAt: timeOf(args) + args.context.settings.refreshMs })),
    waitForOthers: assign((args) => ({
      deadlineAt: (args.context.startedAt ?? 0) + args.context.settings.overlapMs,
    })),
    confirm: assign({ confirmed: true as const }),
    followClock: assign(followClock),
    end: assign({ step: undefined }),
    fail: assign((args) => ({ failure: failure(args), step: undefined })),
    resume: assign(({ context }) => ({
      step: context.failure?.step,
      ...{ failure: undefined, tries: 0, note: undefined, refused: undefined },
    })),
  },
}).createMachine({
  id: 'collector-key-rotation',
  context: {
    maker: 'operator',
    settings: rotationDefaults,
    done: {},
    producers: {},
    external: [],
    canForce: false,
    deadlineAt: 0,
    tries: 0,
  },
  initial: 'idle',
  on: {
    CLOCK_SET: { actions: 'followClock' },
    ROTATE: [
      { guard: 'refused', actions: 'refuse' },
      { target: '.regenerating', actions: 'begin' },
    ],
    ABANDON: { guard: 'underWay', target: '.failed', actions: 'fail' },
    ADOPT: [
      { guard: 'refused', actions: 'refuse' },
      {
        guard: 'adoptable',
        actions: [
          'beginAdoption',
          {
            type: 'collector.store_key',
            params: ({ context }) => ({ fresh: context.adoption?.fingerprint ?? '' }),
          },
        ],
      },
      { actions: 'beginAdoption' },
    ],
    // Outcomes for a key that is stored outside of a rotation: no state waits for them then.
    STORED: { guard: 'storing', actions: 'endAdoption' },
    BY_HAND: { guard: 'storing', actions: 'endAdoption' },
    'effect.failed': { guard: 'storingFailed', actions: 'endAdoption' },
  },
  states: {
    idle: {},

    regenerating: {
      entry: {
        type: 'collector.regenerate_key',
        params: ({ context: { maker, old = '' } }) => ({ maker, old }),
      },
      on: {
        REGENERATED: { target: 'adopting', actions: 'finish' },
        BY_HAND: { target: 'adopting', actions: ['finish', 'note'] },
        'effect.failed': {
          guard: { type: 'isOutcomeOf', params: { effect: 'collector.regenerate_key' } },
          target: 'failed',
          actions: 'fail',
        },
      },
    },

    adopting: {
      entry: 'collector.read_config',
      after: { adoption: { target: 'failed', actions: 'fail' } },
      on: { CONFIG_READ: { guard: 'isNew', target: 'storing', actions: ['finish', 'adopt'] } },
    },

    storing: {
      entry: { type: 'collector.store_key', params: ({ context }) => ({ fresh: context.fresh ?? '' }) },
      on: {
        ...replaced,
        STORED: stored,
        BY_HAND: { target: 'awaitingStore', actions: 'note' },
        'effect.failed': [
          { guard: 'exhausted', target: 'failed', actions: 'fail' },
          {
            guard: { type: 'isOutcomeOf', params: { effect: 'collector.store_key' } },
            target: 'storePause',
            actions: 'countTry',
          },
        ],
      },
    },
    storePause: { after: { retry: 'storing' }, on: { ...replaced, RESUME: 'storing' } },
    /** The store is read-only: a person writes the key, and reports it. */
    awaitingStore: {
      after: { byHand: { target: 'failed', actions: 'fail' } },
      on: { ...replaced, STORED: stored },
    },

    refreshing: {
      entry: readSightings,
      on: {
        ...inRefresh,
        SIGHTINGS_READ: { target: 'checking', actions: 'noteSightings' },
        'effect.failed': {
          guard: { type: 'isOutcomeOf', params: { effect: 'collector.read_sightings' } },
          target: 'refreshPause',
        },
      },
    },
    /** What else shows that the key was taken up: the synced Secret, the pods that read it, the metrics that arrive. */
    checking: {
      entry: {
        type: 'collector.check_refresh',
        params: ({ context: { fresh = '', startedAt = 0, done } }) => ({
          ...{ fresh, startedAt },
          storedAt: done.store ?? startedAt,
        }),
      },
      on: {
        ...inRefresh,
        // It was seen after the sightings were read, and would be missed until the next look.
        MOVED: 'refreshing',
        CHECKED: [
          { guard: 'confirmed', ...refreshed },
          { guard: 'forceable', target: 'forcing', actions: 'noteChecks' },
          {
            guard: 'isOverWithFailure',
            ...refreshed,
            actions: [{ type: 'alerts.raise', params: unconfirmedAlert }, ...refreshed.actions],
          },
          { guard: 'isOver', ...refreshed },
          { target: 'refreshPause', actions: 'noteChecks' },
        ],
        'effect.failed': {
          guard: { type: 'isOutcomeOf', params: { effect: 'collector.check_refresh' } },
          ...refreshed,
        },
      },
    },
    refreshPause: { after: { sightings: 'refreshing' }, on: { ...inRefresh, MOVED: 'refreshing' } },
    forcing: {
      entry: 'collector.force_refresh',
      on: {
        ...replaced,
        FORCED: { target: 'refreshing', actions: ['force', 'waitForRefresh'] },
        'effect.failed': {
          guard: { type: 'isOutcomeOf', params: { effect: 'collector.force_refresh' } },
          target: 'refreshPause',
          actions: ['force', 'note'],
        },
      },
    },

    external: {
      entry: readSightings,
      on: {
        ...inExternal,
        SIGHTINGS_READ: [
          { guard: 'finished', target: 'settled', actions: ['noteSightings', 'finish'] },
          {
            guard: 'isOver',
            target: 'settled',
            actions: ['noteSightings', { type: 'alerts.raise', params: leftBehind }, 'finish'],
          },
          { target: 'externalPause', actions: 'noteSightings' },
        ],
        'effect.failed': {
          guard: { type: 'isOutcomeOf', params: { effect: 'collector.read_sightings' } },
          target: 'externalPause',
        },
      },
    },
    externalPause: { after: { rareSightings: 'external' }, on: { ...inExternal, MOVED: 'external' } },

    /** A key of our own must still be retired; a collector that a UI manages has replaced it already. */
    settled: {
      always: [
        { guard: 'owned', target: 'retiring' },
        { target: 'done', actions: 'finish' },
      ],
    },
    retiring: {
      entry: { type: 'collector.retire_key', params: ({ context }) => ({ fresh: context.fresh ?? '' }) },
      on: {
        RETIRED: { target: 'done', actions: 'finish' },
        'effect.failed': {
          guard: { type: 'isOutcomeOf', params: { effect: 'collector.retire_key' } },
          target: 'failed',
          actions: 'fail',
        },
      },
    },

    done: { entry: 'end' },
    failed: {
      entry: { type: 'alerts.raise', params: failedAlert },
      on: {
        RESUME: [
          {
            guard: { type: 'failedAt', params: { step: 'regenerate' } },
            target: 'regenerating',
            actions: 'resume',
          },
          { guard: { type: 'failedAt', params: { step: 'adopt' } }, target: 'adopting', actions: 'resume' },
          { guard: { type: 'failedAt', params: { step: 'store' } }, target: 'storing', actions: 'resume' },
          { guard: { type: 'failedAt', params: { step: 'retire' } }, target: 'retiring', actions: 'resume' },
          {
            guard: { type: 'failedAt', params: { step: 'refresh' } },
            target: 'refreshing',
            actions: ['resume', 'waitForRefresh'],
          },
          { target: 'external', actions: 'resume' },
        ],
      },
    },
  },
});
