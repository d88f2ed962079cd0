import { assign } from 'xstate';
import { legWithLink, linkStates } from './leg-link.ts';
import { gaveUp, readingOf, recovery, refusedByName, vanished, writeRefused } from './leg-outcomes.ts';
import { legDefaults } from './leg-shapes.ts';

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
  LEG_ABSENT: { target: 'afterVanished', actions: ['reached', 'markMissing'] },
  LEG_REFUSED: { target: 'afterRefusedName', actions: ['reached', 'refuseName'] },
  UNREACHABLE: { target: 'unreachable', actions: ['fail', 'loseRouter'] },
  'effect.failed': { guard: 'ofRead', target: 'unreachable', actions: ['fail', 'loseRouter'] },
  'effect.lost': { guard: 'ofRead', target: 'unreachable', actions: ['fail', 'loseRouter'] },
} as const;

/**
 * Keeps the static address on one leg of the router (R24, R25). After an event it reads the config, adds a missing address
 * to exactly the config that it read, and counts the address as present only when a later reading shows it. Then it looks
 * whether the link has the address too, because a daemon may answer 200 to an address that its kernel refused. Each leg
 * has one actor; the ncid decides races between them, as between all writers.
 *
 * A kept field of the config is held in the same way, by the same rules; it has no link.
 *
 * Only lost races are limited in number. A router that cannot be read or does not take the write is tried for ever.
 */
