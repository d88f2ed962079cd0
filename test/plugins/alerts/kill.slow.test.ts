import test from 'ava';
import type { ColumnarDatabase } from '../../../src/core/contracts/columnar-database.ts';
import { status, webhook } from '../../support/webhook.ts';
import { killableAlerts } from './killable.ts';
import { rig } from './rig.ts';

test('[O17] kill -9 while a receiver is posted to: the same post comes again under its key, and nothing is lost', async (t) => {
  const receiver = await webhook(t);
  const options = {
    receivers: { phone: { url: receiver.url, batchSeconds: 0 } },
    routes: [{ steps: [{ to: ['phone'] }] }],
    rules: [],
  };
  const { start, raise, until, holdfast } = killableAlerts(t, options, 60_000);
  // It has the post, and its answer does not come.
  receiver.behave(() => {});
  const kill = await start();
  await raise('a.first');
  await until('it is posted', () => receiver.received.length === 1);
  await raise('a.second');
  await kill('SIGKILL');

  const killAgain = await start();
  await until('it is posted again', () => receiver.received.length === 2);
  await killAgain('SIGKILL');

  receiver.behave(status(200));
  const stop = await start();
  await until('all of it is there', () => receiver.received.length === 4);
  await stop('SIGTERM');
  t.deepEqual(
    receiver.json().map(({ name }) => name),
    ['a.first', 'a.first', 'a.first', 'a.second'],
  );
  const [first, second, third, other] = receiver.received.map(({ headers }) => headers['idempotency-key']);
  t.deepEqual([second, third], [first, first]);
  t.not(other, first);
  const bodies = receiver.received.slice(0, 3).map(({ body }) => body);
  t.is(new Set(bodies).size, 1, 'one key, one body');
  const replayed = await holdfast('replay', 'verify');
  t.is(replayed.code, 0, replayed.err);
});

test('[O17] a thousand rules are looked at four at a time, each once an interval, and a start leaves them as they were', async (t) => {
  const COUNT = 1_000;
  let asked = 0;
  let running = 0;
  let most = 0;
  const database = {
    schema: async () => ({ attribute: () => "''" }),
    async query() {
      asked += 1;
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      return [{ samples: '1', value: 0 }];
    },
  } as unknown as ColumnarDatabase;
  const rules = Array.from({ length: COUNT }, (_, index) => ({
    name: `rule-${index}`,
    title: `Rule ${index}`,
    measure: { table: 'gauge' as const, metric: `m.${index}` },
    above: 0,
    window: '1h',
    every: '1m',
    onNoData: 'ok' as const,
  }));
  const options = { receivers: {}, routes: [], rules };
  const alerts = await rig(t, options, { database });
  await alerts.until('each has looked', () => asked === COUNT);
  await alerts.settled();
  for (const round of [2, 3]) {
    await alerts.pass(60);
    await alerts.until('each has looked again', () => asked === round * COUNT);
    await alerts.settled();
  }
  t.is(most, 4);
  const { rules: seen, alerts: raised } = await alerts.view();
  t.is(seen.filter(({ verdict }) => verdict === 'ok').length, COUNT);
  t.is(raised.length, 0);
  const records = (await alerts.records()).length;
  t.true(records < 9 * COUNT, `${records} records`);
  t.is(alerts.divergence(), undefined);
  await alerts.runtime.stop('again');
  const again = await rig(t, options, { database, dir: alerts.dir, clock: alerts.clock });
  const { rules: defined } = await again.ask<{ rules: { change: string }[] }>('bootstrap');
  t.deepEqual([...new Set(defined.map(({ change }) => change))], ['unchanged']);
  t.is((await again.view()).rules.length, COUNT);
});
