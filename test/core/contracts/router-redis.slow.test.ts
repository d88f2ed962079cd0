import test from 'ava';
import { diagnoseRedis } from '../../../src/plugins/router/redis.ts';
import { RedisServer } from '../../support/redis.ts';

const KEY = 'sysdb:networkConfig';
const HISTORY = 'history:networkConfig';

test.serial('[R30] a reader at the wrong index is told where the key is, and where it looked', async (t) => {
  const server = await RedisServer.start(t);
  await server.client(t, 1).set(KEY, '{}');
  await server.client(t, 0).zadd(HISTORY, 1, '{}');
  const wrong = await diagnoseRedis(`${server.url}/0`);
  t.like(wrong, { reachable: true, ok: false, database: 0, url: `${server.url}/0` });
  t.deepEqual([wrong.configIn, wrong.historyIn], [[1], [0]]);
  t.regex(wrong.lines[0] ?? '', /key absent in database 0, present in database 1/);
  t.regex(wrong.lines.join('\n'), /leave the index out of the URL/);

  for (const url of [server.url, `${server.url}/1`]) {
    const right = await diagnoseRedis(url);
    t.like(right, { ok: true, database: 1 });
    t.regex(right.lines[0] ?? '', /key present in database 1/);
  }
});

test.serial(
  '[R30] an empty Redis, keys in the wrong place and a history of another type are told apart',
  async (t) => {
    const server = await RedisServer.start(t, { args: ['--databases', '4'] });
    const empty = await diagnoseRedis(server.url);
    t.like(empty, { reachable: true, ok: false });
    t.regex(empty.lines[0] ?? '', /absent in every database/);
    t.regex(empty.lines.join('\n'), /no write has been recorded yet/);

    await server.client(t, 0).set(KEY, '{}');
    await server.client(t, 1).zadd(HISTORY, 1, '{}');
    const swapped = await diagnoseRedis(server.url);
    t.false(swapped.ok);
    t.regex(swapped.lines.join('\n'), /networkConfig: key absent in database 1, present in database 0/);
    t.regex(
      swapped.lines.join('\n'),
      /history:networkConfig: key absent in database 0, present in database 1/,
    );

    await server.client(t, 0).set(HISTORY, 'text');
    t.regex((await diagnoseRedis(server.url)).lines.join('\n'), /a string in database 0, not a sorted set/);
  },
);

test.serial(
  '[R32] a Redis that is away, or refuses the password, is told with its reason and without it',
  async (t) => {
    const server = await RedisServer.start(t, { password: 'CANARY-right' });
    t.true((await diagnoseRedis(server.url)).reachable);
    const url = `redis://:CANARY-wrong@127.0.0.1:${server.port}`;
    const refused = await diagnoseRedis(url, 1_000);
    t.like(refused, { reachable: false, ok: false, url: `redis://127.0.0.1:${server.port}` });
    t.regex(refused.lines[0] ?? '', /WRONGPASS|invalid/);
    t.notRegex(JSON.stringify(refused), /CANARY/);
    const without = await diagnoseRedis(`redis://127.0.0.1:${server.port}`, 1_000);
    t.regex(without.lines[0] ?? '', /NOAUTH|Authentication/i);
    await server.down();
    t.regex((await diagnoseRedis(url, 1_000)).lines[0] ?? '', /no answer from .*ECONNREFUSED/);
    t.regex((await diagnoseRedis('CANARY', 1_000)).lines[0] ?? '', /not the URL of a Redis/);
  },
);
