/** Writes that a router's API would not have taken, as its configs and its history show them. */
import test, { type ExecutionContext } from 'ava';
import { type AlertRaised, alertRaised } from '../../../../src/core/contracts/alerts.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { RedisServer, until } from '../../../support/redis.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { type Config, Daemon } from './daemon.ts';
import { remote } from './rig.ts';

async function watched(t: ExecutionContext<any>, redisUrl?: string) {
  const daemon = await Daemon.start(t);
  const alerts: AlertRaised[] = [];
  const clock = new VirtualClock();
  const options = { url: daemon.url, lookMs: 86_400_000, ...(redisUrl !== undefined && { redisUrl }) };
  const rig = await remote(t, options, {
    clock,
    heard: ({ bus }) => {
      bus.subscribe(alertRaised, 'test', ({ payload }) => alerts.push(payload));
    },
  });
  const durable = () => rig.services.log.whenDurable(rig.services.log.lastSeq());
  const look = async () => {
    await rig.api.active();
    await clock.advance(0);
    await durable();
  };
  const known = () =>
    (rig.services.actors.snapshot('router.observed_config/default' as never) as any).context.known.length;
  const named = (name: string) => alerts.filter((alert) => alert.name === name);
  await look();
  return { ...rig, daemon, clock, alerts, look, named, known };
}

const rename = (name: string) => (config: Config) => {
  config.interface.vlan['eth1.40'].meta.name = name;
};

test.serial(
  '[R36] a hand edit on a real router raises the alert of the embedded one, and is recorded',
  async (t) => {
    const { daemon, look, named, known, services } = await watched(t);
    await daemon.appSaves(rename('Saved'));
    await look();
    t.is(known(), 2);
    t.deepEqual(named('router.store_changed'), []);
    daemon.editByHand(rename('Edited'));
    await look();
    await until('it is alerted', () => named('router.store_changed').length === 1);
    t.like(named('router.store_changed')[0], {
      severity: 'warning',
      labels: { expected: daemon.config.ncid, found: daemon.config.ncid },
    });
    await look();
    t.is(named('router.store_changed').length, 1, 'once');
    const reader = new SqliteReader(services.dataDir);
    t.teardown(() => reader.close());
    const records = (await Array.fromAsync(reader.read())).filter(({ actor }) =>
      /observed_config/.test(actor),
    );
    t.is(records.filter(({ event }) => event.type === 'SEEN').length, 3);
    t.notRegex(JSON.stringify(records), /Edited|Saved/, 'of the config only its fingerprint');
  },
);

test.serial(
  '[R4,R36] a body with the reqId of the stored config skips the check, and is alerted',
  async (t) => {
    const { daemon, look, named } = await watched(t);
    const stale = { ...daemon.config, ncid: 'f'.repeat(32) };
    rename('Bypassed')(stale);
    daemon.keepReqId = true;
    const answer = await fetch(`${daemon.url}/v1/config/set`, {
      method: 'POST',
      body: JSON.stringify(stale),
    });
    t.is(answer.status, 200);
    t.is(daemon.bypassed, 1);
    await look();
    await until('it is alerted', () => named('router.ncid_bypassed').length === 1);
    t.regex(named('router.ncid_bypassed')[0]?.text ?? '', /reqId/);
  },
);

test.serial('[R4,R36] the history of a real router shows a write with ignoreNcid', async (t) => {
  const redis = await RedisServer.start(t);
  const { daemon, look, named, clock, known, alerts } = await watched(t, redis.url);
  const history = redis.client(t, 0);
  /** As posted, with the ncid that the body bore, some seconds after the write. */
  const saves = async (name: string, posted: string | undefined, more = {}) => {
    const before = known();
    await daemon.appSaves(rename(name));
    await look();
    t.is(known(), before + 1);
    const { ncid, reqId: _, ...config } = daemon.config;
    const score = Math.floor(Number(ncid.slice(-13)) / 1000) + 2;
    await history.zadd(
      'history:networkConfig',
      score,
      JSON.stringify({ ...config, ...(posted && { ncid: posted }), ...more }),
    );
    return ncid;
  };
  const passes = async (isThere: () => boolean) => {
    for (let i = 0; i < 200 && !isThere(); i += 1) {
      await clock.advance(i % 20 === 0 ? 10_000 : 0);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  const first = await saves('One', daemon.config.ncid);
  await passes(() => alerts.length > 0);
  t.deepEqual(alerts, []);
  const second = await saves('Two', first);
  await passes(() => alerts.length > 0);
  t.deepEqual(alerts, [], 'each made from the one before');
  await saves('Three', first);
  await passes(() => named('router.ncid_bypassed').length > 0);
  t.like(named('router.ncid_bypassed'), [{ labels: { posted: first, current: second } }]);
  await saves('Four', daemon.config.ncid, { ignoreNcid: true });
  await passes(() => named('router.ncid_bypassed').length > 1);
  t.regex(named('router.ncid_bypassed')[1]?.text ?? '', /with ignoreNcid/);
  await saves('Five', undefined);
  await passes(() => named('router.ncid_bypassed').length > 2);
  t.like(named('router.ncid_bypassed')[2], { labels: { posted: 'none' } });
  t.is(alerts.length, 3);
});
