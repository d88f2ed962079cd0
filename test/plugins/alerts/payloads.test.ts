import { existsSync, readdirSync, readFileSync } from 'node:fs';
import test from 'ava';
import type { Notice, Queued } from '../../../src/machines/alerts/notice.ts';
import { anchorOf, guidanceOf, hasGuidance } from '../../../src/plugins/alerts/guidance.ts';
import { documentedRules } from '../../../src/plugins/alerts/index.ts';
import { personText } from '../../../src/plugins/alerts/message.ts';
import { type Format, formats } from '../../../src/plugins/alerts/payloads.ts';

const root = new URL('../../../', import.meta.url);
const since = Date.UTC(2026, 10, 21, 3, 0, 0);
const notice: Notice = {
  state: 'firing',
  name: 'rule.nas-backup-stale',
  severity: 'critical',
  title: 'NAS backup STALE',
  text: 'NAS backup STALE: 40 in 7d; it is wrong when above 36.',
  labels: { rule: 'nas-backup-stale', state: 'firing' },
  since,
  value: 40,
  places: ['nas'],
  host: 'edge',
  instance: 'edge:/data',
  cause: 'alerts.rule/nas-backup-stale found 40: firing',
  firstStep: 'Start one by hand.',
  runbook: 'https://docs.example.org/alerts.md#nas-backup-stale',
};
const item = (more: Partial<Notice> = {}, at = since + 95 * 60_000): Queued => ({
  id: '1.0/phone',
  at,
  notice: { ...notice, ...more },
});
const resolved = (name: string) =>
  item({ state: 'resolved', name, title: name, labels: { rule: name, state: 'resolved' } });
const NAMES = Object.keys(formats) as Format[];
const post = (format: Format, ...items: Queued[]) => formats[format](items, 'key', since + 100 * 60_000);
const json = (format: Format, ...items: Queued[]): any => JSON.parse(post(format, ...items).body);

test("[O17] a webhook of Alertmanager's has the fields of version 4, and says that no alert is left out", (t) => {
  t.like(json('alertmanager', item()), {
    version: '4',
    groupKey: 'key',
    truncatedAlerts: 0,
    status: 'firing',
    receiver: 'holdfast',
    groupLabels: {},
    commonLabels: {},
    commonAnnotations: {},
    alerts: { length: 1 },
  });
});

test('[O17] a person reads what is wrong, where, since when, why, what to do first, and a link', (t) => {
  t.is(
    personText(item()),
    [
      'NAS backup STALE: 40 in 7d; it is wrong when above 36.',
      'Where: nas; reported by edge (instance edge:/data)',
      'Since: 2026-11-21 03:00:00 UTC, for 1 h 35 min',
      'Cause: alerts.rule/nas-backup-stale found 40: firing',
      'First: Start one by hand.',
      'More: https://docs.example.org/alerts.md#nas-backup-stale',
    ].join('\n'),
  );
  t.is(
    personText(item({ state: 'resolved', places: ['edge (instance edge:/data)'] }, since + 26 * 3_600_000)),
    [
      'Resolved: NAS backup STALE: 40 in 7d; it is wrong when above 36.',
      'Where: edge (instance edge:/data)',
      'Since: 2026-11-21 03:00:00 UTC, for 1 d 2 h, until 2026-11-22 05:00:00 UTC',
      'More: https://docs.example.org/alerts.md#nas-backup-stale',
    ].join('\n'),
    'its end needs no first step',
  );
  t.regex(personText(item({ state: 'reminder' })), /^Still: NAS/);
});

test('[O17] every format has the whole text', (t) => {
  const text = personText(item());
  t.is(json('json', item()).text, text);
  t.is(post('ntfy', item()).body, text);
  t.is(post('ntfy', item()).headers.click, notice.runbook);
  t.is(json('alertmanager', item()).alerts[0].annotations.description, text);
  t.is(json('alertmanager-api', item())[0].annotations.description, text);
});

test('[O17] severity is a label in every format, the same for an alert and its end', (t) => {
  const labelsOf: Record<Format, (one: Queued) => unknown> = {
    json: (one) => json('json', one).labels.severity,
    ntfy: (one) => post('ntfy', one).headers.tags?.split(',')[1],
    alertmanager: (one) => json('alertmanager', one).alerts[0].labels.severity,
    'alertmanager-api': (one) => json('alertmanager-api', one)[0].labels.severity,
  };
  for (const name of NAMES) {
    for (const severity of ['critical', 'warning', 'info'] as const) {
      t.is(labelsOf[name](item({ severity })), severity, name);
      t.is(labelsOf[name](item({ severity, state: 'resolved' })), severity, name);
    }
    t.is(
      labelsOf[name](item({ severity: 'warning', labels: { priority: '1' } })),
      'critical',
      `${name}: priority 1`,
    );
  }
});

