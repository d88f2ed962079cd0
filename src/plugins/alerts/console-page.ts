import { type ConsolePage, consolePages, type PageSection } from '../../core/contracts/console.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import { stateName } from '../../core/host/terminal.ts';
import type { ActorState } from '../../core/kernel/actors/transition.ts';
import { parseActorRef } from '../../core/kernel/ids.ts';
import { isObject } from '../../core/kernel/json.ts';
import type { AlertContext } from '../../machines/alerts/escalation.ts';
import type { OutboxContext } from '../../machines/alerts/outbox-queue.ts';
import type { Silence } from '../../machines/alerts/silences.ts';
import { alertActor, outboxActor, silencesActor } from './actors.ts';

/** Conditions that are listed; the newest first. */
const MOST = 200;

/** Alerts, silences and receivers at a moment: all of it stands in the states of the actors. */
const page: ConsolePage = {
  name: 'alerts',
  title: 'Alerts',
  data: ({ states, time }) => {
    const of = (type: string) => [...states.values()].filter(({ ref }) => parseActorRef(ref).type === type);
    return [
      alertsTable(of(alertActor.type)),
      receiversTable(of(outboxActor.type)),
      silencesTable(of(silencesActor.type), time),
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
        status: !isBad
          ? ('ok' as const)
          : content?.severity === 'critical'
            ? ('failing' as const)
            : ('degraded' as const),
        actor: state.ref,
        ...(record !== undefined && { seq: record }),
        cells: {
          alert: parseActorRef(state.ref).key,
          state: stateName(state.value),
          since: isBad ? (since ?? null) : null,
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

function receiversTable(outboxes: readonly ActorState[]): PageSection {
  const rows = outboxes.map(({ ref, value, context }) => {
    const { queue = [] } = context as Partial<OutboxContext>;
    return {
      actor: ref,
      status: queue.length > 0 ? ('degraded' as const) : ('ok' as const),
      cells: { receiver: parseActorRef(ref).key, state: stateName(value), waiting: queue.length },
    };
  });
  const columns = [
    { name: 'receiver', title: 'Receiver' },
    { name: 'state', title: 'State' },
    { name: 'waiting', title: 'Notices that wait', format: 'number' },
  ] as const;
  return { kind: 'table', title: 'Receivers', columns, rows };
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
