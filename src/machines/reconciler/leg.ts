import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';
import {
  gaveUp,
  jitterOf,
  ncidOf,
  pauseAfter,
  publishedAt,
  reasonOf,
  recovery,
  restAfter,
  vanished,
} from './leg-outcomes.ts';
import type { LegContext, LegEvent, LegRecovered, LegSettings } from './leg-shapes.ts';

/** The default settings of a leg. */
export const legDefaults = {
  settleMs: 25,
  secondLookMs: 1_000,
  retryMs: 50,
  maxTries: 5,
  waitMs: 5_000,
  resyncMs: 240_000,
} as const;

/** Events that may extend the quiet time; without a limit an endless burst would keep the leg from being read. */
const MAX_EXTENSIONS = 20;

/** Events during a call to the router. Its answer may be older than they are, so another reading is due. */
const duringCall = {
  CHANGED: { actions: 'requireReading' },
  RESYNC: { actions: 'requireReading' },
  CONFIGURE: { actions: ['configure', 'requireReading'] },
} as const;

const recovered = {
  guard: 'recovered',
  target: 'afterPresent',
  actions: [{ type: 'reconciler.leg_recovered', params: recovery }, 'notePresent'],
} as const;

/** The outcomes of a reading that gives no addresses. */
const unread = {
  LEG_ABSENT: { target: 'afterVanished', actions: 'markMissing' },
  UNREACHABLE: { target: 'afterFailed', actions: 'fail' },
  'effect.failed': { guard: 'ofRead', target: 'afterFailed', actions: 'fail' },
  'effect.lost': { guard: 'ofRead', target: 'afterFailed', actions: 'fail' },
} as const;

/**
 * Keeps the static address on one leg of the router (R24, R25). After an event it reads the config, adds a missing address
 * to exactly the config that it read, and counts the address as present only when a later reading shows it. Each leg has
 * one actor; the ncid decides races between them, as between all writers.
 */
