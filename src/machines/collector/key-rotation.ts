import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';
import {
  type Args,
  failedAlert,
  failure,
  isFinished,
  isRefreshed,
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

/** Tries to store the key before a person is told. */
const MOST_TRIES = 5;

/** The context as it is once the sightings of this event are taken in. */
const looked = ({ context, event }: Args): RotationContext =>
  event.type === 'SIGHTINGS_READ'
    ? { ...context, producers: merge(context.producers, event.old, event.fresh) }
    : context;

const isOver = ({ context, event }: Args): boolean => 'at' in event && event.at >= context.deadlineAt;

const look = {
  type: 'collector.read_sightings',
  params: ({ context: { old = '', fresh = '' } }: Args) => ({ old, fresh }),
} as const;

/** The key was regenerated once more: the newest is the one to store. */
const replaced = {
  CONFIG_READ: { guard: 'isNewer', target: 'storing', reenter: true, actions: 'adopt' },
} as const;
const stored = { target: 'refreshing', actions: ['finish', 'waitForRefresh'] } as const;
const inRefresh = {
  ...replaced,
  FORCE: { guard: 'canForce', target: 'forcing' },
  EXTERNAL_DONE: { actions: 'confirm' },
} as const;
const refreshed = { target: 'external', actions: ['see', 'finish', 'waitForOthers'] } as const;
const inExternal = {
  ...replaced,
  EXTERNAL_DONE: { target: 'external', reenter: true, actions: 'confirm' },
} as const;

/**
 * Rotates the ingest key (O9): regenerated, adopted by the collector, stored where producers read it, refreshed in them,
 * told to those outside, and the old one retired. Each step is believed when it is seen, and each may be interrupted:
 * what is asked again after a crash does nothing twice.
 */
export const keyRotation = setup({
  types: {
    context: {} as RotationContext,
    events: {} as RotationEvent,
  },
  delays: {
    adoption: ({ context: { maker, settings } }) =>
      maker === 'operator' ? settings.overlapMs : settings.adoptMs,
    look: ({ context }) => context.settings.lookMs,
    rareLook: ({ context }) => context.settings.lookMs * 10,
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
    refreshed: (args) => isRefreshed(looked(args)),
    forceable: (args) => isOver(args) && args.context.canForce && args.context.forced === undefined,
    isOver,
    canForce: ({ context }) => context.canForce,
    finished: (args) => isFinished(looked(args)),
    owned: ({ context }) => context.maker === 'own',
    failedAt: ({ context }, { step }: { step: Step }) => context.failure?.step === step,
    // Outcomes of other effects come to a state too, alerts among them.
    of: ({ event }, { effect: type }: { effect: string }) => 'effect' in event && event.effect === type,
  },
  actions: {
    'collector.regenerate_key': effect<{ maker: string; old: string }>(),
    'collector.read_config': effect(),
    'collector.store_key': effect<{ fresh: string }>(),
    'collector.read_sightings': effect<{ old: string; fresh: string }>(),
    'collector.force_refresh': effect(),
    'collector.retire_key': effect<{ fresh: string }>(),
    'alert.raise': effect<Alert>(),
    refuse: assign((args) => ({ refused: refusal(args) })),
    begin: assign(({ event }) => {
      if (event.type !== 'ROTATE') return {};
      const { maker, old, at, external, canForce, settings, producers } = event;
      return {
        ...{ maker, old, settings, canForce, startedAt: at, deadlineAt: at },
        step: 'regenerate' as const,
        external: external.slice(0, 64),
        producers: merge({}, producers, []),
        ...{ fresh: undefined, done: {}, confirmed: undefined, forced: undefined },
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
    see: assign((args) => ({ producers: looked(args).producers })),
    force: assign(({ event }) => ({ forced: event.type === 'FORCED' ? event.what : [] })),
    waitForRefresh: assign((args) => ({ deadlineAt: timeOf(args) + args.context.settings.refreshMs })),
    waitForOthers: assign((args) => ({
      deadlineAt: (args.context.startedAt ?? 0) + args.context.settings.overlapMs,
    })),
    confirm: assign({ confirmed: true as const }),
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
    ROTATE: [
      { guard: 'refused', actions: 'refuse' },
      { target: '.regenerating', actions: 'begin' },
    ],
    ABANDON: { guard: 'underWay', target: '.failed', actions: 'fail' },
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
          guard: { type: 'of', params: { effect: 'collector.regenerate_key' } },
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
            guard: { type: 'of', params: { effect: 'collector.store_key' } },
            target: 'storePause',
            actions: 'countTry',
          },
        ],
      },
    },
    storePause: { after: { retry: 'storing' }, on: { ...replaced, RESUME: 'storing' } },
    /** The store can only be read: a person writes, and says so. */
    awaitingStore: {
      after: { byHand: { target: 'failed', actions: 'fail' } },
      on: { ...replaced, STORED: stored },
    },

    refreshing: {
      entry: look,
      on: {
        ...inRefresh,
        SIGHTINGS_READ: [
          { guard: 'refreshed', ...refreshed },
          { guard: 'forceable', target: 'forcing', actions: 'see' },
          { guard: 'isOver', ...refreshed },
          { target: 'refreshPause', actions: 'see' },
        ],
        'effect.failed': {
          guard: { type: 'of', params: { effect: 'collector.read_sightings' } },
          target: 'refreshPause',
        },
      },
    },
    refreshPause: { after: { look: 'refreshing' }, on: { ...inRefresh, MOVED: 'refreshing' } },
    forcing: {
      entry: 'collector.force_refresh',
      on: {
        ...replaced,
        FORCED: { target: 'refreshing', actions: ['force', 'waitForRefresh'] },
        'effect.failed': {
          guard: { type: 'of', params: { effect: 'collector.force_refresh' } },
          target: 'refreshPause',
          actions: ['force', 'note'],
        },
      },
    },

    external: {
      entry: look,
      on: {
        ...inExternal,
        SIGHTINGS_READ: [
          { guard: 'finished', target: 'settled', actions: ['see', 'finish'] },
          {
            guard: 'isOver',
            target: 'settled',
            actions: ['see', { type: 'alert.raise', params: leftBehind }, 'finish'],
          },
          { target: 'externalPause', actions: 'see' },
        ],
        'effect.failed': {
          guard: { type: 'of', params: { effect: 'collector.read_sightings' } },
          target: 'externalPause',
        },
      },
    },
    externalPause: { after: { rareLook: 'external' }, on: { ...inExternal, MOVED: 'external' } },

    /** Choice: is there an old key of ours to take away? */
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
          guard: { type: 'of', params: { effect: 'collector.retire_key' } },
          target: 'failed',
          actions: 'fail',
        },
      },
    },

    done: { entry: 'end' },
    failed: {
      entry: { type: 'alert.raise', params: failedAlert },
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
