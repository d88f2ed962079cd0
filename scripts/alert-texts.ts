/**
 * The section of `docs/alerts.md` with the text of every rule: each rule is really fired, in a runtime of its own with virtual
 * time and the embedded database, and its text is what a receiver is sent. `npm run alert-texts` writes it, and
 * `test/docs/alert-texts.slow.test.ts` fails while the page says anything else.
 */
import { jobRun } from '../src/core/contracts/jobs.ts';
import { msOf } from '../src/core/host/duration.ts';
import { ruleActor } from '../src/plugins/alerts/actors.ts';
import { documentedRules } from '../src/plugins/alerts/index.ts';
import { jobs } from '../src/plugins/jobs/index.ts';
import { type Options, type Rig, rig, sample } from '../test/plugins/alerts/rig.ts';
import type { ColumnarRig } from '../test/support/columnar.ts';
import type { Scope } from '../test/support/scope.ts';
import { VirtualClock } from '../test/support/virtual-clock.ts';
import { webhook } from '../test/support/webhook.ts';

/** When somebody is woken. */
const NIGHT = Date.UTC(2026, 10, 21, 3, 4, 0);
const HOUR = 3_600_000;
const HOME = 'host.name=router,service.instance.id=ula-reconcile';
const NAS = { 'host.name': 'nas' };
const ROUTER = { 'host.name': 'router', 'service.instance.id': 'ula-reconcile' };
const HEARTBEAT = { 'host.name': 'router', 'service.name': 'holdfast-heartbeat' };

type Rows = readonly ReturnType<typeof sample>[];

/** How a rule comes to fire. */
interface Scene {
  readonly heading: string;
  readonly rule: string;
  readonly said: string;
  readonly signal?: NonNullable<Options['signals']>[string];
  readonly gauges?: Rows;
  readonly sums?: Rows;
  /** What happens after the first evaluation. */
  readonly happens?: (alerts: Rig) => void;
  /** Time from there to the evaluation that fires; the rule's interval unless given. */
  readonly after?: string;
}

const titleOf = (rule: string): string => documentedRules.find(({ name }) => name === rule)?.title ?? rule;
const scene = (rule: string, said: string, more: Omit<Scene, 'heading' | 'rule' | 'said'>): Scene => ({
  heading: titleOf(rule),
  rule,
  said,
  ...more,
});

const SCENES: readonly Scene[] = [
  scene('nas-backup-failed', 'The backup of one source failed an hour ago.', {
    gauges: [sample('nas.backup.snapshot.failed', 1, NIGHT - HOUR, { source: 'photos' }, NAS)],
  }),
  scene('nas-backup-missing', 'Nothing has come from the NAS for an hour; `signals` requires it.', {
    signal: { expect: 'required', host: 'nas' },
    after: '1h',
  }),
  scene('nas-backup-stale', 'The collector of the NAS is alive, and the last success was 40 hours ago.', {
    sums: [sample('file.mtime', NIGHT / 1_000 - 40 * 3_600, NIGHT - 60_000, {}, NAS)],
  }),
  scene(
    'watchdog-push-failing',
    'The watchdog found the stack healthy, and the monitor did not take its heartbeat. No telemetry is needed.',
    {
      happens(alerts) {
        const { bus, clock } = alerts.runtime.services;
        const text = 'PUSH DELIVERY FAILED: HTTP 404: no such monitor (wget exit status 8)';
        const run = { job: 'clickstack-watchdog', at: clock.now() };
        bus.publish(jobRun, { phase: 'started', ...run }, { correlation: 'a-run' });
        bus.publish(
          jobRun,
          { phase: 'ended', ...run, outcome: 'failed', cause: 'exit', text },
          { correlation: 'a-run' },
        );
      },
      after: '5m',
    },
  ),
  scene('router-ula-reconcile', "The unit was stopped six minutes ago; the host's own heartbeat goes on.", {
    signal: { expect: 'required' },
    gauges: [
      sample('router.ula_reconcile.up', 1, NIGHT - 60_000, {}, ROUTER),
      ...[0, 1, 2, 3, 4, 5, 6].map((minute) =>
        sample('router.diag.heartbeat', 1, NIGHT + minute * 60_000 - 5_000, {}, HEARTBEAT),
      ),
    ],
    after: '6m',
  }),
  {
    heading: 'A signal that has never come',
    rule: 'nas-backup-missing',
    said: 'The collector of the NAS was dark from the beginning. This alert is a warning, and each rule that fires on missing data has it.',
    after: '1d',
  },
];

