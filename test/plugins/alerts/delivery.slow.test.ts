import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { jobRun } from '../../../src/core/contracts/jobs.ts';
import { identityOf } from '../../../src/core/host/identity.ts';
import type { CommandContext } from '../../../src/core/host/plugin/command.ts';
import { documentedRules } from '../../../src/plugins/alerts/index.ts';
import { show } from '../../../src/plugins/alerts/show.ts';
import { jobs } from '../../../src/plugins/jobs/index.ts';
import { tempDir } from '../../support/temp.ts';
import { until } from '../../support/until.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { status, type Webhook, webhook } from '../../support/webhook.ts';
import { type Options, type Rig, rig } from './rig.ts';

const to = (receivers: Record<string, Webhook | undefined>, more: Partial<Options> = {}): Options => ({
  receivers: Object.fromEntries(
    Object.entries(receivers).map(([name, each]) => [
      name,
      { ...(each && { url: each.url }), batchSeconds: 1 },
    ]),
  ),
  routes: [
    {
      steps: Object.keys(receivers).map((name, index) => ({ to: [name], after: index === 0 ? '0s' : '15m' })),
    },
  ],
  rules: [],
  ...more,
});
const states = ({ received }: Webhook) => received.map(({ body }) => JSON.parse(body).kind);
const keys = ({ received }: Webhook) => received.map(({ headers }) => headers['idempotency-key']);
const raised = async ({ settled, pass }: Rig, raise: () => void) => {
  raise();
  await settled();
  await pass(1);
};

test('[O17] what comes together is one post, what comes again is none, and each format is what its receiver reads', async (t) => {
  const [json, ntfy, manager] = await Promise.all([webhook(t), webhook(t), webhook(t)]);
  const alerts = await rig(t, {
    receivers: {
      json: { url: json.url, batchSeconds: 1 },
      ntfy: { url: ntfy.url, batchSeconds: 1, format: 'ntfy' },
      manager: { url: manager.url, batchSeconds: 1, format: 'alertmanager' },
    },
    routes: [{ steps: [{ to: ['json', 'ntfy', 'manager'] }] }],
    rules: [],
  });
  await raised(alerts, () => {
    alerts.raise('store.full', 'firing', { store: 'a' });
    alerts.raise('store.full', 'firing', { store: 'b' });
    alerts.raise('store.full', 'firing', { store: 'a' });
  });
  await alerts.until('all have it', () =>
    [json, ntfy, manager].every(({ received }) => received.length === 1),
  );
  const [posted] = json.json();
  t.like(posted, { state: 'firing', title: '2 alerts: store full: a and others' });
  t.deepEqual(
    posted.alerts.map(({ labels, kind }: any) => [labels.store, kind]),
    [
      ['a', 'firing'],
      ['b', 'firing'],
    ],
  );
  t.like(ntfy.received[0]?.headers, {
    title: '2 alerts: store full: a and others',
    priority: '5',
    tags: 'rotating_light,critical',
  });
  t.regex(ntfy.received[0]?.body ?? '', /^store.full is firing\.\nWhere: .*\n\nstore.full is firing\./s);
  const [group] = manager.json();
  t.like(group, { version: '4', status: 'firing', receiver: 'holdfast' });
  t.like(group.alerts[0], {
    status: 'firing',
    labels: { alertname: 'store.full', severity: 'critical', store: 'a' },
  });
  t.is(new Set(group.alerts.map(({ fingerprint }: any) => fingerprint)).size, 2);
  await raised(alerts, () => alerts.raise('store.full', 'resolved', { store: 'a' }));
  await alerts.until('its end', () => json.received.length === 2);
  t.like(json.json()[1], { state: 'resolved', labels: { store: 'a' } });
  t.is(alerts.divergence(), undefined);
});

