/** What a person does first about an alert that names nothing itself, and the page that says more. */
import type { AlertContent } from '../../machines/alerts/notice.ts';
import { documentedRules } from './rules/documented.ts';

interface Guidance {
  readonly firstStep: string;
  /** A page of `docs/`, with its section. */
  readonly page: string;
}

/** By the beginning of an alert's name; the first that fits counts. */
const GUIDANCE: readonly (readonly [string, Guidance])[] = [
  [
    'alerts.receiver_away',
    step(
      '`holdfast doctor alerts` connects to each receiver, and `holdfast alerts test <receiver>` shows its answer.',
      'alerts.md#when-something-is-wrong',
    ),
  ],
  [
    'alerts.rules_unevaluated',
    step(
      '`holdfast alerts list` shows for each rule why, and `holdfast doctor stack` whether the database answers; until then look at what they watch by hand.',
      'alerts.md#rules',
    ),
  ],
  [
    'rule.',
    step(
      '`holdfast alerts list` shows the value of the rule now, and `holdfast doctor stack` whether its telemetry arrives.',
      'alerts.md#rules',
    ),
  ],
  [
    'uptime',
    step(
      'See that the sender of the beats runs, then `holdfast push doctor <monitor>`; `holdfast uptime list` shows the reason that it gave last.',
      'uptime.md',
    ),
  ],
  [
    'reconciler.',
    step(
      '`holdfast doctor router` shows which leg lacks its address and why; `holdfast router resync` has every leg checked now.',
      'guides/reconcile-a-real-router.md',
    ),
  ],
  [
    'router.',
    step(
      '`holdfast doctor router`, then `holdfast log list --actor router.config`: undo nothing before both agree on what is in force.',
      'guides/the-embedded-router.md',
    ),
  ],
  [
    'cluster.',
    step(
      '`holdfast cluster status` on each host shows who is there, who holds what and what is wrong; `holdfast doctor cluster` looks at NATS.',
      'cluster.md#faults-and-what-happens',
    ),
  ],
  [
    'gateway.approval_waiting',
    step(
      '`holdfast gateway approvals` shows what the call asks; `holdfast gateway approve` or `deny`, with its id and --why, decides.',
      'gateway.md#approval',
    ),
  ],
  [
    'gateway.',
    step(
      '`holdfast doctor gateway` and `holdfast log list --actor gateway` show which route or key it is; the other routes go on.',
      'gateway.md',
    ),
  ],
  [
    'collector.',
    step(
      '`holdfast doctor stack` compares keys and the config of the collector; nothing is lost while it still sends.',
      'stack.md',
    ),
  ],
  [
    'otlp.',
    step(
      '`holdfast doctor stack`: telemetry is refused or kept on disk until the database answers again; look for a full disk first.',
      'stack.md',
    ),
  ],
  [
    'columnar.',
    step('See that the database runs and has room on its disk, then `holdfast doctor stack`.', 'stack.md'),
  ],
  [
    'restore.',
    step(
      '`holdfast log list --actor restore` shows the step that failed; repeat the drill by `holdfast restore drill` before the backup is needed.',
      'restore-drills.md',
    ),
  ],
  [
    'memory.',
    step('`holdfast backup status`, then take a snapshot by hand: `holdfast backup snapshot`.', 'memory.md'),
  ],
  [
    'data.',
    step(
      '`holdfast doctor host` names what is damaged; keep the folder as it is until there is a copy of it, then see `holdfast log repair`.',
      'log.md#damage-is-found-by-itself',
    ),
  ],
  [
    'certificate.',
    step(
      'See that what renews the certificate runs and writes its files; `holdfast doctor security` names them, and renewed ones are used within 10 s.',
      'security.md#tls',
    ),
  ],
  [
    'clock.',
    step(
      '`timedatectl` shows whether the time service of the machine works, and `holdfast doctor host` how far the clock is off.',
      'log.md#a-clock-that-is-set',
    ),
  ],
  [
    'witness.',
    step(
      '`holdfast doctor host` shows why the witness takes no heads, and `holdfast log verify` compares those that it has.',
      'log.md#a-witness-outside',
    ),
  ],
  [
    'log.',
    step(
      'Make room on the disk of the data folder: the runtime goes on by itself as soon as it can write.',
      'log.md',
    ),
  ],
  [
    'machine.',
    step(
      '`holdfast log list --actor <actor>` shows the event; its state is as before, and the record is what a report of the fault needs.',
      'log.md',
    ),
  ],
  [
    'plugin.',
    step('`holdfast doctor` shows why the plugin failed; correct that and restart.', 'architecture.md'),
  ],
];

const ANYTHING = step(
  '`holdfast doctor` checks what it can, and `holdfast log list` shows what led to it.',
  'alerts.md',
);

/** The section about signals that are not required yet. */
const UNSEEN = 'A signal that has never come';

function step(firstStep: string, page: string): Guidance {
  return { firstStep, page };
}

/**
 * The first step and the link of an alert; every alert has both.
 *
 * @param base where the pages of `docs/` can be read; without it the link is the page's path in the package
 */
export function guidanceOf(
  {
    name,
    labels = {},
    firstStep,
    runbook,
  }: Pick<AlertContent, 'name' | 'firstStep' | 'runbook'> & Partial<Pick<AlertContent, 'labels'>>,
  base: string | undefined,
): { readonly firstStep: string; readonly runbook: string } {
  const found = GUIDANCE.find(([beginning]) => name.startsWith(beginning))?.[1] ?? ANYTHING;
  const rule = documentedRules.find((each) => name === `rule.${each.name}`);
  const isUnseen = name.startsWith('rule.') && name.endsWith('.unseen');
  const section = rule?.title ?? (isUnseen ? UNSEEN : undefined);
  const page = section === undefined ? found.page : `alerts.md#${anchorOf(section)}`;
  const link = base === undefined ? `docs/${page}` : `${base.replace(/\/+$/, '')}/${page}`;
  return { firstStep: firstStep ?? named(found.firstStep, labels), runbook: runbook ?? link };
}

/** The commands of a step with what the alert is about in the place of `<monitor>`, where it can be typed as it is. */
function named(step: string, labels: Readonly<Record<string, string>>): string {
  return step.replace(/<(\w+)>/g, (placeholder, label: string) => {
    const value = Object.hasOwn(labels, label) ? (labels[label] ?? '') : '';
    return /^[\w./:@-]{1,100}$/.test(value) ? value : placeholder;
  });
}

/** Whether there is guidance for alerts of this name. */
export const hasGuidance = (name: string): boolean =>
  GUIDANCE.some(([beginning]) => name.startsWith(beginning));

/** The anchor of a heading, as Markdown viewers make it. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}
