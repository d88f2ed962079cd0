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

/** What a leg is held to, and at which intervals. Times are milliseconds. */
export interface LegSettings {
  /** Interface name, e.g. `eth1.10`; the app cannot change it, unlike the display name. */
  readonly intf: string;
  /** For people. */
  readonly label: string;
  /** The static address with its prefix length, in the one form that readings use too. */
  readonly address: string;
  /** Quiet time after an event before the config is read: a daemon may publish before it saves. */
  readonly settleMs: number;
  /** From a reading that found the leg whole after an event to the second look. */
  readonly secondLookMs: number;
  /** Base of the back-off; doubled with each failed try. */
  readonly retryMs: number;
  /** Failed tries after which a person is alerted. */
  readonly maxTries: number;
  /** Between two tries while somebody's transaction is pending. */
  readonly waitMs: number;
  /** Between two readings when nothing happens. */
  readonly resyncMs: number;
}

/** Effect `reconciler.leg_recovered`: what is known when a leg is whole again. */
export interface LegRecovered {
  readonly intf: string;
  readonly label: string;
  readonly address: string;
  readonly ncid: string;
  /** The address had been missing; otherwise only the router could not be read. */
  readonly missing: boolean;
  /** A person had been alerted. */
  readonly alerted: boolean;
  /** Failed tries before this one. */
  readonly tries: number;
  /** When the event that began the story was published (epoch ms), where it said so. */
  readonly heardAt?: number;
}

export interface LegContext extends LegSettings {
  /** What the leg still owes to an event: a reading of its own, or the second look after one. */
  readonly owes?: 'read' | 'look' | undefined;
  /** Events heard in this story. */
  readonly heard: number;
  /** When the event that began the story was published (epoch ms), and the first one that came while busy. */
  readonly heardAt?: number | undefined;
  readonly owedAt?: number | undefined;
  /** The ncid of the newest reading. */
  readonly lastNcid?: string | undefined;
  /** The address was found missing and has not been seen since. */
  readonly missing?: true | undefined;
  /** Failed tries of this story. */
  readonly tries: number;
  /** Why the last try failed. */
  readonly lastError?: string | undefined;
  /** 0 to 1, from the newest outcome that failed: machines make no random numbers. */
  readonly jitter: number;
  /** How long the next back-off takes, and the rest after giving up. */
  readonly pauseMs: number;
  readonly restMs: number;
  /** A person has been alerted, and not yet of the end. */
  readonly alerted?: true | undefined;
  /** How often a missing address came back, and how often a race for the ncid was lost; ever. */
  readonly healed: number;
  readonly conflicts: number;
}

export type LegEvent =
  | { type: 'CHANGED'; channel?: string; intf?: string; ncid?: string; transID?: string; at?: number }
  | { type: 'RESYNC'; reason: string }
  | { type: 'CONFIGURE'; leg: LegSettings }
  | { type: 'RELEASE' }
  | { type: 'LEG_READ'; ncid: string; addresses: readonly string[] }
  | { type: 'LEG_ABSENT'; ncid: string }
  | { type: 'UNREACHABLE'; reason: string }
  | { type: 'ADDED'; ncid: string; posted: readonly string[] }
  | { type: 'CONFLICT'; jitter: number }
  | { type: 'PENDING' }
  | { type: 'REFUSED'; errors: readonly string[]; jitter: number }
  | { type: 'UNKNOWN'; reason: string; jitter: number }
  | { type: 'effect.failed'; effect: string; code: string; message: string }
  | { type: 'effect.done'; effect: string }
  | { type: 'effect.lost'; effect: string };

/** The argument of guards, actions and effect parameters. */
export interface Args {
  readonly context: LegContext;
  readonly event: LegEvent;
}

/** The default settings of a leg. */
export const legDefaults = {
  settleMs: 25,
  secondLookMs: 1_000,
  retryMs: 50,
  maxTries: 5,
  waitMs: 5_000,
  resyncMs: 240_000,
} as const;

