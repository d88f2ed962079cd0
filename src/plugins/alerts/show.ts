import type { CommandContext } from '../../core/host/plugin/command.ts';
import type { AlertsView, AlertView, ReceiverView, RuleView } from './view.ts';

/** How long an event that happened once is listed. */
const RECENT_MS = 24 * 3_600_000;

const COLOURS = { firing: 'red', acknowledged: 'yellow', silenced: 'yellow', quiet: 'green' } as const;

/** Prints alerts, rules, receivers and silences; what fires comes first. @param now epoch milliseconds */
export function show(
  view: AlertsView,
  { json, print, terminal }: Pick<CommandContext, 'json' | 'print' | 'terminal'>,
  now = Date.now(),
): void {
  if (json) {
    print(JSON.stringify(view));
    return;
  }
  const lasting = view.alerts.filter(({ state }) => state !== 'quiet');
  if (lasting.length === 0) print('Nothing fires.');
  for (const alert of lasting) {
    print(`${terminal.paint(COLOURS[alert.state], alert.state.padEnd(12))}  ${alert.alert}`);
    print(`              ${alert.text}`);
    print(`              ${historyOf(alert, view.receivers)}`);
  }
  const recent = view.alerts.filter((alert) => happened(alert) && Date.parse(alert.since) > now - RECENT_MS);
  for (const alert of recent.sort((one, other) => other.since.localeCompare(one.since))) {
    print(`${terminal.paint('yellow', 'happened'.padEnd(12))}  ${alert.alert}`);
    print(`              ${alert.text}`);
    print(`              ${historyOf(alert, view.receivers)}`);
  }
  if (view.rules.length > 0) print('');
  for (const rule of view.rules) print(ruleLine(rule, terminal));
  if (view.receivers.length > 0) print('');
  for (const receiver of view.receivers) print(receiverLine(receiver, terminal));
  for (const { id, pattern, by, until, note } of view.silences) {
    print(
      `silence ${id}: ${pattern} until ${short(new Date(until).toISOString())}, by ${by}${note ? `: ${note}` : ''}`,
    );
  }
}

/** A one-time event: it has a count and does not fire. */
const happened = ({ state, count }: AlertView): boolean => state === 'quiet' && count > 0;

function historyOf(alert: AlertView, receivers: readonly ReceiverView[]): string {
  const { since, acknowledged, silentUntil, count } = alert;
  const parts = [
    `since ${short(since)}`,
    count > 1 && `raised ${count} times`,
    acknowledged &&
      `acknowledged by ${acknowledged.by} until ${short(acknowledged.until)}${acknowledged.note ? ` (${acknowledged.note})` : ''}`,
    silentUntil && `silent until ${short(silentUntil)}`,
    ...deliveryOf(alert, receivers),
  ];
  return parts.filter(Boolean).join('; ');
}

/** Which receivers have accepted it and which have not. Only a receiver's answer counts. */
function deliveryOf(
  { informed, taken, waiting }: AlertView,
  receivers: readonly ReceiverView[],
): (string | false)[] {
  if (informed.length === 0) return ['nobody has been notified'];
  const has = informed.filter((name) => taken[name] !== undefined);
  const isWaiting = (name: string) => waiting.includes(name);
  const open = informed.filter((name) => isWaiting(name) && taken[name] === undefined);
  const gone = informed.filter((name) => !isWaiting(name) && taken[name] === undefined);
  const reasons = open.map((name) => {
    const { failing } = receivers.find(({ receiver }) => receiver === name) ?? {};
    return failing ? `${name} (${failing.reason})` : name;
  });
  return [
    has.length > 0 && `taken by ${has.join(', ')}`,
    reasons.length > 0 && `not yet taken by ${reasons.join(', ')}`,
    gone.length > 0 && `not known to be taken by ${gone.join(', ')}`,
  ];
}

function ruleLine(rule: RuleView, { paint }: CommandContext['terminal']): string {
  const { title, verdict, value, condition, window, lookedAt, unseen, neverSeen } = rule;
  const colour = verdict === 'ok' ? 'green' : verdict === 'firing' ? 'red' : 'yellow';
  const seen =
    lookedAt === undefined ? '' : `${value ?? (neverSeen ? 'never any data' : 'no data')} in ${window}, `;
  const failed = unseen === undefined ? '' : `; could not be evaluated since: ${unseen}`;
  return `${paint(colour, verdict.padEnd(14))}  ${title}: ${seen}wrong when ${condition}${failed}`;
}

function receiverLine(receiver: ReceiverView, { paint }: CommandContext['terminal']): string {
  const { receiver: name, configured, waiting, sent, sentAt, failing, lost } = receiver;
  if (!configured) return `${paint('yellow', 'not configured')}  ${name}: nobody is notified by it`;
  const parts = [
    `${sent} sent${sentAt === undefined ? '' : `, the last at ${short(sentAt)}`}`,
    waiting > 0 && `${waiting} wait`,
    lost > 0 && `${lost} given up`,
    failing && `${failing.reason} (${failing.posts} posts failed)`,
  ];
  return `${paint(failing ? 'red' : 'green', (failing ? 'failing' : 'ready').padEnd(14))}  ${name}: ${parts.filter(Boolean).join('; ')}`;
}

const short = (at: string): string => at.replace('T', ' ').replace(/\.\d+Z$/, ' UTC');
