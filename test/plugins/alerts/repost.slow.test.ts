import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
import { readRuntimeFile } from '../../../src/core/host/runtime/runtime-file.ts';
import { call, root, spawnHoldfast, writeConfig } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';
import { status, webhook } from '../../support/webhook.ts';
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
  const cwd = tempDir(t);
  const dataDir = join(cwd, 'data');
  const config = writeConfig(
    cwd,
    `const raiser = definePlugin({
       name: 'raiser',
       options: z.strictObject({}),
       register: (context) => context.control((surface, { bus, log }) => surface.post('/raise', async () => {
         bus.publish(alertRaised, { name: 'a.b', severity: 'critical', text: 'It is.', labels: { state: 'firing' } });
         await log.whenDurable(log.lastSeq());
         return {};
       })),
     });
     export default defineConfig({ plugins: [alerts(${JSON.stringify(to(receiver.url))}), raiser()] });`,
    [
      `import { alerts } from '${root}src/plugins/alerts/index.ts';`,
      `import { alertRaised } from '${root}src/core/contracts/alerts.ts';`,
    ],
  );
  const until = async (what: string, holds: () => unknown) => {
    const end = performance.now() + 90_000;
    while (!holds()) {
      if (performance.now() > end) throw new Error(`it did not come about: ${what}`);
      await delay(10);
    }
  };
  const start = async () => {
    const { child, ended, err } = spawnHoldfast(t, ['start', '--data-dir', dataDir, '--config', config], {
      cwd,
    });
    await until('it runs', () => child.exitCode !== null || readRuntimeFile(dataDir)?.pid === child.pid);
    t.is(child.exitCode, null, err());
    return async (signal: NodeJS.Signals) => {
      child.kill(signal);
      await ended;
    };
  };
  const kill = await start();
  t.is((await postControl(dataDir, '/raise', {}, AbortSignal.timeout(20_000))).status, 200);
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
  const replayed = await call(['replay', 'verify', '--data-dir', dataDir, '--config', config], { cwd });
  t.is(replayed.code, 0, replayed.err);
});