test('[O17] a receiver that fails gets the same post under the same key until it takes it, and says when', async (t) => {
  const receiver = await webhook(t);
  const alerts = await rig(t, to({ phone: receiver }));
  receiver.behave(status(500, 'broken'));
  await raised(alerts, () => alerts.raise('a.b', 'firing'));
  await alerts.until('the first post', () => receiver.received.length === 1);
  const failing = async () => (await alerts.view()).receivers[0]?.failing?.reason;
  await alerts.until('it is known', () => true);
  t.is(await failing(), 'it answered 500');
  alerts.raise('a.c', 'firing');
  receiver.behave(status(429, '', { 'retry-after': '60' }));
  await alerts.pass(5);
  await alerts.until('the second post', () => receiver.received.length === 2);
  await alerts.settled();
  receiver.behave(status(302, '', { location: '/login' }));
  await alerts.pass(59);
  t.is(receiver.received.length, 2, 'it asked for a minute');
  await alerts.pass(1);
  await alerts.until('the third post', () => receiver.received.length === 3);
  await alerts.settled();
  t.is(await failing(), 'it answered 302, and a redirect is not followed');
  receiver.behave(status(204));
  await alerts.pass(20);
  await alerts.until('the fourth post', () => receiver.received.length === 4);
  await alerts.pass(1);
  await alerts.until('the other alert', () => receiver.received.length === 5);
  const [first, ...others] = keys(receiver);
  t.deepEqual(others.slice(0, 3), [first, first, first]);
  t.not(others[3], first);
  t.deepEqual(
    receiver.json().map(({ name }) => name),
    ['a.b', 'a.b', 'a.b', 'a.b', 'a.c'],
  );
});

test('[O17] the ladder, acknowledgement and silences over hours', async (t) => {
  const [first, second] = await Promise.all([webhook(t), webhook(t)]);
  const alerts = await rig(t, to({ first, second }));
  await raised(alerts, () => alerts.raise('a.b', 'firing'));
  await alerts.until('the first is told', () => first.received.length === 1);
  await alerts.pass(15 * 60, 300);
  await alerts.pass(2, 1);
  await alerts.until('the second is told', () => second.received.length === 1);
  await alerts.ask('ack', { alert: 'a.b', by: 'operator', forMs: 8 * 3_600_000 });
  await alerts.pass(7.9 * 3_600, 1_800);
  t.deepEqual([first.received.length, second.received.length], [1, 1]);
  await alerts.pass(0.2 * 3_600, 300);
  await alerts.until('both are reminded', () => first.received.length === 2 && second.received.length === 2);
  await alerts.ask('silence', { pattern: 'a.*', by: 'operator', forMs: 3_600_000 });
  const { silences } = await alerts.ask('silence', { pattern: 'a.b', by: 'operator', forMs: 7_200_000 });
  t.is(silences.length, 2);
  await alerts.ask('unsilence', { id: silences[0]?.id });
  t.like((await alerts.view()).alerts[0], { state: 'silenced' }, 'the other silence still holds');
  await raised(alerts, () => alerts.raise('a.b', 'resolved'));
  await alerts.until(
    'all who heard hear the end',
    () => first.received.length === 3 && second.received.length === 3,
  );
  t.deepEqual(states(first), ['firing', 'reminder', 'resolved']);
  t.deepEqual(states(second), ['firing', 'reminder', 'resolved']);
  await t.throwsAsync(() => alerts.ask('ack', { alert: 'a.b', by: 'operator', forMs: 60_000 }), {
    message: /HF_ALERTS_STATE/,
  });
  await t.throwsAsync(() => alerts.ask('unsilence', { id: 'x' }), { message: /HF_ALERTS_UNKNOWN/ });
});

test('[O17] alerts wait for a receiver that has no address yet, and what is over by then is told to nobody', async (t) => {
  const dir = tempDir(t);
  const clock = new VirtualClock(Date.now());
  const receiver = await webhook(t);
  const before = await rig(t, to({ phone: undefined }), { dir, clock });
  await raised(before, () => {
    before.raise('a.lasts', 'firing');
    before.raise('a.ends', 'firing');
  });
  await raised(before, () => before.raise('a.ends', 'resolved'));
  t.like((await before.view()).receivers[0], { configured: false });
  await before.runtime.stop('restart');
  const after = await rig(t, to({ phone: receiver }), { dir, clock });
  await after.settled();
  await after.pass(2, 1);
  await after.until('it is told', () => receiver.received.length === 1);
  t.like(receiver.json()[0], { name: 'a.lasts', state: 'firing' });
  await after.pass(3_600, 600);
  t.is(receiver.received.length, 1);
});

