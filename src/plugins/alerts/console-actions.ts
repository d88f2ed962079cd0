import { type ConsoleAction, consoleActions } from '../../core/contracts/console.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import { PATH } from './operate.ts';

const duration = { name: 'for', title: 'For how long, e.g. 2h', kind: 'duration', required: true } as const;
const note = { name: 'note', title: 'Note', kind: 'text', required: false } as const;

/** What `holdfast alerts ack` and `silence` do. */
const ACTIONS: readonly ConsoleAction[] = [
  {
    name: 'alert-acknowledge',
    title: 'Acknowledge an alert',
    confirm: 'The alert is not repeated to anybody until the time is over or it is resolved.',
    fields: [{ name: 'alert', title: 'Alert', kind: 'text', required: true }, duration, note],
    operation: `${PATH}/ack`,
    body: ({ for: forMs, ...fields }, by) => ({ ...fields, forMs, by }),
  },
  {
    name: 'alert-silence',
    title: 'Silence alerts',
    confirm: 'Alerts whose name fits the pattern notify nobody until the time is over.',
    fields: [
      { name: 'pattern', title: 'Name, * stands for anything', kind: 'text', required: true },
      duration,
      note,
    ],
    operation: `${PATH}/silence`,
    body: ({ for: forMs, ...fields }, by) => ({ ...fields, forMs, by }),
  },
];

/** Lets the console do what the commands of alerts do. */
export function contributeActions<S>(context: PluginContext<S>): void {
  for (const action of ACTIONS) context.contribute(consoleActions, action);
}
