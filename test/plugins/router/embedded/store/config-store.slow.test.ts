import test, { type ExecutionContext } from 'ava';
import type { ConfigStore, ConfigWrite } from '../../../../../src/core/contracts/config-store.ts';
import { RedisClient } from '../../../../../src/core/host/redis/client.ts';
import { openVault } from '../../../../../src/core/host/secrets/vault.ts';
import { asEpochMs } from '../../../../../src/core/kernel/ids.ts';
import { RedisConfigStore } from '../../../../../src/plugins/router/embedded/store/redis-config-store.ts';
import { SqliteConfigStore } from '../../../../../src/plugins/router/embedded/store/sqlite-config-store.ts';
import { RedisServer } from '../../../../support/redis.ts';
import { tempDir } from '../../../../support/temp.ts';

/** One place that several stores can be opened on, as several processes would. */
type Place = (historyLimit?: number) => Promise<ConfigStore>;

const places: Record<string, (t: ExecutionContext) => Promise<Place>> = {
  async sqlite(t) {
    const dataDir = tempDir(t);
    return (historyLimit = 500) =>
      SqliteConfigStore.open({ dataDir, vault: openVault(dataDir), historyLimit });
  },
  async redis(t) {
    const { url } = await RedisServer.start(t);
    return onRedis(t, url);
  },
};

function onRedis(t: ExecutionContext, url: string): Place {
  const vault = openVault(tempDir(t));
  return async (historyLimit = 500) => {
    const client = await RedisClient.open({ url, name: 'test' });
    t.true(await client.ready(30_000));
    return new RedisConfigStore({ client, historyLimit, vault: () => vault });
  };
}

const write = (ncid: string, expected: string | undefined, more: Partial<ConfigWrite> = {}): ConfigWrite => ({
  ncid,
  expected,
  body: JSON.stringify({ ncid, wlan: { psk: 'psk-4711 é' } }),
  at: asEpochMs(1_800_000_000_999),
  op: 'save',
  who: 'test',
  changed: ['wlan.psk'],
  ...more,
});