test('[O17] a restart at any point between the raise and the answer loses nothing and sends nothing under another key', async (t) => {
  const receiver = await webhook(t);
  const dir = tempDir(t);
  const clock = new VirtualClock(Date.now());
  const run = () => rig(t, to({ phone: receiver }), { dir, clock });
  // Queued, and not yet posted.
  let alerts = await run();
  alerts.raise('a.b', 'firing');
  await alerts.settled();
  await alerts.runtime.stop('one');
  // The receiver has it, and its answer never comes: the process ends before.
  receiver.behave(() => {});
  alerts = await run();
  // At once, and without waiting until all is settled: the deadline of the post is of real time, and it must not pass.
  await clock.passUntil(until('it is posted', () => receiver.received.length === 1));
  // The post has the time that a stop gives to running effects.
  await clock.passUntil(alerts.runtime.stop('two'), 1_000);
  // Posted again, refused; the wait outlives the process.
  receiver.behave(status(500));
  alerts = await run();
  await alerts.pass(1);
  await alerts.until('it is posted again', () => receiver.received.length === 2);
  await alerts.settled();
  await alerts.runtime.stop('three');
  receiver.behave(status(200));
  alerts = await run();
  await alerts.pass(600, 60);
  await alerts.until('it is taken', () => receiver.received.length >= 3);
  await alerts.settled();
  await alerts.runtime.stop('four');
  alerts = await run();
  await alerts.pass(600, 60);
  t.is(receiver.received.length, 3);
  t.is(new Set(keys(receiver)).size, 1);
  t.like((await alerts.view()).receivers[0], { sent: 1, waiting: 0, lost: 0 });
  const records = await Array.fromAsync(alerts.runtime.services.log.read());
  t.true(records.some(({ event }) => event.type === 'RAISED'));
  t.false(
    records.some(({ event }) => event.type === 'ESCALATION'),
    'each start had the same ladder',
  );
  t.is(alerts.divergence(), undefined);
});

test('[O17] the list says who has taken an alert, and who has not: of a condition and of an event', async (t) => {
  const [well, broken] = await Promise.all([webhook(t), webhook(t)]);
  broken.behave(status(503));
  const alerts = await rig(t, {
    ...to({ well, broken }),
    routes: [{ steps: [{ to: ['well', 'broken'] }] }],
  });
  const lines = async () => {
    const printed: string[] = [];
    const terminal = { paint: (_: string, text: string) => text } as CommandContext['terminal'];
    show(
      await alerts.view(),
      { json: false, print: (line) => void printed.push(line), terminal },
      alerts.clock.now(),
    );
    return printed.join('\n');
  };
  alerts.raise('a.lasts', 'firing');
  alerts.raise('a.happened');
  await alerts.settled();
  t.regex(
    await lines(),
    /a\.lasts\n.*\n +since .*; not yet taken by well, broken\n/,
    'nobody has answered yet',
  );
  await alerts.pass(1);
  const answered = () => well.received.length === 1 && broken.received.length === 1;
  await alerts.until('both are posted to', answered);
  await alerts.settled();
  const seen = await lines();
  const known = 'taken by well; not yet taken by broken \\(it answered 503\\)';
  t.regex(seen, new RegExp(`firing +a\\.lasts\\n.*\\n +since .*; ${known}\\n`));
  t.regex(seen, new RegExp(`happened +a\\.happened\\n.*\\n +since .*; ${known}\\n`));
  await alerts.pass(86_500, 3_600);
  t.regex(await lines(), /a\.lasts\n.*\n +since .*; taken by well; not .*taken by broken/);
  alerts.raise('a.silent', 'firing');
  await alerts.ask('silence', { pattern: 'a.quiet', by: 'operator', forMs: 3_600_000 });
  alerts.raise('a.quiet', 'firing');
  await alerts.settled();
  t.regex(await lines(), /a\.quiet\n.*\n.*nobody has been notified/);
});

