import { type Alert, assign, effect, setup } from 'holdfast/machines';

/** What a UPS says of itself. */
export interface UpsReading {
  /** `OL` on line, `OB` on battery, `LB` battery low; several at once. */
  readonly status: string;
  /** Per cent. */
  readonly charge: number;
}

type UpsEvent =
  | { readonly type: 'START' }
  | ({ readonly type: 'READ' } & UpsReading)
  | { readonly type: 'effect.failed'; readonly effect: string; readonly message: string };

interface Context {
  readonly reading?: UpsReading;
  readonly failures: number;
}

const flags = (event: UpsEvent): readonly string[] => (event.type === 'READ' ? event.status.split(' ') : []);

/**
 * Watches one UPS: reads it every minute, more often on battery, and raises an alert when power is out for half a minute,
 * when the battery is low, and when the UPS does not answer three times in a row.
 */
export const ups = setup({
  types: { context: {} as Context, events: {} as UpsEvent },
  delays: { calm: 60_000, outage: 30_000, soon: 10_000 },
  actions: {
    'ups.read': effect(),
    'alerts.raise': effect<Alert>(),
    save: assign(({ event }) =>
      event.type === 'READ' ? { reading: { status: event.status, charge: event.charge }, failures: 0 } : {},
    ),
    countFailure: assign({ failures: ({ context }) => context.failures + 1 }),
  },
  guards: {
    onBattery: ({ event }) => flags(event).includes('OB'),
    isLow: ({ event }) => flags(event).includes('LB'),
    isThirdFailure: ({ context }) => context.failures === 2,
  },
}).createMachine({
  id: 'ups',
  context: { failures: 0 },
  initial: 'unread',
  states: {
    unread: { on: { START: 'onLine' } },
    onLine: {
      entry: 'ups.read',
      after: { calm: { target: 'onLine', reenter: true } },
      on: { READ: [{ guard: 'onBattery', target: 'onBattery', actions: 'save' }, { actions: 'save' }] },
    },
    /** A dip of a few seconds wakes nobody. */
    onBattery: {
      after: { outage: 'outage' },
      initial: 'waiting',
      states: { waiting: { after: { soon: { target: 'waiting', reenter: true } }, entry: 'ups.read' } },
      on: {
        READ: [
          { guard: 'isLow', target: 'low', actions: 'save' },
          { guard: 'onBattery', actions: 'save' },
          { target: 'onLine', actions: 'save' },
        ],
      },
    },
    outage: {
      entry: alert('firing', 'critical', 'The power is out; the UPS feeds from its battery.'),
      initial: 'waiting',
      states: { waiting: { after: { soon: { target: 'waiting', reenter: true } }, entry: 'ups.read' } },
      on: {
        READ: [
          { guard: 'isLow', target: 'low', actions: 'save' },
          { guard: 'onBattery', actions: 'save' },
          { target: 'onLine', actions: ['save', alert('resolved', 'info', 'The power is back.')] },
        ],
      },
    },
    low: {
      entry: alert(
        'firing',
        'critical',
        'The battery of the UPS is low: what it feeds will lose power soon.',
      ),
      initial: 'waiting',
      states: { waiting: { after: { soon: { target: 'waiting', reenter: true } }, entry: 'ups.read' } },
      on: {
        READ: [
          { guard: 'onBattery', actions: 'save' },
          { target: 'onLine', actions: ['save', alert('resolved', 'info', 'The power is back.')] },
        ],
      },
    },
  },
  on: {
    'effect.failed': [
      {
        guard: 'isThirdFailure',
        actions: ['countFailure', alert('firing', 'warning', 'The UPS does not answer.')],
      },
      { actions: 'countFailure' },
    ],
  },
});

function alert(state: 'firing' | 'resolved', severity: Alert['severity'], text: string) {
  return {
    type: 'alerts.raise',
    params: { name: 'ups.power', severity, text, labels: { state } } satisfies Alert,
  } as const;
}
