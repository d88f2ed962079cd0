/** The commands `holdfast router …` with the configuration that runs beside a real router. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { call, root, spawnHoldfast } from '../../../support/cli.ts';
import { RedisServer } from '../../../support/redis.ts';
import { tempDir } from '../../../support/temp.ts';
import { Daemon } from './daemon.ts';
import { writeRemoteConfig } from './instance.ts';

const LAB = '--set=interface.vlan.eth1.40.ipv4=10.77.41.1/24';

async function setUp(t: ExecutionContext<any>, redisUrl?: string) {
  const daemon = await Daemon.start(t);
  const cwd = tempDir(t);
  const config = writeRemoteConfig(cwd, { url: daemon.url, ...(redisUrl !== undefined && { redisUrl }) });
  const holdfast = (...argv: string[]) =>
    call(['router', ...argv, '--config', config, '--data-dir', join(cwd, 'data')], { cwd });
  return { daemon, cwd, holdfast };
}

/** Records a config in the history, as another daemon of the router does: whole, with its reqId. */
async function record(t: ExecutionContext<any>, redis: RedisServer, daemon: Daemon, score: number) {
  await redis.client(t, 0).zadd('history:networkConfig', score, JSON.stringify(daemon.config));
  await redis.client(t, 1).set('sysdb:networkConfig', JSON.stringify(daemon.config));
}

test.serial('[R31] the shipped configuration has every router command beside a real router', async (t) => {
  const daemon = await Daemon.start(t);
  const cwd = tempDir(t);
  for (const argv of [
    ['get', '--json'],
    ['legs', '--json'],
    ['secrets', '--json'],
    ['ra', '--json'],
    ['explain', '--from', 'fd5e:21aa:90c4:20::9', '--to', 'fd5e:21aa:90c4:10::5', '--json'],
    ['apply', LAB, '--dry-run', '--json'],
  ]) {
    const line = ['router', ...argv, '--config', join(root, 'plugins.config.ts'), '--data-dir', cwd];
    const { ended } = spawnHoldfast(t, line, { cwd, env: { HOLDFAST_ROUTER_URL: daemon.url } });
    const { code, out, err } = await ended;
    t.is(code, 0, `${argv.join(' ')}: ${err}`);
    t.notThrows(() => JSON.parse(out), out);
  }
});

test.serial(
  '[R31] apply changes a real router by its transaction, and a failed check reverts it',
  async (t) => {
    const { daemon, holdfast } = await setUp(t);
    const failed = await holdfast('apply', LAB, '--check', 'exit 7');
    t.is(failed.code, 3, failed.out + failed.err);
    t.is(daemon.leg('eth1.40').ipv4, '10.77.40.1/24');
    const kept = await holdfast('apply', LAB, '--check', 'true');
    t.is(kept.code, 0, kept.out + kept.err);
    t.is(daemon.leg('eth1.40').ipv4, '10.77.41.1/24');
    t.is(daemon.transaction, undefined);
    t.is(daemon.bypassed, 0, 'the reqId that the daemon serves is not posted back');
  },
);

test.serial("[R31,R13] history, diff and restore read the router's Redis", async (t) => {
  const redis = await RedisServer.start(t);
  const { daemon, holdfast } = await setUp(t, redis.url);
  await record(t, redis, daemon, 1_800_000_000);
  t.is((await holdfast('apply', LAB, '--yes')).code, 0);
  await record(t, redis, daemon, 1_800_000_060);
  const listed = JSON.parse((await holdfast('history', '--json')).out).entries;
  t.is(listed.length, 2);
  t.like(listed[0], { score: 1_800_000_060, ncid: daemon.config.ncid });
  t.deepEqual(listed[0].changed, ['interface.vlan.eth1.40.ipv4']);
  t.like(listed[1], { changed: [], uncompared: true });
  const diff = await holdfast('diff', '2', 'active');
  t.is(diff.out, '~ interface.vlan.eth1.40.ipv4  "10.77.40.1/24" → "10.77.41.1/24"\n', diff.err);
  const restored = await holdfast('restore', '2', '--check', 'true');
  t.is(restored.code, 0, restored.out + restored.err);
  t.is(daemon.leg('eth1.40').ipv4, '10.77.40.1/24');
  t.is((await holdfast('diff', '2')).out, 'No difference.\n');
});

test.serial('[R31] of the config in the API and the one in Redis, diff takes the one in force', async (t) => {
  const redis = await RedisServer.start(t);
  const { daemon, holdfast } = await setUp(t, redis.url);
  await record(t, redis, daemon, 1_800_000_000);
  await daemon.appSaves((config) => {
    config.interface.vlan['eth1.40'].ipv4 = '10.77.42.1/24';
  });
  t.regex((await holdfast('diff', '1', 'active')).out, /"10\.77\.42\.1\/24"/);
});

test.serial(
  '[R31] without a Redis, history and diff say what is missing and which setting gives it',
  async (t) => {
    const { holdfast, daemon } = await setUp(t);
    for (const argv of [['history'], ['diff', '2'], ['restore', '2', '--yes']]) {
      const { code, err } = await holdfast(...argv);
      t.is(code, 1);
      t.regex(err, /HF_ROUTER_HISTORY/);
      t.regex(
        err.replace(/\s+/g, ' '),
        /HOLDFAST_REDIS_URL is not set.*Set HOLDFAST_REDIS_URL \(the option redisUrl/,
      );
    }
    const other = await holdfast('history', '--url', daemon.url);
    t.regex(other.err.replace(/\s+/g, ' '), /its API serves none \(404\).*HOLDFAST_REDIS_URL/);
    t.notRegex(other.err, /Check that the router runs/);
  },
);

test.serial('[R31,R30] a Redis that is no router’s, is empty or does not answer is named', async (t) => {
  const redis = await RedisServer.start(t);
  const { holdfast, daemon } = await setUp(t, redis.url);
  t.regex((await holdfast('history')).err, /sysdb:networkConfig: key absent in every database/);
  await redis.client(t, 1).set('sysdb:networkConfig', JSON.stringify(daemon.config));
  const empty = await holdfast('history');
  t.is(empty.code, 0);
  t.is(empty.out, 'no writes yet\n');
  t.regex(
    empty.err.replace(/\s+/g, ' '),
    /history:networkConfig in database 0 of the router's Redis is empty/,
  );
  t.regex((await holdfast('diff', '1')).err, /HF_ROUTER_ENTRY/);
  await redis.down();
  t.regex((await holdfast('history')).err, /HF_ROUTER_STORE_UNAVAILABLE/);
});

test.serial(
  '[R4,R35] a copy of what a real router serves can be applied: its reqId is left out',
  async (t) => {
    const { holdfast, cwd, daemon } = await setUp(t);
    t.truthy(daemon.config.reqId);
    const file = join(cwd, 'copy.json');
    t.is((await holdfast('get', '--out', file)).code, 0);
    writeFileSync(file, readFileSync(file, 'utf8').replace('10.77.40.1/24', '10.77.41.1/24'));
    const { code, out, err } = await holdfast('apply', file, '--yes');
    t.is(code, 0, out + err);
    t.is(daemon.leg('eth1.40').ipv4, '10.77.41.1/24');
  },
);