test('[O17] the text of an alert has its cause from the log, its place and its first step, in each format', async (t) => {
  const [json, ntfy, manager, api] = await Promise.all([webhook(t), webhook(t), webhook(t), webhook(t)]);
  const alerts = await rig(t, {
    receivers: {
      json: { url: json.url, batchSeconds: 0 },
      ntfy: { url: ntfy.url, batchSeconds: 0, format: 'ntfy' },
      manager: { url: manager.url, batchSeconds: 0, format: 'alertmanager' },
      api: { url: api.url, batchSeconds: 0, format: 'alertmanager-api' },
      // An outbox reports by a record of its own that this one is away.
      broken: { url: 'http://127.0.0.1:9/', batchSeconds: 0 },
    },
    routes: [
      { alerts: ['a.*'], steps: [{ to: ['broken'] }] },
      { steps: [{ to: ['json', 'ntfy', 'manager', 'api'] }] },
    ],
    rules: [],
    runbooks: 'https://docs.example.org/holdfast',
  });
  alerts.raise('a.b', 'firing');
  await alerts.settled();
  await alerts.pass(120, 1);
  await alerts.until('the outage is told', () =>
    [json, ntfy, manager, api].every(({ received }) => received.length > 0),
  );
  const { host, instance } = identityOf(alerts.dir);
  const text = json.json()[0].text;
  const [what, where, since, cause, first, more] = text.split('\n');
  t.regex(what, /^The receiver broken takes no alerts: it cannot be reached \(ECONNREFUSED\)/);
  t.is(where, `Where: ${host} (instance ${instance})`);
  t.regex(since, /^Since: 20\d\d-.* UTC$/);
  t.is(cause, 'Cause: alerts.outbox/broken has not accepted it: it cannot be reached (ECONNREFUSED)');
  t.regex(first, /^First: `holdfast doctor alerts` connects/);
  t.is(more, 'More: https://docs.example.org/holdfast/alerts.md#when-something-is-wrong');
  t.is(ntfy.received[0]?.body, text);
  t.is(
    ntfy.received[0]?.headers.click,
    'https://docs.example.org/holdfast/alerts.md#when-something-is-wrong',
  );
  t.is(manager.json()[0].alerts[0].annotations.description, text);
  t.is(api.json()[0][0].annotations.description, text);
});

test('[O17,O19] without telemetry and without a database a failed push of the watchdog reaches the webhook', async (t) => {
  const receiver = await webhook(t);
  const options = to(
    { phone: receiver },
    { rules: documentedRules.filter(({ name }) => name === 'watchdog-push-failing') },
  );
  const alerts = await rig(t, options, { plugins: [jobs()] });
  await alerts.until('the rule is evaluated', () => true);
  const verdict = async () => (await alerts.view()).rules[0];
  await alerts.pass(300);
  t.is((await verdict())?.verdict, 'no data', 'no run was there that could have been looked at');
  const { bus, clock } = alerts.runtime.services;
  const good = { phase: 'ended', job: 'clickstack-watchdog', outcome: 'succeeded' } as const;
  bus.publish(jobRun, { ...good, at: clock.now() + 30_000 }, { correlation: 'a-run-that-went-well' });
  // A look that began before the run was known may end after it.
  for (let looks = 0; looks < 10 && (await verdict())?.verdict === 'no data'; looks += 1)
    await alerts.pass(60);
  t.like(await verdict(), { verdict: 'ok', value: 0 }, 'none of those that are there has failed');
  const text = 'PUSH DELIVERY FAILED: HTTP 404: no such monitor (wget exit status 8)';
  const run = { job: 'clickstack-watchdog', at: clock.now() };
  bus.publish(jobRun, { phase: 'ended', ...run, outcome: 'failed', cause: 'exit', text });
  await alerts.pass(300);
  await alerts.pass(1);
  await alerts.until('the alert', () => receiver.received.length === 1);
  t.like(receiver.json()[0], {
    title: 'Observability watchdog push delivery FAILING',
    state: 'firing',
    value: 1,
  });
  t.regex(
    receiver.json()[0].text,
    /clickstack-watchdog-\d+: push delivery failed: the stack was healthy.*HTTP 404: no such monitor/,
  );
  // It ends after a whole hour of the clock without a failed run.
  await alerts.pass(2 * 3_600 + 600, 300);
  for (let looks = 0; looks < 20 && receiver.received.length < 2; looks += 1) await alerts.pass(60);
  t.like(receiver.json()[1], { state: 'resolved', labels: { severity: 'critical' } });
  t.is(alerts.divergence(), undefined);
});

