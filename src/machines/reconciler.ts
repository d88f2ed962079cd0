import { assign, setup } from 'xstate';
import { effect } from './effect.ts';

/** What a leg is held to, and how patiently. Times are milliseconds. */
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
  /** Failed tries after which a person is told. */
  readonly maxTries: number;
  /** Between two tries while somebody's transaction is pending. */
  readonly waitMs: number;
  /** Between two readings when nothing happens. */
  readonly resyncMs: number;
}

/** What is known when a leg is whole again. */
export interface LegRecovered {
  readonly intf: string;
  readonly label: string;
  readonly address: string;
  readonly ncid: string;
  /** The address had been missing; otherwise only the router could not be read. */
  readonly missing: boolean;
  /** A person had been told of the trouble. */
  readonly alerted: boolean;
  /** Failed tries before this one. */
  readonly tries: number;
  /** When the event that began the story was published (epoch ms), where it said so. */
  readonly heardAt?: number;
}

interface Alert {
  readonly name: string;
  readonly severity: 'info' | 'warning' | 'critical';
  readonly text: string;
  readonly labels: Readonly<Record<string, string>>;
}

interface LegContext extends LegSettings {
  /** What the leg still owes to an event: a reading of its own, or the second look after one. */
  readonly owes?: 'read' | 'look' | undefined;
  /** Events heard in this story. */
  readonly heard: number;
  readonly heardAt?: number | undefined;
  /** The ncid of the newest reading. */
  readonly lastNcid?: string | undefined;
  /** The address was found missing and has not been seen since. */
  readonly missing?: true | undefined;
  /** Failed tries of this story. */
  readonly tries: number;
  /** Why the last try failed. */
  readonly lastError?: string | undefined;
  /** 0 to 1, brought by the newest outcome that failed: a machine has no dice. */
  readonly jitter: number;
  /** How long the next back-off takes. */
  readonly pauseMs: number;
  /** A person has been told, and not yet that it is over. */
  readonly alerted?: true | undefined;
  /** How often a missing address came back, and how often a race for the ncid was lost; ever. */
  readonly healed: number;
  readonly conflicts: number;
}

type LegEvent =
  | { type: 'CHANGED'; channel?: string; intf?: string; ncid?: string; transID?: string; at?: number }
  | { type: 'RESYNC'; reason: string }
  | { type: 'CONFIGURE'; leg: LegSettings }
  | { type: 'RELEASE' }
  | { type: 'LEG_READ'; ncid: string; addresses: readonly string[] }
  | { type: 'LEG_ABSENT'; ncid: string }
  | { type: 'UNREACHABLE'; reason: string; jitter: number }
  | { type: 'ADDED'; ncid: string; posted: readonly string[] }
  | { type: 'CONFLICT'; jitter: number }
  | { type: 'PENDING' }
  | { type: 'REFUSED'; errors: readonly string[]; jitter: number }
  | { type: 'UNKNOWN'; reason: string; jitter: number }
  | { type: 'effect.failed'; effect: string; code: string; message: string }
  | { type: 'effect.lost'; effect: string };

/** The settings of a leg that nobody names. */
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

function reasonOf(event: LegEvent): string | undefined {
  switch (event.type) {
    case 'CONFLICT':
      return 'somebody else saved in between';
    case 'REFUSED':
      return event.errors.join('; ');
    case 'UNKNOWN':
    case 'UNREACHABLE':
      return event.reason;
    case 'effect.failed':
      return event.message;
    case 'effect.lost':
      return 'the process ended before the router answered';
    case 'LEG_READ':
      return 'a write was answered, and yet the address is not there';
    default:
      return undefined;
  }
}

const jitterOf = (event: LegEvent) => ('jitter' in event ? event.jitter : undefined);

/** A lost race is tried again soon, and apart from its rivals; a router that cannot be read needs time. */
function pauseAfter(event: LegEvent, { retryMs, waitMs, tries, jitter }: LegContext): number {
  if (event.type === 'UNREACHABLE' || event.type === 'effect.failed') return waitMs;
  return Math.round(retryMs * 2 ** tries * (0.5 + (jitterOf(event) ?? jitter)));
}

const labelsOf = ({ intf, label, address }: LegSettings) => ({ intf, label, address });

const isMissing = (context: LegContext) => context.missing === true;

function gaveUp(context: LegContext): Alert {
  const { intf, label, address, tries, lastError } = context;
  const what = isMissing(context) ? `lacks ${address}` : 'cannot be checked';
  return {
    name: 'router.reconciler.gave_up',
    severity: 'critical',
    text: `${label} (${intf}) ${what} after ${tries} tries: ${lastError}. Holdfast tries again at the next event or resync.`,
    labels: labelsOf(context),
  };
}