for (const [name, make] of Object.entries(places)) {
  const setUp = async (t: ExecutionContext): Promise<Place> => {
    const place = await make(t);
    return async (limit) => {
      const store = await place(limit);
      t.teardown(() => store.close());
      return store;
    };
  };

  test.serial(`[R2] ${name}: what was saved is read back as it was, also after reopening`, async (t) => {
    const open = await setUp(t);
    const store = await open();
    t.is(await store.active(), undefined);
    t.true(await store.save(write('n1', undefined)));
    t.is((await store.active())?.body, write('n1', undefined).body);
    await store.close();
    t.like(await (await open()).active(), { ncid: 'n1', body: write('n1', undefined).body });
  });

  test.serial(`[R3] ${name}: a save that expects another ncid writes nothing`, async (t) => {
    const store = await (await setUp(t))();
    await store.save(write('n1', undefined));
    t.false(await store.save(write('n2', 'n0')));
    t.false(await store.save(write('n2', undefined)));
    t.is((await store.active())?.ncid, 'n1');
    t.is((await store.history(10)).length, 1);
  });

  test.serial(`[R3] ${name}: of two stores that race, one wins each ncid`, async (t) => {
    const open = await setUp(t);
    const [a, b] = [await open(), await open()];
    await a.save(write('n0', undefined));
    for (let i = 1; i <= 20; i += 1) {
      const expected = (await a.active())?.ncid;
      const saves = [a.save(write(`a${i}`, expected)), b.save(write(`b${i}`, expected))];
      const saved = await Promise.all(saves);
      t.deepEqual(saved.toSorted(), [false, true]);
      const [one, other] = [await a.active(), await b.active()];
      t.is(one?.ncid, saved[0] ? `a${i}` : `b${i}`);
      t.is(one?.body, other?.body);
    }
    t.is((await a.history(100)).length, 21);
  });

  test.serial(
    `[R13] ${name}: history is newest first, scored in epoch seconds, from the first config on, and trimmed`,
    async (t) => {
      const store = await (await setUp(t))(3);
      await store.save(write('z0', undefined, { op: 'seed' }));
      t.deepEqual(await store.history(10), []);
      // Written within one second, in an order that is not the one of their texts.
      const order = ['z0', 'm1', 'q2', 'a3', 'x4', 'c5'];
      for (let i = 1; i <= 5; i += 1)
        await store.save(write(order[i]!, order[i - 1], { op: 'append', changed: [`field${i}`] }));
      const history = await store.history(10);
      t.deepEqual(
        history.map(({ ncid, score, op, who, changed }) => [ncid, score, op, who, changed[0]]),
        [
          ['c5', 1_800_000_000, 'append', 'test', 'field5'],
          ['x4', 1_800_000_000, 'append', 'test', 'field4'],
          ['a3', 1_800_000_000, 'append', 'test', 'field3'],
        ],
      );
      t.deepEqual(await store.entry('c5'), { ncid: 'c5', body: write('c5', 'x4').body });
      t.is(await store.entry('z0'), undefined, 'it has been trimmed');
      t.deepEqual(
        (await store.history(2)).map(({ ncid }) => ncid),
        ['c5', 'x4'],
      );
      await store.save(write('d6', 'c5', { at: asEpochMs(1_800_000_001_000) }));
      t.deepEqual(
        (await store.history(2)).map(({ ncid }) => ncid),
        ['d6', 'c5'],
      );
      t.is((await store.history(10)).length, 3);
      // From here on whole seconds go, of two writes and of one.
      const later = ['d6', 'e7', 'f8', 'g9'];
      for (let i = 1; i <= 3; i += 1)
        await store.save(write(later[i]!, later[i - 1], { at: asEpochMs(1_800_000_001_000 + 1_000 * i) }));
      t.deepEqual(
        (await store.history(10)).map(({ ncid }) => ncid),
        ['g9', 'f8', 'e7'],
      );
    },
  );

  test.serial(`${name}: the config from before the first write is the oldest entry`, async (t) => {
    const open = await setUp(t);
    const store = await open();
    const first = write('z0', undefined, { op: 'seed' });
    await store.save(first);
    await store.save(write('a1', 'z0'));
    await store.active();
    await store.save(write('b2', 'a1'));
    const entries = await store.history(10);
    t.deepEqual(
      entries.map(({ ncid, op }) => [ncid, op]),
      [
        ['b2', 'save'],
        ['a1', 'save'],
        ['z0', 'seed'],
      ],
    );
    t.false(JSON.stringify(entries).includes('psk-4711'));
    t.deepEqual(await (await open()).entry('z0'), { ncid: 'z0', body: first.body });
    t.is(await store.entry('none'), undefined);
  });

  test.serial(`${name}: a closed store answers with an error, not with silence`, async (t) => {
    const store = await (await setUp(t))();
    await store.close();
    await t.throwsAsync(store.active(), { message: /HF_ROUTER_STORE/ });
    await t.throwsAsync(store.save(write('n1', undefined)), { message: /HF_ROUTER_STORE/ });
  });

  test.serial(`[R2] ${name}: a config of a megabyte is stored whole`, async (t) => {
    const store = await (await setUp(t))();
    const body = JSON.stringify({ ncid: 'big', extra: 'é'.repeat(500_000) });
    t.true(await store.save(write('big', undefined, { body })));
    t.is((await store.active())?.body, body);
    t.is((await store.entry('big'))?.body, body);
  });
}

test.serial('redis: garbage that a neighbour left is named by its key, or passed over', async (t) => {
  const server = await RedisServer.start(t);
  const store = await onRedis(t, server.url)();
  t.teardown(() => store.close());
  await store.save(write('n1', undefined));
  await store.save(write('n2', 'n1'));
  const [configs, others] = [server.client(t, 1), server.client(t, 0)];

  const transactions = [
    'garbage',
    'null',
    '{"transID":"t","who":"w","previous":"n1","deadline":"soon"}',
    '{"transID":7,"who":{"a":1},"previous":[],"deadline":1e300}',
  ];
  for (const text of transactions) {
    await others.set('holdfast:networkConfig:transaction', text);
    await t.throwsAsync(store.active(), {
      code: 'HF_ROUTER_STORE',
      message: /holdfast:networkConfig:transaction/,
    });
  }
  await others.del('holdfast:networkConfig:transaction');
  t.is((await store.active())?.ncid, 'n2');

  const sha = 'a'.repeat(40);
  for (const text of ['short', `${sha}null`, `${sha}{"ncid":5,"changed":7}`, `${sha}[[[[`])
    await others.lpush('holdfast:networkConfig:writes', text);
  for (const text of ['x', 'null', '{"ncid":1}']) {
    await others.set('holdfast:networkConfig:first', text);
    const entries = await store.history(10);
    t.deepEqual(
      entries.map(({ ncid, op, who }) => [ncid, op, who]),
      [
        ['n2', 'save', 'test'],
        ['n1', 'save', 'test'],
      ].slice(0, entries.length),
    );
    t.is(await store.entry('n0'), undefined);
  }

  const levels = 100_000;
  await configs.set('sysdb:networkConfig', `{"ncid":"deep","a":${'['.repeat(levels)}${']'.repeat(levels)}}`);
  await t.throwsAsync(store.active(), { code: 'HF_ROUTER_STORE', message: /sysdb:networkConfig/ });
});
