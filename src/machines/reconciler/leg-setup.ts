import { assign, setup } from 'xstate';
import { moved } from '../clock-set.ts';
import { type Alert, effect } from '../effect.ts';
import { droppedSince, jitterOf, ncidOf, pauseAfter, publishedAt, readAt, reasonOf } from './leg-outcomes.ts';
import type { LegContext, LegEvent, LegFault, LegRecovered, LegSettings, ReadLeg } from './leg-shapes.ts';

/** Events that may extend the quiet time; without a limit an endless burst would keep the leg from being read. */
const MAX_EXTENSIONS = 20;

/**
 * What the machine of a leg decides by and what it notes, about the config. `leg-link.ts` adds the same about the link,
 * and `leg.ts` the states.
 */
export const legSetup = setup({
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
    resync: ({ context: { missing, refusedName, wholeMs, resyncMs } }) =>
      missing || refusedName !== undefined ? resyncMs : (wholeMs ?? resyncMs),
  },
  guards: {
    mayExtend: ({ context }) => context.events < MAX_EXTENSIONS,
    looksDiffer: ({ event }) => event.type === 'LOOKED' && event.differs !== undefined,
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
    // Events `effect.failed` and `effect.lost` come from every effect; only these three effects call the router.
    ofRead: ({ event }) => 'effect' in event && event.effect === 'reconciler.read_leg',
    ofAdd: ({ event }) => 'effect' in event && event.effect === 'reconciler.add_address',
  },
  actions: {
    'reconciler.read_leg': effect<ReadLeg>(),
    'reconciler.add_address': effect<ReadLeg & { address: string; ncid: string }>(),
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
      if (!refusal || at === undefined) return { pauseMs };
      // Never longer than the pause that was to be made: the clock may have been set back.
      return { pauseMs: Math.min(refusal.retryAt - at, pauseMs) };
    }),
    refuseName: assign(({ context, event }) => ({
      lastNcid: ncidOf(event) ?? context.lastNcid,
      refusedName: event.type === 'LEG_REFUSED' ? event.name : context.refusedName,
      link: undefined,
      linkLooks: 0,
    })),
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
    followClock: assign(({ context, event }) => {
      if (event.type !== 'CLOCK_SET') return {};
      const { trouble, refusal, link } = context;
      const { byMs } = event;
      return {
        ...moved(context, byMs, 'missingSince'),
        ...(trouble && { trouble: { ...trouble, ...moved(trouble, byMs, 'since') } }),
        ...(refusal && { refusal: { ...refusal, ...moved(refusal, byMs, 'retryAt') } }),
        ...(link?.state === 'missing' && { link: { ...link, ...moved(link, byMs, 'since') } }),
      };
    }),
    markAlerted: assign((_, fault: LegFault) => ({ alerted: fault })),
  },
});
