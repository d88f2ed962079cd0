import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';
import {
  droppedSince,
  gaveUp,
  jitterOf,
  linkOf,
  linkPause,
  ncidOf,
  notApplied,
  pauseAfter,
  publishedAt,
  readAt,
  readingOf,
  reasonOf,
  recovery,
  refusedByName,
  vanished,
  writeRefused,
} from './leg-outcomes.ts';
import type { LegContext, LegEvent, LegFault, LegRecovered, LegSettings, ReadLeg } from './leg-shapes.ts';

/** The default settings of a leg. */
export const legDefaults = {
  settleMs: 25,
  secondLookMs: 1_000,
  retryMs: 50,
  maxTries: 5,
  waitMs: 5_000,
  backOffMs: 5_000,
  backOffLimitMs: 60_000,
  alertAfterMs: 60_000,
  linkSettleMs: 10_000,
  remedy: 'alert',
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
    linkSettle: ({ context }) => context.linkSettleMs,
    linkPause: ({ context }) => linkPause(context),
  },
  guards: {
    mayExtend: ({ context }) => context.events < MAX_EXTENSIONS,
    present: ({ context, event }) => event.type === 'LEG_READ' && event.addresses.includes(context.address),
    recovered: ({ context, event }) =>
      event.type === 'LEG_READ' &&
      event.addresses.includes(context.address) &&
      (context.missing === true || context.alerted !== undefined),
    droppedSince: ({ context, event }) => droppedSince(context, event),
    // An event announced that save, so the saves of others bound how often this leg writes.
    droppedByAnnouncedSave: ({ context, event }) => context.due === 'reading' && droppedSince(context, event),
    isField: ({ context }) => context.keep !== undefined,
    observes: ({ context }) => context.observes === true,
    observesOn: ({ context }) => context.observes === true && context.missing === true,
    readingDue: ({ context }) => context.due === 'reading',
    secondLookDue: ({ context }) => context.due === 'secondLook',
    exhausted: ({ context }) => context.tries >= context.maxTries,
    exhaustedAgain: ({ context }) => context.tries >= context.maxTries && context.alerted === 'gave_up',
    alerted: ({ context }, fault: LegFault) => context.alerted === fault,
    refusedForLong: ({ context, event }) =>
      context.alerted !== 'write_refused' &&
      (readAt(event) ?? 0) - (context.missingSince ?? Number.POSITIVE_INFINITY) >= context.alertAfterMs,
    // A failed apply publishes too and saves nothing: another write to the same config would fail in the same way.
    heldBack: ({ context: { refusal }, event }) =>
      event.type === 'LEG_READ' && event.ncid === refusal?.ncid && event.at < refusal.retryAt,
    linkPresent: ({ event }) => event.type === 'LINK_READ' && event.present,
    linkRecovered: ({ context, event }) =>
      event.type === 'LINK_READ' && event.present && context.linkAlerted === true,
    linkOverdue: ({ context: { link, linkSettleMs }, event }) =>
      event.type === 'LINK_READ' &&
      !event.present &&
      link?.state === 'missing' &&
      event.at - link.since >= linkSettleMs,
    linkAlerted: ({ context }) => context.linkAlerted === true,
    mayReapply: ({ context }) => context.remedy === 'reapply' && context.observes !== true,
    // Events `effect.failed` and `effect.lost` come from every effect; only these three effects call the router.
    ofRead: ({ event }) => 'effect' in event && event.effect === 'reconciler.read_leg',
    ofLink: ({ event }) => 'effect' in event && event.effect === 'reconciler.read_link',
    ofAdd: ({ event }) => 'effect' in event && event.effect === 'reconciler.add_address',
  },
  actions: {
    'reconciler.read_leg': effect<ReadLeg>(),
    'reconciler.add_address': effect<ReadLeg & { address: string; ncid: string }>(),
    'reconciler.would_add': effect<Pick<LegSettings, 'intf' | 'label' | 'address'>>(),
    'reconciler.leg_recovered': effect<LegRecovered>(),
    'reconciler.read_link': effect<{ intf: string; address: string }>(),
    'reconciler.link_recovered': effect<{ intf: string; label: string; address: string }>(),
    'reconciler.request_reapply': effect<{ intf: string }>(),
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
    /** Another address is another question: nothing is known of it. */
    configure: assign(({ event }) =>
      event.type === 'CONFIGURE'
        ? { ...event.leg, failures: 0, refusal: undefined, link: undefined, linkLooks: 0 }
        : {},
    ),
    /** A router that was checked anew, or asked about by a person, gets the next write at once. */
    forgetRefusal: assign({ refusal: undefined, failures: 0 }),
    notePresent: assign(({ context, event }) => ({
      tries: 0,
      healed: context.healed + (context.missing && context.observes !== true ? 1 : 0),
      failures: 0,
      eventAt: context.missing ? undefined : context.eventAt,
      lastNcid: ncidOf(event) ?? context.lastNcid,
      missing: undefined,
      missingSince: undefined,
      trouble: undefined,
      refusal: undefined,
      refusedName: undefined,
      alerted: undefined,
      lastError: undefined,
    })),
    markMissing: assign(({ context, event }) => ({
      missing: true as const,
      missingSince: context.missingSince ?? readAt(event),
      lastNcid: ncidOf(event) ?? context.lastNcid,
      refusedName: undefined,
      link: undefined,
      linkLooks: 0,
    })),
    /** The config was read, so the router can be reached. */
    reached: assign(({ context }) =>
      context.trouble?.kind === 'unreachable' ? { trouble: undefined, failures: 0 } : {},
    ),
    loseRouter: assign(({ context, event }) => {
      const { trouble } = context;
      if (trouble?.kind === 'unreachable') return {};
      const since = readAt(event);
      return { trouble: { kind: 'unreachable' as const, ...(since !== undefined && { since }) } };
    }),
    /** The router was written to, and the reading shows that it did not take the address. */
    markRefused: assign(({ context, event }) => {
      const at = readAt(event);
      const ncid = ncidOf(event);
      const since = context.trouble?.since ?? at;
      return {
        trouble: { kind: 'refused' as const, ...(since !== undefined && { since }) },
        ...(at !== undefined && ncid !== undefined && { refusal: { ncid, retryAt: at + context.pauseMs } }),
      };
    }),
    /** The event of the save is on its way, or the router changes its ncid by itself. */
    pauseShortly: assign(({ context: { retryMs, jitter } }) => ({
      pauseMs: Math.round(retryMs * (0.5 + jitter)),
    })),
    shortenPause: assign(({ context: { refusal, pauseMs }, event }) => {
      const at = readAt(event);
      return { pauseMs: refusal && at !== undefined ? refusal.retryAt - at : pauseMs };
    }),
    refuseName: assign(({ context, event }) => ({
      lastNcid: ncidOf(event) ?? context.lastNcid,
      refusedName: event.type === 'LEG_REFUSED' ? event.name : context.refusedName,
      link: undefined,
      linkLooks: 0,
    })),
    noteLink: assign({ link: { state: 'present' as const }, linkLooks: 0, linkAlerted: undefined }),
    missLink: assign(({ context: { link, linkLooks }, event }) =>
      event.type === 'LINK_READ'
        ? {
            link: link?.state === 'missing' ? link : { state: 'missing' as const, since: event.at },
            linkLooks: linkLooks + 1,
          }
        : {},
    ),
    doubtLink: assign(({ event }) => ({
      link: { state: 'unknown' as const, reason: reasonOf(event) ?? 'the router did not say' },
      linkLooks: 0,
    })),
    markLinkAlerted: assign({ linkAlerted: true as const }),
    /** The router accepted a write, so an earlier error is obsolete. */
    noteAdded: assign(({ event }) => ({ lastError: undefined, addedNcid: ncidOf(event) })),
    rememberError: assign(({ context, event }) => ({
      addedNcid: undefined,
      lastError: reasonOf(event),
      jitter: jitterOf(event) ?? context.jitter,
    })),
    fail: assign(({ context, event }) => ({
      tries: context.tries + (event.type === 'CONFLICT' ? 1 : 0),
      failures: context.failures + (event.type === 'CONFLICT' ? 0 : 1),
      conflicts: context.conflicts + (event.type === 'CONFLICT' ? 1 : 0),
      lastError: (event.type === 'LEG_READ' ? context.lastError : undefined) ?? reasonOf(event),
      jitter: jitterOf(event) ?? context.jitter,
      pauseMs: pauseAfter(event, context),
    })),
    markAlerted: assign((_, fault: LegFault) => ({ alerted: fault })),
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

    /** The config has the address. Does the link have it? */
    lookingAtLink: {
      entry: {
        type: 'reconciler.read_link',
        params: ({ context: { intf, address } }) => ({ intf, address }),
      },
      on: {
        LINK_READ: [
          {
            guard: 'linkRecovered',
            target: 'whole',
            actions: [{ type: 'reconciler.link_recovered', params: linkOf }, 'noteLink'],
          },
          { guard: 'linkPresent', target: 'whole', actions: 'noteLink' },
          { guard: 'linkOverdue', target: 'afterNotApplied', actions: 'missLink' },
          { target: 'settlingLink', actions: 'missLink' },
        ],
        LINK_UNKNOWN: { target: 'whole', actions: 'doubtLink' },
        'effect.failed': { guard: 'ofLink', target: 'whole', actions: 'doubtLink' },
        'effect.lost': { guard: 'ofLink', target: 'whole', actions: 'doubtLink' },
      },
    },

    /** An apply takes seconds, and the config may be served before its end. The config may also have changed unnoticed. */
    settlingLink: {
      after: { linkSettle: 'reading' },
    },

    /** Choice: is a person to be alerted, and the router to apply its config again? */
    afterNotApplied: {
      always: [
        { guard: 'linkAlerted', target: 'notApplied' },
        {
          guard: 'mayReapply',
          target: 'notApplied',
          actions: [
            { type: 'alerts.raise', params: ({ context }) => notApplied(context) },
            'markLinkAlerted',
            { type: 'reconciler.request_reapply', params: ({ context: { intf } }) => ({ intf }) },
          ],
        },
        {
          target: 'notApplied',
          actions: [
            { type: 'alerts.raise', params: ({ context }) => notApplied(context) },
            'markLinkAlerted',
          ],
        },
      ],
    },

    /** Configured, not applied: the config has the address and the link does not. */
    notApplied: {
      entry: 'endRound',
      after: { linkPause: 'reading' },
    },

    /** The config has the address; the context says what is known of the link. */
    whole: {
      entry: 'endRound',
      after: { resync: { target: 'reading', actions: 'beginRound' } },
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

    /** Choice: the config gives the leg a name that is never touched; has a person been alerted? */
    afterRefusedName: {
      always: [
        { guard: 'readingDue', target: 'settling', actions: 'beginNextRound' },
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