export const leg = setup({
  types: {
    context: {} as LegContext,
    events: {} as LegEvent,
    input: {} as Partial<LegSettings> | undefined,
  },
  delays: {
    settle: ({ context }) => context.settleMs,
    secondLook: ({ context }) => context.secondLookMs,
    backOff: ({ context }) => context.pauseMs,
    wait: ({ context }) => context.waitMs,
    resync: ({ context }) => context.resyncMs,
    // An event that came during the last try may have been caused by that try, so it shortens the pause and does not end it.
    coolDown: ({ context }) => (context.due === 'reading' ? context.waitMs : context.restMs),
  },
  guards: {
    mayExtend: ({ context }) => context.events < MAX_EXTENSIONS,
    present: ({ context, event }) => event.type === 'LEG_READ' && event.addresses.includes(context.address),
    recovered: ({ context, event }) =>
      event.type === 'LEG_READ' &&
      event.addresses.includes(context.address) &&
      (context.missing === true || context.alerted === true),
    observes: ({ context }) => context.observes === true,
    observesOn: ({ context }) => context.observes === true && context.missing === true,
    readingDue: ({ context }) => context.due === 'reading',
    secondLookDue: ({ context }) => context.due === 'secondLook',
    exhausted: ({ context }) => context.tries >= context.maxTries,
    exhaustedAgain: ({ context }) => context.tries >= context.maxTries && context.alerted === true,
    alerted: ({ context }) => context.alerted === true,
    // Events `effect.failed` and `effect.lost` come from every effect; only these two effects call the router.
    ofRead: ({ event }) => 'effect' in event && event.effect === 'reconciler.read_leg',
    ofAdd: ({ event }) => 'effect' in event && event.effect === 'reconciler.add_address',
  },
  actions: {
    'reconciler.read_leg': effect<{ intf: string }>(),
    'reconciler.add_address': effect<{ intf: string; address: string; ncid: string }>(),
    'reconciler.would_add': effect<Pick<LegSettings, 'intf' | 'label' | 'address'>>(),
    'reconciler.leg_recovered': effect<LegRecovered>(),
    'alerts.raise': effect<Alert>(),
    /** An event begins a new round. */
    beginRound: assign(({ event }) => ({
      events: event.type === 'CHANGED' ? 1 : 0,
      eventAt: publishedAt(event),
      due: undefined,
      nextEventAt: undefined,
      tries: 0,
    })),
    countEvent: assign(({ context }) => ({ events: context.events + 1 })),
    requireReading: assign(({ context, event }) => ({
      events: context.events + 1,
      due: 'reading' as const,
      nextEventAt: context.nextEventAt ?? publishedAt(event),
    })),
    /** The event that came while busy begins a new round. */
    beginNextRound: assign(({ context }) => ({
      eventAt: context.nextEventAt,
      due: undefined,
      nextEventAt: undefined,
    })),
    requireSecondLook: assign({ due: 'secondLook' as const }),
    clearDue: assign({ due: undefined }),
    endRound: assign({ events: 0, eventAt: undefined, due: undefined, nextEventAt: undefined }),
    configure: assign(({ event }) => (event.type === 'CONFIGURE' ? { ...event.leg } : {})),
    notePresent: assign(({ context, event }) => ({
      tries: 0,
      healed: context.healed + (context.missing && context.observes !== true ? 1 : 0),
      eventAt: context.missing ? undefined : context.eventAt,
      lastNcid: ncidOf(event) ?? context.lastNcid,
      missing: undefined,
      alerted: undefined,
      lastError: undefined,
    })),
    markMissing: assign(({ context, event }) => ({
      missing: true as const,
      lastNcid: ncidOf(event) ?? context.lastNcid,
    })),
    /** The router accepted a write, so an earlier error is obsolete. */
    clearError: assign({ lastError: undefined }),
    rememberError: assign(({ context, event }) => ({
      lastError: reasonOf(event),
      jitter: jitterOf(event) ?? context.jitter,
    })),
    fail: assign(({ context, event }) => ({
      tries: context.tries + 1,
      conflicts: context.conflicts + (event.type === 'CONFLICT' ? 1 : 0),
      lastError: (event.type === 'LEG_READ' ? context.lastError : undefined) ?? reasonOf(event),
      jitter: jitterOf(event) ?? context.jitter,
      pauseMs: pauseAfter(event, context),
      restMs: restAfter(event, context),
    })),
    markAlerted: assign({ alerted: true as const }),
  },
}).createMachine({
  id: 'reconciler-leg',
  context: ({ input }) => ({
    intf: '',
    label: '',
    address: '',
    ...legDefaults,
    ...input,
    events: 0,
    tries: 0,
    jitter: 0,
    pauseMs: 0,
    restMs: 0,
    healed: 0,
    conflicts: 0,
  }),
  initial: 'unread',
  // Default transitions, for states without their own.
  on: {
    CHANGED: { target: '.settling', actions: 'beginRound' },
    RESYNC: { target: '.reading', actions: ['beginRound', 'requireSecondLook'] },
    CONFIGURE: { target: '.reading', actions: ['configure', 'beginRound', 'requireSecondLook'] },
    RELEASE: { target: '.released', actions: 'endRound' },
  },
  states: {
    /** The config has not been read yet. */
    unread: {},

    settling: {
      after: { settle: { target: 'reading', actions: 'requireSecondLook' } },
      on: {
        CHANGED: [
          { guard: 'mayExtend', target: 'settling', reenter: true, actions: 'countEvent' },
          { actions: 'countEvent' },
        ],
        RESYNC: { actions: 'countEvent' },
        CONFIGURE: { actions: ['configure', 'countEvent'] },
      },
    },

    reading: {
      entry: { type: 'reconciler.read_leg', params: ({ context }) => ({ intf: context.intf }) },
      on: {
        LEG_READ: [
          recovered,
          { guard: 'present', target: 'afterPresent', actions: 'notePresent' },
          { guard: 'observesOn', target: 'observing', actions: 'markMissing' },
          {
            guard: 'observes',
            target: 'observing',
            actions: [
              {
                type: 'reconciler.would_add',
                params: ({ context: { intf, label, address } }) => ({ intf, label, address }),
              },
              'markMissing',
            ],
          },
          { target: 'adding', actions: 'markMissing' },
        ],
        ...unread,
        ...duringCall,
      },
    },

    /** Its address is missing, and nobody has confirmed that it may be added. */
    observing: {
      entry: 'endRound',
      after: { resync: { target: 'reading', actions: 'beginRound' } },
    },

    adding: {
      entry: {
        type: 'reconciler.add_address',
        params: ({ context: { intf, address, lastNcid = '' } }) => ({ intf, address, ncid: lastNcid }),
      },
      on: {
        ADDED: { target: 'verifying', actions: 'clearError' },
        CONFLICT: { target: 'afterFailed', actions: 'fail' },
        PENDING: 'waiting',
        // None of these proves that the write was not applied, so the config is read again.
        REFUSED: { target: 'verifying', actions: 'rememberError' },
        UNKNOWN: { target: 'verifying', actions: 'rememberError' },
        'effect.failed': { guard: 'ofAdd', target: 'verifying', actions: 'rememberError' },
        'effect.lost': { guard: 'ofAdd', target: 'verifying', actions: 'rememberError' },
        ...duringCall,
      },
    },

    verifying: {
      entry: { type: 'reconciler.read_leg', params: ({ context }) => ({ intf: context.intf }) },
      on: {
        LEG_READ: [recovered, { target: 'afterFailed', actions: ['markMissing', 'fail'] }],
        ...unread,
        ...duringCall,
      },
    },

    /** Choice: the address is there; is another reading due? */
    afterPresent: {
      always: [
        { guard: 'readingDue', target: 'settling', actions: 'beginNextRound' },
        { guard: 'secondLookDue', target: 'checking' },
        { target: 'whole' },
      ],
    },

    /** The reading may be older than the save that the event announced, so the leg is read a second time. */
    checking: {
      after: { secondLook: { target: 'reading', actions: 'clearDue' } },
    },

    whole: {
      entry: 'endRound',
      after: { resync: { target: 'reading', actions: 'beginRound' } },
    },

    /** Choice: try again, or alert a person? */
    afterFailed: {
      always: [
        { guard: 'exhaustedAgain', target: 'gaveUp' },
        {
          guard: 'exhausted',
          target: 'gaveUp',
          actions: [{ type: 'alerts.raise', params: ({ context }) => gaveUp(context) }, 'markAlerted'],
        },
        { target: 'backingOff' },
      ],
    },

    backingOff: {
      after: { backOff: 'reading' },
      // An event must not shorten the back-off, because racing writers would then race even faster.
      on: { CHANGED: { actions: 'requireReading' } },
    },

    /** A transaction of another writer is pending. The router refuses every plain write and announces no end. */
    waiting: {
      after: { wait: 'reading' },
    },

    gaveUp: {
      after: { coolDown: { target: 'reading', actions: ['beginRound', 'requireSecondLook'] } },
    },

    /** Choice: the config has no such interface; is that certain, and has a person been alerted? */
    afterVanished: {
      always: [
        { guard: 'readingDue', target: 'settling', actions: 'beginNextRound' },
        { guard: 'secondLookDue', target: 'checking' },
        { guard: 'alerted', target: 'absent' },
        {
          target: 'absent',
          actions: [{ type: 'alerts.raise', params: ({ context }) => vanished(context) }, 'markAlerted'],
        },
      ],
    },

    /** The reconciler never creates an interface; the app must do that. */
    absent: {
      entry: 'endRound',
      after: { resync: { target: 'reading', actions: 'beginRound' } },
    },

    /** The configuration no longer lists this leg. */
    released: {
      on: { CHANGED: {}, RESYNC: {} },
    },
  },
});