export const leg = legWithLink.createMachine({
  id: 'reconciler-leg',
  context: ({ input }) => ({
    intf: '',
    label: '',
    address: '',
    ...legDefaults,
    ...input,
    events: 0,
    tries: 0,
    failures: 0,
    jitter: 0,
    pauseMs: 0,
    linkLooks: 0,
    healed: 0,
    conflicts: 0,
  }),
  initial: 'unread',
  // Default transitions, for states without their own.
  on: {
    CHANGED: { target: '.settling', actions: 'beginRound' },
    RESYNC: { target: '.reading', actions: ['beginRound', 'forgetRefusal', 'requireSecondLook'] },
    CONFIGURE: { target: '.reading', actions: ['configure', 'beginRound', 'requireSecondLook'] },
    RELEASE: { target: '.released', actions: 'endRound' },
    CLOCK_SET: { actions: 'followClock' },
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
      entry: { type: 'reconciler.read_leg', params: readingOf },
      on: {
        LEG_READ: [
          recovered,
          { guard: 'present', target: 'afterPresent', actions: 'notePresent' },
          { guard: 'observesOn', target: 'observing', actions: ['reached', 'markMissing'] },
          {
            guard: 'observes',
            target: 'observing',
            actions: [
              {
                type: 'reconciler.would_add',
                params: ({ context: { intf, label, address } }) => ({ intf, label, address }),
              },
              'reached',
              'markMissing',
            ],
          },
          { guard: 'heldBack', target: 'refused', actions: ['reached', 'markMissing', 'shortenPause'] },
          { target: 'adding', actions: ['reached', 'markMissing'] },
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
        params: ({ context }) => ({
          ...readingOf({ context }),
          address: context.address,
          ncid: context.lastNcid ?? '',
        }),
      },
      on: {
        ADDED: { target: 'verifying', actions: 'noteAdded' },
        CONFLICT: { target: 'afterFailed', actions: 'fail' },
        PENDING: 'waiting',
        LEG_REFUSED: { target: 'afterRefusedName', actions: 'refuseName' },
        // None of these proves that the write was not applied, so the config is read again.
        REFUSED: { target: 'verifying', actions: 'rememberError' },
        UNKNOWN: { target: 'verifying', actions: 'rememberError' },
        'effect.failed': { guard: 'ofAdd', target: 'verifying', actions: 'rememberError' },
        'effect.lost': { guard: 'ofAdd', target: 'verifying', actions: 'rememberError' },
        ...duringCall,
      },
    },

    verifying: {
      entry: { type: 'reconciler.read_leg', params: readingOf },
      on: {
        LEG_READ: [
          recovered,
          {
            guard: 'droppedByAnnouncedSave',
            target: 'adding',
            actions: ['reached', 'beginNextRound', 'markMissing'],
          },
          {
            guard: 'droppedSince',
            target: 'backingOff',
            actions: ['reached', 'markMissing', 'pauseShortly'],
          },
          { target: 'afterRefused', actions: ['reached', 'markMissing', 'fail', 'markRefused'] },
        ],
        ...unread,
        ...duringCall,
      },
    },

    /** Choice: the address is there; is another reading due? */
    afterPresent: {
      always: [
        { guard: 'readingDue', target: 'settling', actions: 'beginNextRound' },
        { guard: 'secondLookDue', target: 'checking' },
        { guard: 'isField', target: 'whole' },
        { target: 'lookingAtLink' },
      ],
    },

    /** The reading may be older than the save that the event announced, so the leg is read a second time. */
    checking: {
      after: { secondLook: { target: 'reading', actions: 'clearDue' } },
    },

    ...linkStates,

    /** The config has the address; the context says what is known of the link. */
    whole: {
      entry: 'endRound',
      after: { resync: { target: 'reading', actions: 'beginRound' } },
      on: {
        LOOKED: [
          { guard: 'looksDiffer', target: 'reading', actions: 'beginRound' },
          { target: 'whole', reenter: true },
        ],
      },
    },

    /** Choice after a lost race: try again, or alert a person? */
    afterFailed: {
      always: [
        { guard: 'exhaustedAgain', target: 'gaveUp' },
        {
          guard: 'exhausted',
          target: 'gaveUp',
          actions: [
            { type: 'alerts.raise', params: ({ context }) => gaveUp(context) },
            { type: 'markAlerted', params: 'gave_up' },
          ],
        },
        { target: 'backingOff' },
      ],
    },

    /** Choice: how long has the router not taken the write? */
    afterRefused: {
      always: [
        {
          guard: 'refusedForLong',
          target: 'refused',
          actions: [
            { type: 'alerts.raise', params: ({ context }) => writeRefused(context) },
            { type: 'markAlerted', params: 'write_refused' },
          ],
        },
        { target: 'refused' },
      ],
    },

    /** The router answers, and does not take the write. */
    refused: {
      after: { backOff: { target: 'reading', actions: assign({ refusal: undefined }) } },
    },

    /** The router gives no usable answer. Whoever provides its API alerts a person, and says when it answers again. */
    unreachable: {
      after: { backOff: 'reading' },
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
      // Somebody is saving, and a save that touches no interface publishes no event that would end the pause.
      after: { wait: { target: 'reading', actions: ['beginRound', 'requireSecondLook'] } },
    },

    /** Choice: the config has no such interface; is that certain, and has a person been alerted? */
    afterVanished: {
      always: [
        { guard: 'readingDue', target: 'settling', actions: 'beginNextRound' },
        { guard: 'secondLookDue', target: 'checking' },
        { guard: { type: 'alerted', params: 'leg_absent' }, target: 'absent' },
        {
          target: 'absent',
          actions: [
            { type: 'alerts.raise', params: ({ context }) => vanished(context) },
            { type: 'markAlerted', params: 'leg_absent' },
          ],
        },
      ],
    },

    /** Choice: the config gives the leg a name that is never touched; is that certain, and has a person been alerted? */
    afterRefusedName: {
      always: [
        { guard: 'readingDue', target: 'settling', actions: 'beginNextRound' },
        { guard: 'secondLookDue', target: 'checking' },
        { guard: { type: 'alerted', params: 'refused_by_name' }, target: 'refusedByName' },
        {
          target: 'refusedByName',
          actions: [
            {
              type: 'alerts.raise',
              params: ({ context }) => refusedByName(context, context.refusedName ?? ''),
            },
            { type: 'markAlerted', params: 'refused_by_name' },
          ],
        },
      ],
    },

    /** Guest and Telework are networks of other people, whatever the name of their interface (R24). */
    refusedByName: {
      entry: 'endRound',
      after: { resync: { target: 'reading', actions: 'beginRound' } },
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
