import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { status, webhook } from '../../support/webhook.ts';
import { killableAlerts } from './killable.ts';
import { rig } from './rig.ts';

const to = (url: string) => ({
  receivers: { manager: { url, format: 'alertmanager-api' as const, batchSeconds: 0 } },
  routes: [{ steps: [{ to: ['manager'] }] }],
  rules: [],
});

test('[O17] all that fires is told again in one post a minute, over restarts and failures too, and nothing when nothing fires', async (t) => {
  const receiver = await webhook(t);
  const options = to(receiver.url);
  let alerts = await rig(t, options);
  const { dir, clock } = alerts;
  const told = () =>
    receiver
      .json()
      .at(-1)
      .map(({ labels }: any) => labels.store);
  for (let store = 0; store < 60; store += 1) alerts.raise('store.full', 'firing', { store: `${store}` });
  await alerts.until('each is told', () => receiver.json().flat().length === 60);
  await alerts.settled();
  const before = receiver.received.length;
  for (let minute = 1; minute <= 5; minute += 1) {
    await alerts.pass(60, 10);
    await alerts.until('it is told again', () => receiver.received.length === before + minute);
    t.is(told().length, 60);
    await alerts.settled();
  }
  const [first] = receiver.json().at(-1);
  t.is(Math.round((Date.parse(first.endsAt) - clock.now()) / 60_000), 4, 'the end is a few minutes ahead');

  // An acknowledged alert still fires, a silenced one that nobody was told of is not told here.
  await alerts.ask('ack', { alert: 'store.full{store=1}', by: 'operator', forMs: 3_600_000 });
  await alerts.ask('silence', { pattern: 'quiet.*', by: 'operator', forMs: 3_600_000 });
  alerts.raise('quiet.one', 'firing');
  for (let store = 2; store < 60; store += 1) alerts.raise('store.full', 'resolved', { store: `${store}` });
  await alerts.settled();
  await alerts.runtime.stop('restart');
  alerts = await rig(t, options, { dir, clock });
  await alerts.pass(60, 10);
  await alerts.until('two are left', () => told().toSorted().join() === '0,1');

  receiver.behave(status(503));
  const failing = receiver.received.length;
  await alerts.pass(180, 10);
  await alerts.until('it is tried each minute', () => receiver.received.length >= failing + 3);
  t.is(receiver.received.length, failing + 3, 'and not more often');
  t.regex((await alerts.view()).receivers[0]?.failing?.reason ?? '', /503/);
  receiver.behave(status(200));
  await alerts.pass(60, 10);
  await alerts.until('it is back', () => receiver.received.length === failing + 4);
  await alerts.settled();
  t.is((await alerts.view()).receivers[0]?.failing, undefined);

  for (const store of ['0', '1']) alerts.raise('store.full', 'resolved', { store });
  await alerts.settled();
  await alerts.pass(1);
  await alerts.pass(60, 10);
  const over = receiver.received.length;
  await alerts.pass(600, 60);
  t.is(receiver.received.length, over);
  t.is(alerts.divergence(), undefined);
});

test('[O17] kill -9 between and during repetitions: the firing alerts are told again within a minute of the start', async (t) => {
  const receiver = await webhook(t);
  const { start, raise, until, holdfast } = killableAlerts(t, to(receiver.url), 90_000);
  const kill = await start();
  await raise('a.b');
  await until('it is told', () => receiver.received.length === 1);
  const toldAt = performance.now();
  // Until the answer is recorded.
  await delay(2_000);
  await kill('SIGKILL');

  // It has the repetition, and its answer does not come.
  receiver.behave(() => {});
  const killAgain = await start();
  await until('it is told again', () => receiver.received.length === 2);
  t.true(performance.now() - toldAt > 55_000, 'a restart does not hasten it');
  await killAgain('SIGKILL');

  receiver.behave(status(200));
  const stop = await start();
  await until('the repetition is made again', () => receiver.received.length === 3);
  await delay(2_000);
  t.is(receiver.received.length, 3, 'once');
  await stop('SIGTERM');
  for (const [{ labels, endsAt }] of receiver.json()) {
    t.is(labels.alertname, 'a.b');
    t.true(Date.parse(endsAt) > Date.now());
  }
  const replayed = await holdfast('replay', 'verify');
  t.is(replayed.code, 0, replayed.err);
});