/** Events that may start the settling anew: an endless burst must not keep the leg from being read. */
const PATIENCE = 20;

/** Events while the router is being asked: its answer may be from before them, so another reading is owed. */
const busy = {
  CHANGED: { actions: 'oweReading' },
  RESYNC: { actions: 'oweReading' },
  CONFIGURE: { actions: ['configure', 'oweReading'] },
} as const;

const recovered = {
  guard: 'recovered',
  target: 'afterPresent',
  actions: [{ type: 'reconciler.leg_recovered', params: recovery }, 'found'],
} as const;

/** The outcomes of a reading that gives no addresses. */
const unread = {
  LEG_ABSENT: { target: 'afterVanished', actions: 'markMissing' },
  UNREACHABLE: { target: 'afterFailed', actions: 'fail' },
  'effect.failed': { guard: 'ofRead', target: 'afterFailed', actions: 'fail' },
  'effect.lost': { guard: 'ofRead', target: 'afterFailed', actions: 'fail' },
} as const;

/**
 * Holds one leg of the router to its static address (R24, R25): after an event it reads the config, adds what is missing to
 * the very config it read, and trusts only the next reading. One actor a leg; the ncid decides races between them, as
 * between all writers.
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
    // An event that came during the last try is not lost, but it may have been the try's own.
    coolDown: ({ context }) => (context.owes === 'read' ? context.waitMs : context.restMs),
  },
  guards: {
    patient: ({ context }) => context.heard < PATIENCE,
    present: ({ context, event }) => event.type === 'LEG_READ' && event.addresses.includes(context.address),
    recovered: ({ context, event }) =>
      event.type === 'LEG_READ' &&
      event.addresses.includes(context.address) &&
      (context.missing === true || context.alerted === true),
    owesRead: ({ context }) => context.owes === 'read',
    owesLook: ({ context }) => context.owes === 'look',
    exhausted: ({ context }) => context.tries >= context.maxTries,
    exhaustedAgain: ({ context }) => context.tries >= context.maxTries && context.alerted === true,
    alerted: ({ context }) => context.alerted === true,
    // Outcomes of the other effects come here too, and say nothing of the router.
    ofRead: ({ event }) => 'effect' in event && event.effect === 'reconciler.read_leg',
    ofAdd: ({ event }) => 'effect' in event && event.effect === 'reconciler.add_address',
  },
  actions: {
    'reconciler.read_leg': effect<{ intf: string }>(),
    'reconciler.add_address': effect<{ intf: string; address: string; ncid: string }>(),
    'reconciler.leg_recovered': effect<LegRecovered>(),
    'alerts.raise': effect<Alert>(),
    /** An event begins a new story. */
    begin: assign(({ event }) => ({
      heard: event.type === 'CHANGED' ? 1 : 0,
      heardAt: publishedAt(event),
      owes: undefined,
      owedAt: undefined,
      tries: 0,
    })),
    countEvent: assign(({ context }) => ({ heard: context.heard + 1 })),
    oweReading: assign(({ context, event }) => ({
      heard: context.heard + 1,
      owes: 'read' as const,
      owedAt: context.owedAt ?? publishedAt(event),
    })),
    /** The event that is owed a reading begins a new story. */
    beginOwedStory: assign(({ context }) => ({
      heardAt: context.owedAt,
      owes: undefined,
      owedAt: undefined,
    })),
    oweLook: assign({ owes: 'look' as const }),
    oweNothing: assign({ owes: undefined }),
    forgetStory: assign({ heard: 0, heardAt: undefined, owes: undefined, owedAt: undefined }),
    configure: assign(({ event }) => (event.type === 'CONFIGURE' ? { ...event.leg } : {})),
    found: assign(({ context, event }) => ({
      tries: 0,
      healed: context.healed + (context.missing ? 1 : 0),
      heardAt: context.missing ? undefined : context.heardAt,
      lastNcid: ncidOf(event) ?? context.lastNcid,
      missing: undefined,
      alerted: undefined,
      lastError: undefined,
    })),
    markMissing: assign(({ context, event }) => ({
      missing: true as const,
      lastNcid: ncidOf(event) ?? context.lastNcid,
    })),
    /** The router accepted a write, so an earlier error no longer explains anything. */
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
    heard: 0,
    tries: 0,
    jitter: 0,
    pauseMs: 0,
    restMs: 0,
    healed: 0,
    conflicts: 0,
  }),
  initial: 'unread',
  // What these events do in a state that does not handle them itself.
  on: {
    CHANGED: { target: '.settling', actions: 'begin' },
    RESYNC: { target: '.reading', actions: ['begin', 'oweLook'] },
    CONFIGURE: { target: '.reading', actions: ['configure', 'begin', 'oweLook'] },
    RELEASE: { target: '.released', actions: 'forgetStory' },
  },
  states: {
    /** Nothing is known yet. */
    unread: {},

    settling: {
      after: { settle: { target: 'reading', actions: 'oweLook' } },
      on: {
        CHANGED: [
          { guard: 'patient', target: 'settling', reenter: true, actions: 'countEvent' },
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
          { guard: 'present', target: 'afterPresent', actions: 'found' },
          { target: 'adding', actions: 'markMissing' },
        ],
        ...unread,
        ...busy,
      },
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
        // None of these proves that nothing was applied.
        REFUSED: { target: 'verifying', actions: 'rememberError' },
        UNKNOWN: { target: 'verifying', actions: 'rememberError' },
        'effect.failed': { guard: 'ofAdd', target: 'verifying', actions: 'rememberError' },
        'effect.lost': { guard: 'ofAdd', target: 'verifying', actions: 'rememberError' },
        ...busy,
      },
    },

    verifying: {
      entry: { type: 'reconciler.read_leg', params: ({ context }) => ({ intf: context.intf }) },
      on: {
        LEG_READ: [recovered, { target: 'afterFailed', actions: ['markMissing', 'fail'] }],
        ...unread,
        ...busy,
      },
    },

    /** Choice: the address is there; is another reading owed? */
    afterPresent: {
      always: [
        { guard: 'owesRead', target: 'settling', actions: 'beginOwedStory' },
        { guard: 'owesLook', target: 'checking' },
        { target: 'whole' },
      ],
    },

    /** The reading may have been from before the save that the event announced, so a second look is due. */
    checking: {
      after: { secondLook: { target: 'reading', actions: 'oweNothing' } },
    },

    whole: {
      entry: 'forgetStory',
      after: { resync: { target: 'reading', actions: 'begin' } },
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
      // An event must not cut the back-off short, or racing writers would race the faster.
      on: { CHANGED: { actions: 'oweReading' } },
    },

    /** Somebody's transaction is pending: every plain write is refused, and no event says when it ends. */
    waiting: {
      after: { wait: 'reading' },
    },

    gaveUp: {
      after: { coolDown: { target: 'reading', actions: ['begin', 'oweLook'] } },
    },

    /** Choice: the config has no such interface; is that certain, and has a person been alerted? */
    afterVanished: {
      always: [
        { guard: 'owesRead', target: 'settling', actions: 'beginOwedStory' },
        { guard: 'owesLook', target: 'checking' },
        { guard: 'alerted', target: 'absent' },
        {
          target: 'absent',
          actions: [{ type: 'alerts.raise', params: ({ context }) => vanished(context) }, 'markAlerted'],
        },
      ],
    },

    /** An interface is never created here: the app must bring it back. */
    absent: {
      entry: 'forgetStory',
      after: { resync: { target: 'reading', actions: 'begin' } },
    },

    /** Not listed any more. */
    released: {
      on: { CHANGED: {}, RESYNC: {} },
    },
  },
});