test("[O28] priority 1 is each format's most urgent, and ntfy's highest is 5", (t) => {
  const priority = (...items: Queued[]) => post('ntfy', ...items).headers.priority;
  const of = (label: string) => item({ severity: 'info', labels: { priority: label } });
  t.deepEqual(
    ['1', '2', '3', '4', '5'].map((label) => priority(of(label))),
    ['5', '4', '3', '2', '1'],
  );
  t.is(priority(of('max')), '3', 'what is none of the scale counts as none');
  t.is(priority(of('5'), of('1')), '5', 'one does not make another less urgent');
  t.deepEqual(
    (['critical', 'warning', 'info'] as const).map((severity) => priority(item({ severity }))),
    ['5', '4', '3'],
  );
  t.is(priority(item({ state: 'resolved' })), '3');
});

test('[O17] a post that holds only resolved changes says so, and one that holds something that fires says that', (t) => {
  const over = [resolved('one'), resolved('two')];
  const mixed = [resolved('one'), item({ severity: 'warning', title: 'two' }), item({ title: 'three' })];
  t.like(json('json', ...over), {
    state: 'resolved',
    kind: 'resolved',
    title: 'Resolved: 2 alerts: one and others',
  });
  t.like(json('json', ...mixed), {
    state: 'firing',
    kind: 'firing',
    severity: 'critical',
    title: '3 alerts, 1 resolved: three and others',
  });
  t.is(json('json', ...mixed).alerts.length, 3);
  t.like(post('ntfy', ...over).headers, {
    title: 'Resolved: 2 alerts: one and others',
    tags: 'white_check_mark,critical',
    priority: '3',
  });
  t.like(post('ntfy', ...mixed).headers, { tags: 'rotating_light,critical', priority: '5' });
  t.is(json('alertmanager', ...over).status, 'resolved');
  t.is(json('alertmanager', ...mixed).status, 'firing');
  t.deepEqual(
    json('alertmanager', ...mixed).alerts.map(({ status }: any) => status),
    ['resolved', 'firing', 'firing'],
  );
});

test('[O17] an alert that is over by the time of its post wakes nobody: each post says how its alerts are now', (t) => {
  const alert = 'rule.nas-backup-stale{rule=nas-backup-stale}';
  const began = item({ alert }, since);
  const over = item({ alert, state: 'resolved', severity: 'critical' }, since + 60_000);
  const again = item({ alert, state: 'firing' }, since + 120_000);
  t.like(post('ntfy', began, over).headers, {
    title: 'Resolved: NAS backup STALE',
    tags: 'white_check_mark,critical',
    priority: '3',
  });
  t.true(post('ntfy', began, over).body.includes('Cause: '), 'why it fired can still be read');
  t.like(json('json', began, over), {
    state: 'resolved',
    kind: 'resolved',
    title: 'Resolved: NAS backup STALE',
  });
  t.is(json('json', began, over).alerts.length, 2);
  t.is(json('alertmanager', began, over).status, 'resolved');
  for (const alerts of [json('alertmanager', began, over).alerts, json('alertmanager-api', began, over)]) {
    t.is(alerts.length, 1, 'no Alertmanager lists an alert twice');
    t.is(alerts[0].endsAt, new Date(over.at).toISOString());
  }
  t.like(post('ntfy', began, over, again).headers, { title: 'NAS backup STALE', priority: '5' });
  t.like(post('ntfy', began, over, item({ title: 'other' })).headers, {
    title: '2 alerts, 1 resolved: other and others',
    priority: '5',
  });
  const events = [item({ alert, state: 'event' }), item({ alert, state: 'event' })];
  t.is(
    json('json', ...events).title,
    '2 alerts: NAS backup STALE and others',
    'what has no end happened twice',
  );
});

