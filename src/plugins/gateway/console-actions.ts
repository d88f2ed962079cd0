import { type ActionField, type ConsoleAction, consoleActions } from '../../core/contracts/console.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import { DECIDE_PATH } from './approvals/operations.ts';
import { ROLLBACK_PATH } from './routes/operations.ts';

const request: readonly ActionField[] = [
  { name: 'id', title: 'Id of the request', kind: 'text', required: true },
  { name: 'why', title: 'Why', kind: 'text', required: true },
];

/** What `holdfast gateway approve`, `deny` and `rollback` do. */
const ACTIONS: readonly ConsoleAction[] = [
  {
    name: 'gateway-approve',
    title: 'Approve a call',
    confirm:
      'The call that waits is forwarded, once, with exactly the arguments that `holdfast gateway approvals` shows.',
    fields: request,
    operation: DECIDE_PATH,
    body: (fields, by) => ({ ...fields, verdict: 'approved', by }),
  },
  {
    name: 'gateway-deny',
    title: 'Deny a call',
    confirm: 'The call that waits is refused, and so are equal ones until the denial is over.',
    fields: request,
    operation: DECIDE_PATH,
    body: (fields, by) => ({ ...fields, verdict: 'denied', by }),
  },
  {
    name: 'gateway-rollback',
    title: 'Roll a route back',
    confirm: 'The route is served as it was in an earlier revision of the table.',
    fields: [
      { name: 'route', title: 'Route', kind: 'text', required: true },
      { name: 'to', title: 'Revision; the one before unless given', kind: 'number', required: false },
    ],
    operation: ROLLBACK_PATH,
    body: (fields) => fields,
  },
];

/** Lets the console do what the commands of the gateway do. */
export function contributeActions<S>(context: PluginContext<S>): void {
  for (const action of ACTIONS) context.contribute(consoleActions, action);
}
