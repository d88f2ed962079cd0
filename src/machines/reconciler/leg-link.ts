/**
 * Whether the link has the address that the config has. A daemon may answer 200 to an address that its kernel refused, so
 * the link is looked at too: an address that is missing there for longer than it takes to settle is configured, and not
 * applied.
 */
import { assign } from 'xstate';
import { type Alert, effect } from '../effect.ts';
import { labelsOf, reasonOf, slowlyDoubled } from './leg-outcomes.ts';
import { legSetup } from './leg-setup.ts';
import type { LegContext } from './leg-shapes.ts';

/** The pause between two looks at a link that lacks its address, milliseconds. */
function linkPause({ linkSettleMs, backOffLimitMs, linkLooks }: LegContext): number {
  return Math.max(linkSettleMs, Math.min(slowlyDoubled(linkSettleMs, linkLooks), backOffLimitMs));
}

function notApplied(context: LegContext): Alert {
  const { intf, label, address, remedy } = context;
  const saves = `\`holdfast drill app-save --leg ${intf}\` saves this network without its address, which Holdfast adds again`;
  const action =
    remedy === 'reapply'
      ? 'Holdfast has the router apply its current config again, at most once an hour. ' +
        `If it skips what it believes to be applied, ${saves}.`
      : `Have the router apply this network again: ${saves}. ` +
        'An apply of the current config may skip what the router believes to be applied.';
  return {
    name: 'reconciler.leg.not_applied',
    severity: 'critical',
    text: `${label} (${intf}) has ${address} in the config and not on the link: its kernel lacks it. ${action}`,
    labels: labelsOf(context),
  };
}

/** `legSetup` with what the machine decides by and notes about the link. */
export const legWithLink = legSetup.extend({
  delays: {
    linkSettle: ({ context }) => context.linkSettleMs,
    linkPause: ({ context }) => linkPause(context),
  },
  guards: {
    linkPresent: ({ event }) => event.type === 'LINK_READ' && event.present,
    linkRecovered: ({ context, event }) =>
      event.type === 'LINK_READ' && event.present && context.linkAlerted === true,
    linkOverdue: ({ context: { link, linkSettleMs }, event }) =>
      event.type === 'LINK_READ' &&
      !event.present &&
      link?.state === 'missing' &&
      (event.at - link.since >= linkSettleMs || event.at < link.since), // the clock was set back
    linkAlerted: ({ context }) => context.linkAlerted === true,
    mayReapply: ({ context }) => context.remedy === 'reapply' && context.observes !== true,
    ofLink: ({ event }) => 'effect' in event && event.effect === 'reconciler.read_link',
  },
  actions: {
    'reconciler.read_link': effect<{ intf: string; address: string }>(),
    'reconciler.link_recovered': effect<{ intf: string; label: string; address: string }>(),
    'reconciler.request_reapply': effect<{ intf: string }>(),
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
  },
});

/** The states between a config that has the address and a leg that is whole. */
export const linkStates = {
  /** The config has the address. Does the link have it? */
  lookingAtLink: legWithLink.createStateConfig({
    entry: {
      type: 'reconciler.read_link',
      params: ({ context: { intf, address } }) => ({ intf, address }),
    },
    on: {
      LINK_READ: [
        {
          guard: 'linkRecovered',
          target: 'whole',
          actions: [
            { type: 'reconciler.link_recovered', params: ({ context }) => labelsOf(context) },
            'noteLink',
          ],
        },
        { guard: 'linkPresent', target: 'whole', actions: 'noteLink' },
        { guard: 'linkOverdue', target: 'afterNotApplied', actions: 'missLink' },
        { target: 'settlingLink', actions: 'missLink' },
      ],
      LINK_UNKNOWN: { target: 'whole', actions: 'doubtLink' },
      'effect.failed': { guard: 'ofLink', target: 'whole', actions: 'doubtLink' },
      'effect.lost': { guard: 'ofLink', target: 'whole', actions: 'doubtLink' },
    },
  }),

  /** An apply takes seconds, and the config may be served before its end. The config may also have changed unnoticed. */
  settlingLink: legWithLink.createStateConfig({
    after: { linkSettle: 'reading' },
  }),

  /** Choice: is a person to be alerted, and the router to apply its config again? */
  afterNotApplied: legWithLink.createStateConfig({
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
        actions: [{ type: 'alerts.raise', params: ({ context }) => notApplied(context) }, 'markLinkAlerted'],
      },
    ],
  }),

  /** Configured, not applied: the config has the address and the link does not. */
  notApplied: legWithLink.createStateConfig({
    entry: 'endRound',
    after: { linkPause: 'reading' },
  }),
};
