import { assign, setup } from 'xstate';
import { type ClockSet, moved } from '../clock-set.ts';
import { effect } from '../effect.ts';

/** Times are milliseconds. */
export interface HeartbeatSettings {
  /** The push monitor that expects the beats. */
  readonly monitor: string;
  /** The longest time without a beat. */
  readonly idleMs: number;
  /** Events within this time share one beat. */
  readonly batchMs: number;
  /** Until a beat that did not arrive is sent again. */
  readonly retryMs: number;
  /** The longest time between two recorded beats, where those without events are sent outside, and only one that fails is reported. */
  readonly reportMs?: number;
}

export interface HeartbeatContext extends HeartbeatSettings {
  /** Events since the last beat was sent. */
  readonly heard: number;
  readonly deliveredAt?: number | undefined;
  /** Why the last beat did not arrive, and how many beats in a row did not. */
  readonly fault?: string | undefined;
  readonly failures: number;
}

export type HeartbeatEvent =
  /** The runtime starts. */
  | { type: 'START'; settings: HeartbeatSettings }
  | { type: 'HEARD' }
  /** A beat is due that has to be recorded; `looks` beats were only counted before it. */
  | { type: 'DUE'; looks: number }
  /** The reconciler was paused, so no beat is sent until the next start. */
  | { type: 'STOP' }
  | ClockSet
  | { type: 'PUSHED'; at: number; status: number }
  | { type: 'PUSH_REFUSED'; at: number; status: number; msg?: string; body: string; exitStatus: number }
  | { type: 'PUSH_FAILED'; at: number; reason: string; exitStatus: number }
  | { type: 'effect.failed'; effect: string; code: string; message: string }
  | { type: 'effect.done'; effect: string }
  | { type: 'effect.lost'; effect: string };

/** Until the first beat of a run: the monitor may be starting at the same time. */
const WARM_UP_MS = 5_000;
export const heartbeatDefaults = { idleMs: 240_000, batchMs: 250, retryMs: 15_000 } as const;

const failed = {
  PUSH_REFUSED: { target: 'failing', actions: 'fail' },
  PUSH_FAILED: { target: 'failing', actions: 'fail' },
  'effect.failed': { guard: 'ofPush', target: 'failing', actions: 'fail' },
  'effect.lost': { guard: 'ofPush', target: 'failing', actions: 'fail' },
} as const;

/**
 * The beats of the reconciler (R27): one for all events of a short time, and one after a long time without events. A beat
 * that does not arrive is sent again.
 */
export const heartbeat = setup({
  types: {
    context: {} as HeartbeatContext,
    events: {} as HeartbeatEvent,
    input: {} as HeartbeatSettings | undefined,
  },
  delays: {
    warmUp: WARM_UP_MS,
    idle: ({ context }) => context.reportMs ?? context.idleMs,
    batch: ({ context }) => context.batchMs,
    retry: ({ context }) => context.retryMs,
  },
  guards: {
    hasUnsentEvents: ({ context }) => context.heard > 0,
    ofPush: ({ event }) => 'effect' in event && event.effect === 'reconciler.push_heartbeat',
  },
  actions: {
    'reconciler.push_heartbeat': effect<{ monitor: string; heard: number }>(),
    configure: assign(({ event }) =>
      event.type === 'START' && typeof event.settings === 'object' ? event.settings : {},
    ),
    countEvent: assign(({ context }) => ({ heard: context.heard + 1 })),
    /** Events from here on belong to the next beat. */
    resetCount: assign({ heard: 0 }),
    arrive: assign(({ event }) =>
      event.type === 'PUSHED' ? { deliveredAt: event.at, fault: undefined, failures: 0 } : {},
    ),
    followClock: assign(({ context, event }) =>
      event.type === 'CLOCK_SET' ? moved(context, event.byMs, 'deliveredAt') : {},
    ),
    fail: assign(({ context, event }) => ({ fault: faultOf(event), failures: context.failures + 1 })),
  },
}).createMachine({
  id: 'reconciler-heartbeat',
  context: ({ input }) => ({ monitor: '', ...heartbeatDefaults, ...input, heard: 0, failures: 0 }),
  initial: 'starting',
  on: {
    START: { target: '.starting', actions: 'configure', reenter: true },
    STOP: '.stopped',
    CLOCK_SET: { actions: 'followClock' },
  },
  states: {
    starting: { after: { warmUp: 'pushing' }, on: { HEARD: { actions: 'countEvent' } } },
    quiet: {
      after: { idle: 'pushing' },
      on: {
        HEARD: { target: 'batching', actions: 'countEvent' },
        DUE: 'pushing',
        // A beat that was sent outside did not arrive.
        PUSH_REFUSED: failed.PUSH_REFUSED,
        PUSH_FAILED: failed.PUSH_FAILED,
      },
    },
    batching: { after: { batch: 'pushing' }, on: { HEARD: { actions: 'countEvent' } } },
    pushing: {
      entry: [
        {
          type: 'reconciler.push_heartbeat',
          params: ({ context }) => ({ monitor: context.monitor, heard: context.heard }),
        },
        'resetCount',
      ],
      on: {
        HEARD: { actions: 'countEvent' },
        PUSHED: [
          { guard: 'hasUnsentEvents', target: 'batching', actions: 'arrive' },
          { target: 'quiet', actions: 'arrive' },
        ],
        ...failed,
      },
    },
    failing: { after: { retry: 'pushing' }, on: { HEARD: { actions: 'countEvent' } } },
    stopped: {},
  },
});

function faultOf(event: HeartbeatEvent): string {
  switch (event.type) {
    case 'PUSH_REFUSED':
      return `HTTP ${event.status}: ${event.msg ?? (event.body || 'an empty body')}`;
    case 'PUSH_FAILED':
      return event.reason;
    case 'effect.failed':
      return `${event.code}: ${event.message}`;
    default:
      return 'the process ended while it was sent';
  }
}
