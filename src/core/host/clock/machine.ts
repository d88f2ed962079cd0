import { assign, setup } from 'xstate';
import { ALERT_RAISE, type AlertRaised } from '../../contracts/alerts.ts';
import { defineActor } from '../../kernel/actors/definition.ts';
import { type ClockJump, JUMP_MS } from '../../kernel/clock-jumps.ts';
import { CLOCK } from '../../kernel/log/record.ts';
import { type ClockContext, describeClock, jumpText } from './records.ts';

export type ClockEvent =
  | ({ readonly type: 'JUMPED'; readonly whileStopped: boolean } & ClockJump)
  /** The plugins run, so that an alert about a jump before the start reaches a person. */
  | { readonly type: 'ANNOUNCE' };

interface Args {
  readonly context: ClockContext;
  readonly event: ClockEvent;
}

/** So many jumps are kept; older ones become one. */
const KEPT = 50;
/** Who leaves a clock as it is for a day means it; milliseconds. */
const ACCEPTED_MS = 86_400_000;

function jumped({ context, event }: Args): Partial<ClockContext> {
  if (event.type !== CLOCK.event) return {};
  const { byMs, after, whileStopped } = event;
  const jumps = [...context.jumps, { after, byMs }];
  const [first, second, ...rest] = jumps;
  const isFull = jumps.length > KEPT && first && second;
  const aheadMs = context.aheadMs + byMs;
  return {
    jumps: isFull ? [{ after: second.after, byMs: first.byMs + second.byMs }, ...rest] : jumps,
    totalMs: context.totalMs + byMs,
    aheadMs: Math.abs(aheadMs) <= JUMP_MS ? 0 : aheadMs,
    whileStopped,
  };
}

const raise = {
  type: ALERT_RAISE,
  params: ({ context }: Args): AlertRaised => ({
    name: 'clock.jumped',
    severity: 'warning',
    text: `${jumpText(context)}. Timers go on with the time that really passed; look at the time service of the machine.`,
    labels: { state: 'firing' },
  }),
} as const;

const resolveAs = (text: string) =>
  ({
    type: ALERT_RAISE,
    params: (): AlertRaised => ({
      name: 'clock.jumped',
      severity: 'info',
      text,
      labels: { state: 'resolved' },
    }),
  }) as const;

const settled = resolveAs('The clock is where it was before it was set.');
const accepted = resolveAs('The clock has gone on for a day as it was set: it is taken as right.');

/**
 * How the wall clock was set. A jump is open until the clock is set back to where it would be, or has gone on for a day; the
 * jumps stay, so that the time that really passed between two records can be computed.
 */
export const clockMachine = setup({
  types: {} as { context: ClockContext; events: ClockEvent },
  guards: {
    heals: ({ context, event }: Args) => jumped({ context, event }).aheadMs === 0,
    isWhileStopped: ({ event }) => event.type === CLOCK.event && event.whileStopped,
    wasAnnounced: ({ context }) => context.announced,
  },
  actions: {
    [ALERT_RAISE]: (_: unknown, _alert: AlertRaised) => {},
    jump: assign(jumped),
    announce: assign({ announced: true }),
    close: assign({ aheadMs: 0, announced: false }),
  },
  delays: { accepted: ACCEPTED_MS },
}).createMachine({
  id: 'clock',
  context: { jumps: [], totalMs: 0, aheadMs: 0, whileStopped: false, announced: false },
  initial: 'right',
  states: {
    right: {
      on: {
        JUMPED: [
          { guard: 'isWhileStopped', target: 'jumped', actions: 'jump' },
          { target: 'jumped', actions: ['jump', 'announce', raise] },
        ],
      },
    },
    jumped: {
      after: {
        accepted: [
          { guard: 'wasAnnounced', target: 'right', actions: [accepted, 'close'] },
          { target: 'right', actions: 'close' },
        ],
      },
      on: {
        ANNOUNCE: { actions: ['announce', raise] },
        JUMPED: [
          { guard: 'heals', target: 'right', actions: ['jump', settled, 'close'] },
          { guard: 'isWhileStopped', target: 'jumped', reenter: true, actions: 'jump' },
          { target: 'jumped', reenter: true, actions: ['jump', 'announce', raise] },
        ],
      },
    },
  },
});

/** Core's own: every instance remembers how its clock was set. */
export const clockActor = defineActor({
  type: CLOCK.type,
  machine: clockMachine,
  version: 1,
  describe: describeClock,
});