/** @param scope where the runtimes end @returns the section, in Markdown */
export async function alertTexts(scope: Scope, columnar: ColumnarRig): Promise<string> {
  const before = process.env.OTEL_RESOURCE_ATTRIBUTES;
  process.env.OTEL_RESOURCE_ATTRIBUTES = HOME;
  try {
    const parts: string[] = [];
    for (const each of SCENES) {
      const { title, severity, text } = await firedBy(each, scope, columnar);
      const lines = String(text)
        .split('\n')
        .map((line) => `    ${line}`);
      parts.push(
        `### ${each.heading}`,
        '',
        `${each.said} Severity: ${severity}. Title: ${title}.`,
        '',
        ...lines,
        '',
      );
    }
    return parts.join('\n').trimEnd();
  } finally {
    if (before === undefined) delete process.env.OTEL_RESOURCE_ATTRIBUTES;
    else process.env.OTEL_RESOURCE_ATTRIBUTES = before;
  }
}

interface Fired {
  readonly title: string;
  readonly severity: string;
  readonly text: string;
}

async function firedBy(
  { rule, signal, gauges = [], sums = [], happens, after }: Scene,
  scope: Scope,
  columnar: ColumnarRig,
): Promise<Fired> {
  await columnar.empty('otel_metrics_gauge', 'otel_metrics_sum');
  if (gauges.length > 0) await columnar.database.insert('otel_metrics_gauge', [...gauges]);
  if (sums.length > 0) await columnar.database.insert('otel_metrics_sum', [...sums]);
  const receiver = await webhook(scope);
  const options: Options = {
    receivers: { hook: { url: receiver.url, batchSeconds: 0 } },
    routes: [{ steps: [{ to: ['hook'] }] }],
    // One evaluation at the beginning and one at the end: their times do not depend on how long a query takes.
    rules: documentedRules
      .filter(({ name }) => name === rule)
      .map((each) => ({ ...each, every: after ?? each.every })),
    ...(signal && { signals: { [rule]: signal } }),
  };
  const clock = new VirtualClock(NIGHT);
  const alerts = await rig(scope, options, { clock, database: columnar.database, plugins: [jobs()] });
  await alerts.until('the first evaluation', () => evaluatedIn(alerts, rule));
  happens?.(alerts);
  if (after !== undefined) await alerts.pass(msOf(after) / 1_000);
  await alerts.until(`${rule} fires`, () => receiver.received.length > 0);
  await alerts.runtime.stop('its text is known');
  const [fired] = receiver.json();
  return fired;
}

const evaluatedIn = ({ runtime }: Rig, rule: string): boolean =>
  (runtime.services.actors.get(ruleActor, rule)?.context.evaluations ?? 0) > 0;

const BEGIN = '<!-- Written by `npm run alert-texts`, which fires each rule. -->';
const END = '<!-- The end of what it writes. -->';

/** The page with another section. */
export function withAlertTexts(page: string, section: string): string {
  const [before, rest] = page.split(BEGIN);
  const [, after] = (rest ?? '').split(END);
  if (before === undefined || after === undefined)
    throw new Error('docs/alerts.md lacks the marks of the section');
  return `${before}${BEGIN}\n\n${section}\n\n${END}${after}`;
}
