import type { PageMoment, PageSection, PageStatus } from '../../core/contracts/console.ts';
import { contextOf, dueOf, keyOf } from '../../core/host/history/page-states.ts';
import { stateName } from '../../core/host/terminal.ts';
import type { ActorState } from '../../core/kernel/actors/transition.ts';
import type { AlertContext } from '../../machines/alerts/escalation.ts';

interface Step {
  readonly step: string;
  readonly who: string;
  readonly how: string;
  readonly at: number | null;
  readonly status?: PageStatus;
}

/**
 * The escalation of every alert that fires: which step was taken, who took its notice when, and when the next one is due.
 *
 * @param firing the actors of those alerts
 */
export function escalationTable(firing: readonly Readonly<ActorState>[], moment: PageMoment): PageSection {
  const columns = [
    { name: 'alert', title: 'Alert' },
    { name: 'step', title: 'Step' },
    { name: 'who', title: 'Who' },
    { name: 'how', title: 'How far' },
    { name: 'at', title: 'When', format: 'time' },
  ] as const;
  const rows = firing.flatMap((state) =>
    stepsOf(state, moment).map(({ status, ...cells }) => ({
      actor: state.ref,
      ...(status && { status }),
      cells: { alert: keyOf(state), ...cells },
    })),
  );
  return { kind: 'table', title: 'Who is told, step by step', columns, rows };
}

function stepsOf(state: ActorState, moment: PageMoment): Step[] {
  const {
    steps = [],
    stepsTaken = 0,
    informed = [],
    takenAt = {},
    ack,
    remindMs = 0,
  } = contextOf<Partial<AlertContext>>(state);
  const next = nextOf(state, moment);
  const named = (index: number) => `${index + 1} of ${steps.length}`;
  const taken = steps.slice(0, stepsTaken).flatMap(({ to }, index) =>
    to.map((who): Step => {
      const at = takenAt[who];
      const step = named(index);
      if (at !== undefined) return { step, who, how: 'was told', at, status: 'ok' };
      return { step, who, how: 'was not reached yet', at: null, status: 'degraded' };
    }),
  );
  const later = steps.slice(stepsTaken).map(({ to }, index): Step => {
    const who = to.join(', ') || 'nobody';
    const step = named(stepsTaken + index);
    if (index === 0) return { step, who, ...next };
    return { step, who, how: 'later', at: null };
  });
  if (later.length > 0) return [...taken, ...later];
  const who = informed.join(', ') || 'nobody';
  const reminder = ack || remindMs > 0 ? [{ step: 'reminder', who, ...next }] : [];
  return [...taken, ...reminder];
}

/** What the next step waits for, and until when. */
function nextOf(state: ActorState, moment: PageMoment): Pick<Step, 'how' | 'at'> {
  const { ack } = contextOf<Partial<AlertContext>>(state);
  switch (stateName(state.value)) {
    case 'firing.acknowledged':
      return {
        how: `after the time of ${ack?.by ?? 'its acknowledgement'}`,
        at: dueOf(moment, state, 'acknowledged') ?? null,
      };
    case 'firing.silenced':
      return { how: 'after its silence', at: dueOf(moment, state, 'silence') ?? null };
    default:
      return { how: 'next', at: dueOf(moment, state, 'next') ?? null };
  }
}
