import {
  type ConsolePage,
  consolePages,
  type PageSection,
  type PageStatus,
} from '../../core/contracts/console.ts';
import { statesOf } from '../../core/host/history/page-states.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import { stateName } from '../../core/host/terminal.ts';
import type { ActorState } from '../../core/kernel/actors/transition.ts';
import { parseActorRef } from '../../core/kernel/ids.ts';
import { isObject } from '../../core/kernel/json.ts';
import type { AlertContext } from '../../machines/alerts/escalation.ts';
import type { OutboxContext } from '../../machines/alerts/outbox-queue.ts';
import type { Silence } from '../../machines/alerts/silences.ts';
import { escalationTable } from './escalation-steps.ts';

/** Conditions that are listed; the newest first. */
const MOST = 200;

/** Alerts, silences and receivers at a moment: all of it stands in the states of the actors. */
const page: ConsolePage = {
  name: 'alerts',
  title: 'Alerts',
  data: (moment) => {
    const alerts = statesOf(moment, 'alerts.alert');
    return [
      alertsTable(alerts),
      escalationTable(alerts.filter(isFiring).slice(0, MOST), moment),
      silencesTable(statesOf(moment, 'alerts.silences'), moment.time),
      receiversTable(statesOf(moment, 'alerts.outbox')),
    ];
  },
};

/** A condition that lasts is in a state with an inner one. */
const isFiring = ({ value }: ActorState): boolean => isObject(value);

function alertsTable(alerts: readonly ActorState[]): PageSection {
  const rows = alerts
    .map((state) => ({ state, context: state.context as Partial<AlertContext> }))
    .sort((a, b) => Number(isFiring(b.state)) - Number(isFiring(a.state)) || b.state.seq - a.state.seq)
    .slice(0, MOST)
    .map(({ state, context }) => {
      const { content, since, count = 0, informed = [], ack, record } = context;
      const isBad = isFiring(state);
      return {
        ...statusOf(isBad, content?.severity, count),
        actor: state.ref,
        ...(record !== undefined && { seq: record }),
        cells: {
          alert: parseActorRef(state.ref).key,
          state: stateName(state.value),
          since: isBad || count > 0 ? (since ?? null) : null,
          count,
          informed: informed.join(', '),
          acknowledged: ack?.by ?? null,
          text: content?.text ?? '',
        },
      };
    });
  const columns = [
    { name: 'alert', title: 'Alert' },
    { name: 'state', title: 'State' },
    { name: 'since', title: 'Since', format: 'time' },
    { name: 'count', title: 'Raised', format: 'number' },
    { name: 'informed', title: 'Who is told' },
    { name: 'acknowledged', title: 'Acknowledged by' },
    { name: 'text', title: 'What' },
  ] as const;
  return { kind: 'table', title: 'Conditions', columns, rows };
}

/** Well is what was resolved. What happened once is over, and nobody knows more of it. */
function statusOf(
  isBad: boolean,
  severity: string | undefined,
  count: number,
): { readonly status?: PageStatus } {
  if (isBad) return { status: severity === 'critical' ? 'failing' : 'degraded' };
  return count === 0 ? { status: 'ok' } : {};
}

function receiversTable(outboxes: readonly ActorState[]): PageSection {
  const rows = outboxes.map(({ ref, value, context }) => {
    const {
      queue = [],
      sent = 0,
      sentAt,
      failures = 0,
      reason,
      lost = 0,
    } = context as Partial<OutboxContext>;
    return {
      actor: ref,
      status: receiverStatus({ failures, waiting: queue.length, sentAt }),
      cells: {
        receiver: parseActorRef(ref).key,
        state: stateName(value),
        waiting: queue.length,
        sent,
        sentAt: sentAt ?? null,
        lost,
        reason: reason ?? '',
      },
    };
  });
  const columns = [
    { name: 'receiver', title: 'Receiver' },
    { name: 'state', title: 'State' },
    { name: 'waiting', title: 'Notices that wait', format: 'number' },
    { name: 'sent', title: 'Taken by it', format: 'number' },
    { name: 'sentAt', title: 'The last at', format: 'time' },
    { name: 'lost', title: 'Dropped', format: 'number' },
    { name: 'reason', title: 'Why not' },
  ] as const;
  return { kind: 'table', title: 'Receivers', columns, rows };
}

/** A receiver is well when it took what it was sent last; of one that was sent nothing nobody knows. */
function receiverStatus({
  failures,
  waiting,
  sentAt,
}: {
  readonly failures: number;
  readonly waiting: number;
  readonly sentAt: number | undefined;
}): PageStatus {
  if (failures > 0) return 'failing';
  if (waiting > 0) return 'degraded';
  return sentAt === undefined ? 'unknown' : 'ok';
}

function silencesTable([state]: readonly ActorState[], now: number): PageSection {
  const { silences = [] } = (state?.context ?? {}) as { readonly silences?: readonly Silence[] };
  const rows = silences
    .filter(({ until }) => until > now)
    .map(({ id, pattern, by, until, note = '' }) => ({ cells: { id, pattern, by, until, note } }));
  const columns = [
    { name: 'pattern', title: 'Alerts' },
    { name: 'by', title: 'By' },
    { name: 'until', title: 'Until', format: 'time' },
    { name: 'note', title: 'Note' },
    { name: 'id', title: 'Id' },
  ] as const;
  return { kind: 'table', title: 'Silences', columns, rows };
}

/** Lets the console show the alerts at any moment. */
export function contributePage<S>(context: PluginContext<S>): void {
  context.contribute(consolePages, page);
}