test('[O17] a clock that jumps forward or back tells nothing twice', async (t) => {
  const receiver = await webhook(t);
  const dir = tempDir(t);
  const start = Date.now();
  const run = (at: number) => rig(t, to({ phone: receiver }), { dir, clock: new VirtualClock(at) });
  const told = async (alerts: Rig) => {
    await alerts.pass(2, 1);
    await alerts.settled();
  };
  const ofAlert = () => receiver.json().filter(({ name }) => name === 'a.b');
  let alerts = await run(start);
  alerts.raise('a.b', 'firing');
  await told(alerts);
  await alerts.until('it is told', () => ofAlert().length === 1);
  await alerts.settled();
  await alerts.runtime.stop('the clock is set back a day');
  alerts = await run(start - 86_400_000);
  await alerts.settled();
  alerts.raise('a.b', 'firing');
  await told(alerts);
  await alerts.until('the jump is told', () => receiver.received.length > ofAlert().length);
  t.is(ofAlert().length, 1);
  await alerts.runtime.stop('the clock is set forward a year');
  alerts = await run(start + 365 * 86_400_000);
  await told(alerts);
  t.is(ofAlert().length, 1, 'no reminder, because no time has passed');
  alerts.raise('a.b', 'resolved');
  await told(alerts);
  await alerts.until('its end', () => ofAlert().length === 2);
  t.deepEqual(
    ofAlert().map(({ kind }) => kind),
    ['firing', 'resolved'],
  );
});

test('[O17] a trial goes the whole way and shows the answer, over TLS too; no word of an address or token leaks', async (t) => {
  const dir = tempDir(t);
  const key = join(dir, 'key.pem');
  const cert = join(dir, 'cert.pem');
  execFileSync(
    'openssl',
    [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-days',
      '1',
      '-keyout',
      key,
      '-out',
      cert,
      '-subj',
      '/CN=127.0.0.1',
    ],
    { stdio: 'ignore' },
  );
  const plain = await webhook(t);
  const tls = await webhook(t, { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') });
  const secret = (name: string, text: string) => {
    const file = join(dir, name);
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  };
  const alerts = await rig(t, {
    receivers: {
      plain: {
        urlFile: secret('plain', plain.url),
        tokenFile: secret('token', 'token-canary-4711'),
        batchSeconds: 0,
      },
      tls: { urlFile: secret('tls', tls.url), batchSeconds: 0 },
      wrong: { urlFile: secret('wrong', 'ftp://host/path-canary-4711'), batchSeconds: 0 },
      nowhere: {},
    },
    routes: [{ steps: [{ to: ['plain'] }] }],
    rules: [],
  });
  plain.behave((answer, { path, headers }) => {
    answer.end(`you asked ${path} with ${headers.authorization}`);
  });
  const trial = async (receiver: string) => {
    const asked = alerts.ask<any>('test', { receiver, by: 'operator' });
    let done = false;
    asked.then(
      () => {
        done = true;
      },
      () => {
        done = true;
      },
    );
    await alerts.until(`the trial of ${receiver}`, () => done);
    return asked;
  };
  t.deepEqual(await trial('plain'), {
    receiver: 'plain',
    outcome: 'delivered',
    answer: { status: 200, body: 'you asked /[redacted] with Bearer [redacted]' },
  });
  t.is(plain.received[0]?.headers.authorization, 'Bearer token-canary-4711');
  t.like(await trial('tls'), {
    outcome: 'refused',
    reason: 'it cannot be reached (DEPTH_ZERO_SELF_SIGNED_CERT)',
  });
  const errors = [];
  for (const receiver of ['wrong', 'nowhere', 'nobody']) {
    errors.push(await t.throwsAsync(() => trial(receiver), { message: /HF_ALERTS_(RECEIVER|UNKNOWN)/ }));
  }
  const seen = [
    ...alerts.lines,
    JSON.stringify(await alerts.records()),
    JSON.stringify(await alerts.view()),
    JSON.stringify(alerts.runtime.health()),
    ...errors.map(String),
  ].join('\n');
  t.notRegex(seen, /canary/);
});
