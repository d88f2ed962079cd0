import { setup } from 'xstate';
import { ALERT_RAISE, type AlertRaised } from '../../contracts/alerts.ts';

export interface CertificateEvent {
  readonly type: 'JUDGED';
  /** The surface that serves it. */
  readonly surface: string;
  readonly state: 'ok' | 'warn' | 'fail';
  /** For a person. */
  readonly text: string;
}

type Args = { readonly event: CertificateEvent };

/** Two conditions, because one that becomes worse is notified anew. */
const ENDS_SOON = 'certificate.ends_soon';
const FAILS = 'certificate.fails';

const alert = (
  name: string,
  severity: AlertRaised['severity'],
  state: 'firing' | 'resolved',
  textOf: (event: CertificateEvent) => string,
) =>
  ({
    type: ALERT_RAISE,
    params: ({ event }: Args): AlertRaised => ({
      ...{ name, severity, text: textOf(event) },
      labels: { surface: event.surface, state },
    }),
  }) as const;

const warned = alert(
  ENDS_SOON,
  'warning',
  'firing',
  ({ surface, text }) => `The certificate of ${surface} ends soon: ${text}.`,
);
const failed = alert(
  FAILS,
  'critical',
  'firing',
  ({ surface, text }) => `The certificate of ${surface} cannot be relied upon: ${text}.`,
);
const isGood = ({ surface, text }: CertificateEvent) => `The certificate of ${surface} is good: ${text}.`;
const warningOver = alert(ENDS_SOON, 'info', 'resolved', isGood);
const failureOver = alert(
  FAILS,
  'info',
  'resolved',
  ({ surface, text }) => `The certificate of ${surface} can be used again: ${text}.`,
);

/** Whether the certificate of one surface can be relied upon; an alert when that changes. */
export const certificate = setup({
  types: {} as { context: Record<string, never>; events: CertificateEvent },
  guards: {
    isOk: ({ event }) => event.state === 'ok',
    isWarned: ({ event }) => event.state === 'warn',
  },
  actions: { [ALERT_RAISE]: (_: unknown, _alert: AlertRaised) => {} },
}).createMachine({
  id: 'certificate',
  context: {},
  initial: 'good',
  states: {
    good: {
      on: {
        JUDGED: [
          { guard: 'isOk' },
          { guard: 'isWarned', target: 'warned', actions: warned },
          { target: 'failed', actions: failed },
        ],
      },
    },
    warned: {
      on: {
        JUDGED: [
          { guard: 'isOk', target: 'good', actions: warningOver },
          { guard: 'isWarned' },
          { target: 'failed', actions: [failed, warningReplaced()] },
        ],
      },
    },
    failed: {
      on: {
        JUDGED: [
          { guard: 'isOk', target: 'good', actions: failureOver },
          { guard: 'isWarned', target: 'warned', actions: [warned, failureOver] },
          {},
        ],
      },
    },
  },
});

/** The warning is over, because what it warned of has come. */
function warningReplaced() {
  return alert(
    ENDS_SOON,
    'info',
    'resolved',
    ({ surface, text }) => `The certificate of ${surface} does not only end soon any more: ${text}.`,
  );
}