test('[O17] the first step names the monitor, receiver or actor that the alert is about', (t) => {
  const first = (name: string, labels: Record<string, string>) =>
    guidanceOf({ name, labels }, undefined).firstStep;
  t.regex(first('uptime-monitor.down', { monitor: 'router-ula' }), /`holdfast push doctor router-ula`/);
  t.regex(first('alerts.receiver_away', { receiver: 'phone' }), /`holdfast alerts test phone`/);
  t.regex(first('machine.failed', { actor: 'a.b/c' }), /--actor a\.b\/c`/);
  t.regex(first('uptime-monitor.down', {}), /<monitor>/);
  t.regex(
    first('uptime-monitor.down', { monitor: '$(reboot)' }),
    /<monitor>/,
    'only what can be typed as it is',
  );
});

test('[O17] an Alertmanager is given the end of an alert a few minutes ahead of the post, however long it waited', (t) => {
  const [firing] = json('alertmanager-api', item());
  t.is(Date.parse(firing.endsAt) - (since + 100 * 60_000), 240_000);
  const [reminder] = json(
    'alertmanager-api',
    item({ state: 'reminder', labels: { ...notice.labels, reminder: '2' } }),
  );
  t.deepEqual(reminder.labels, firing.labels, 'a reminder is the same alert');
  const [over] = json('alertmanager-api', item({ state: 'resolved' }));
  t.is(Date.parse(over.endsAt), since + 95 * 60_000);
  t.deepEqual(over.labels, firing.labels);
  const [odd] = json('alertmanager-api', item({ labels: { 'host.name': 'a', '9x': 'b' } }));
  t.deepEqual(
    Object.keys(odd.labels).filter((name) => !/^[a-zA-Z_]\w*$/.test(name)),
    [],
    'it refuses other names',
  );
});

test('[O17] a phone gets all of it as text, not as an attachment', (t) => {
  const many = Array.from({ length: 20 }, () => item({ text: 'ü'.repeat(400) }));
  const { body } = post('ntfy', ...many);
  t.true(Buffer.byteLength(body) < 4_096);
  t.notRegex(body, /\uFFFD/);
  t.regex(body, /holdfast alerts list/);
});

test('[O17] no alert is without a first step and a link, and the page of each link exists', (t) => {
  const sources = readdirSync(new URL('src/', root), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(new URL(`src/${name}`, root), 'utf8'))
    .filter((text) => text.includes('alerts.raise') || /\bAlert\b|alertRaised/.test(text));
  const names = sources.flatMap((text) =>
    [...text.matchAll(/name: [`']((?:[a-z-]+)\.[a-z_.-]+)[`']/g)].map(([, name = '']) => name),
  );
  t.true(names.length > 20);
  const checks = ['alerts.rules', 'alerts.test', 'router.legs', 'router.store'];
  t.deepEqual(
    names.filter((name) => !hasGuidance(name) && !checks.includes(name)),
    [],
  );
  for (const name of [...names, 'rule.mine', 'something.else']) {
    const { firstStep, runbook } = guidanceOf({ name }, undefined);
    t.true(firstStep.length > 10);
    t.true(existsSync(new URL(runbook.split('#')[0]!, root)), `${name}: ${runbook}`);
    t.true(guidanceOf({ name }, 'https://docs.example.org/').runbook.startsWith('https://docs.example.org/'));
  }
  const page = readFileSync(new URL('docs/alerts.md', root), 'utf8');
  const anchors = page
    .split('\n')
    .flatMap((line) => (line.startsWith('#') ? [anchorOf(line.replace(/^#+ /, ''))] : []));
  for (const { name, title } of documentedRules) {
    const { runbook } = guidanceOf({ name: `rule.${name}` }, undefined);
    t.true(anchors.includes(runbook.split('#')[1]!), `${title}: ${runbook}`);
  }
  t.is(guidanceOf({ name: 'rule.nas-backup-failed', runbook: 'https://x' }, undefined).runbook, 'https://x');
});

test('[O17] what a first step tells to type exists', (t) => {
  const commands = readFileSync(new URL('docs/reference/commands.md', root), 'utf8');
  const steps = [
    ...documentedRules.map(({ firstStep = '' }) => firstStep),
    ...[
      'alerts.receiver_away',
      'uptime-monitor.down',
      'cluster.x',
      'reconciler.x',
      'router.x',
      'gateway.x',
      'collector.x',
      'otlp.x',
      'columnar.x',
      'restore.x',
      'memory.x',
      'log.x',
      'machine.x',
      'plugin.x',
      'x',
    ].map((name) => guidanceOf({ name }, undefined).firstStep),
  ];
  const typed = steps.flatMap((step) =>
    [...step.matchAll(/`holdfast ([a-z -]+?)(?: --.*?| <.*?| clickstack.*?)?`/g)].map(([, words = '']) =>
      words.trim(),
    ),
  );
  t.true(typed.length > 15);
  const unknown = typed.filter((words) => {
    const [first = ''] = words.split(' ');
    return !commands.includes(`### ${words}\n`) && !(first === 'doctor' && commands.includes('### doctor\n'));
  });
  t.deepEqual(unknown, []);
});