function vanished(context: LegContext): Alert {
  const { intf, label } = context;
  return {
    name: 'router.reconciler.leg_absent',
    severity: 'warning',
    text: `The router's config has no interface ${intf} (${label}): there is nothing to hold ${context.address} on.`,
    labels: labelsOf(context),
  };
}

function recovery(context: LegContext, ncid: string): LegRecovered {
  return {
    ...labelsOf(context),
    ncid,
    missing: isMissing(context),
    alerted: context.alerted === true,
    tries: context.tries,
    ...(context.heardAt !== undefined && { heardAt: context.heardAt }),
  };
}

/** What any state that waits for the router makes of news: it is owed a reading, once the answer is there. */
const busy = {
  CHANGED: { actions: 'hearMore' },
  RESYNC: { actions: 'hearMore' },
  CONFIGURE: { actions: ['configure', 'hearMore'] },
} as const;

/**
 * Holds one leg of the router to its static address (`router-config.md` §Reconciler decision; R24, R25): after
 * an event it reads, adds what is missing on the very config it read, and believes nothing but the next reading.
 * One actor a leg; the ncid decides races between them, as between all writers.
 */
export const reconciler = setup({
  types: {
    context: {} as LegContext,
    events: {} as LegEvent,
    input: {} as LegSettings | undefined,
  },
  delays: {
    settle: ({ context }) => context.settleMs,
    secondLook: ({ context }) => context.secondLookMs,
    backOff: ({ context }) => context.pauseMs,
    wait: ({ context }) => context.waitMs,
    resync: ({ context }) => context.resyncMs,
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
    ofRead: ({ event }) => 'effect' in event && event.effect === 'router.read_leg',
    ofAdd: ({ event }) => 'effect' in event && event.effect === 'router.add_address',
  },
  actions: {
    'router.read_leg': effect<{ intf: string }>(),
    'router.add_address': effect<{ intf: string; address: string; ncid: string }>(),
    'router.leg_recovered': effect<LegRecovered>(),
    'alert.raise': effect<Alert>(),
    /** A story begins. */
    begin: assign(({ event }) => ({
      heard: event.type === 'CHANGED' ? 1 : 0,
      tries: 0,
      heardAt: event.type === 'CHANGED' ? event.at : undefined,
    })),
    /** The story goes on: whatever is being read now may be from before this. */
    hearMore: assign(({ context }) => ({ heard: context.heard + 1, owes: 'read' as const })),
    configure: assign(({ event }) => (event.type === 'CONFIGURE' ? { ...event.leg } : {})),
    oweLook: assign({ owes: 'look' as const }),
    oweNothing: assign({ owes: undefined }),
    rest: assign({ heard: 0, heardAt: undefined }),
    found: assign(({ context, event }) => ({
      tries: 0,
      healed: context.healed + (context.missing ? 1 : 0),
      lastNcid: event.type === 'LEG_READ' ? event.ncid : context.lastNcid,
      missing: undefined,
      alerted: undefined,
      lastError: undefined,
    })),
    miss: assign(({ context, event }) => ({
      missing: true as const,
      lastNcid: event.type === 'LEG_READ' ? event.ncid : context.lastNcid,
    })),
    lose: assign(({ context, event }) => ({
      missing: true as const,
      owes: undefined,
      lastNcid: event.type === 'LEG_ABSENT' ? event.ncid : context.lastNcid,
    })),
    trust: assign({ lastError: undefined }),
    doubt: assign(({ context, event }) => ({
      lastError: reasonOf(event),
      jitter: jitterOf(event) ?? context.jitter,
    })),
    fail: assign(({ context, event }) => ({
      tries: context.tries + 1,
      conflicts: context.conflicts + (event.type === 'CONFLICT' ? 1 : 0),
      lastError: (event.type === 'LEG_READ' ? context.lastError : undefined) ?? reasonOf(event),
      jitter: jitterOf(event) ?? context.jitter,
      pauseMs: pauseAfter(event, context),
    })),
    tell: assign({ alerted: true as const }),
  },
}).createMachine({
  id: 'reconciler',
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
    healed: 0,
    conflicts: 0,
  }),
  initial: 'unread',
  // What a state makes of news unless it says otherwise below.
  on: {
    CHANGED: { target: '.settling', actions: 'begin' },
    RESYNC: { target: '.reading', actions: ['begin', 'oweLook'] },
    CONFIGURE: { target: '.reading', actions: ['configure', 'begin', 'oweLook'] },
    RELEASE: { target: '.released', actions: ['rest', 'oweNothing'] },
  },
  states: {
    /** Nothing is known yet. */
    unread: {},

    settling: {
      after: { settle: { target: 'reading', actions: 'oweLook' } },
      on: {
        CHANGED: [
          { guard: 'patient', target: 'settling', reenter: true, actions: 'hearMore' },
          { actions: 'hearMore' },
        ],
        RESYNC: { actions: 'hearMore' },
        CONFIGURE: { actions: ['configure', 'hearMore'] },
      },
    },

    reading: {
      entry: { type: 'router.read_leg', params: ({ context }) => ({ intf: context.intf }) },
      on: {
        ...busy,
        LEG_READ: [
          {
            guard: 'recovered',
            target: 'present',
            actions: [
              {
                type: 'router.leg_recovered',
                params: ({ context, event }) => recovery(context, event.ncid),
              },
              'found',
            ],
          },
          { guard: 'present', target: 'present', actions: 'found' },
          { target: 'adding', actions: 'miss' },
        ],
        LEG_ABSENT: { target: 'vanished', actions: 'lose' },
        UNREACHABLE: { target: 'failed', actions: 'fail' },
        'effect.failed': { guard: 'ofRead', target: 'failed', actions: 'fail' },
        'effect.lost': { guard: 'ofRead', target: 'failed', actions: 'fail' },
      },
    },

    adding: {
      entry: {
        type: 'router.add_address',
        params: ({ context }) => ({
          intf: context.intf,
          address: context.address,
          ncid: context.lastNcid ?? '',
        }),
      },
      on: {
        ...busy,
        ADDED: { target: 'verifying', actions: 'trust' },
        CONFLICT: { target: 'failed', actions: 'fail' },
        PENDING: 'waiting',
        // None of these proves that nothing was applied.
        REFUSED: { target: 'verifying', actions: 'doubt' },
        UNKNOWN: { target: 'verifying', actions: 'doubt' },
        'effect.failed': { guard: 'ofAdd', target: 'verifying', actions: 'doubt' },
        'effect.lost': { guard: 'ofAdd', target: 'verifying', actions: 'doubt' },
      },
    },

    verifying: {
      entry: { type: 'router.read_leg', params: ({ context }) => ({ intf: context.intf }) },
      on: {
        ...busy,
        LEG_READ: [
          {
            guard: 'recovered',
            target: 'present',
            actions: [
              {
                type: 'router.leg_recovered',
                params: ({ context, event }) => recovery(context, event.ncid),
              },
              'found',
            ],
          },
          { target: 'failed', actions: ['miss', 'fail'] },
        ],
        LEG_ABSENT: { target: 'vanished', actions: 'lose' },
        UNREACHABLE: { target: 'failed', actions: 'fail' },
        'effect.failed': { guard: 'ofRead', target: 'failed', actions: 'fail' },
        'effect.lost': { guard: 'ofRead', target: 'failed', actions: 'fail' },
      },
    },

    /** Choice: the address is there; is another reading owed? */
    present: {
      always: [
        { guard: 'owesRead', target: 'settling' },
        { guard: 'owesLook', target: 'checking' },
        { target: 'whole' },
      ],
    },

    /** Whole, but the reading may have been from before the save that the event announced. */
    checking: {
      after: { secondLook: { target: 'reading', actions: 'oweNothing' } },
    },

    whole: {
      entry: 'rest',
      after: { resync: { target: 'reading', actions: 'begin' } },
    },

    /** Choice: try again, or tell a person? */
    failed: {
      always: [
        {
          guard: 'exhaustedAgain',
          target: 'gaveUp',
        },
        {
          guard: 'exhausted',
          target: 'gaveUp',
          actions: [{ type: 'alert.raise', params: ({ context }) => gaveUp(context) }, 'tell'],
        },
        { target: 'backingOff' },
      ],
    },

    backingOff: {
      after: { backOff: 'reading' },
      // An event must not cut the back-off short, or racing writers would race the faster.
      on: { CHANGED: { actions: 'hearMore' } },
    },

    /** Somebody's transaction is pending: every plain write is refused, and no event says when it ends. */
    waiting: {
      after: { wait: 'reading' },
    },

    gaveUp: {
      entry: ['rest', 'oweNothing'],
      after: { resync: { target: 'reading', actions: 'begin' } },
    },

    /** Choice: has the absence been told? */
    vanished: {
      always: [
        { guard: 'alerted', target: 'absent' },
        {
          target: 'absent',
          actions: [{ type: 'alert.raise', params: ({ context }) => vanished(context) }, 'tell'],
        },
      ],
    },

    /** The config has no such interface; one is never made up. */
    absent: {
      entry: 'rest',
      after: { resync: { target: 'reading', actions: 'begin' } },
    },

    /** Not listed any more. */
    released: {
      on: { CHANGED: {}, RESYNC: {} },
    },
  },
});
