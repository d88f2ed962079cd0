import test, { type ExecutionContext } from 'ava';
import { RedisServer, until } from '../../support/redis.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { type Config, Rig, type RigOptions } from './rig.ts';

const LEG = 'eth1.30';
const OLD = '10.77.30.1/24';
const NEW = '10.77.31.1/24';
const append = { transactionOp: 'append', transID: 't1' };

function startOn(t: ExecutionContext, server: RedisServer, rig: RigOptions = {}): Promise<Rig> {
  const options = { redisUrl: server.url, storeCheckMs: 50, retryMs: 100, ...rig.options };
  return Rig.start(t, { ...rig, options });
}

/** Two routers on one Redis, each with a folder of its own; time is virtual when a clock is given. */
async function two(t: ExecutionContext, clock?: VirtualClock) {
  const server = await RedisServer.start(t);
  const rig = { ...(clock && { clock }) };
  const first = await startOn(t, server, rig);
  const second = await startOn(t, server, rig);
  return { server, first, second };
}

function changed(config: Config): Config {
  const next = structuredClone(config);
  next.interface.vlan[LEG].ipv4 = NEW;
  return next;
}

/** Lets a virtual clock bring the second to its next look at the store, and waits for what follows. */
async function hears(rig: Rig, clock: VirtualClock | undefined, ready: () => boolean): Promise<void> {
  await until('the other router has heard of it', async () => {
    await clock?.advance(50);
    return ready();
  });
  await rig.settled();
}

const pendingOf = (rig: Rig) => rig.actor().context.pending;
const address = async (rig: Rig) => (await rig.active()).interface.vlan[LEG].ipv4;

test.serial('[R6,R10] a transaction of one router holds off the saves of the other', async (t) => {
  const { first, second } = await two(t);
  const { ncid } = (await first.set(changed(await first.active()), append)).body;
  const seen = await second.active();
  t.is(seen.ncid, ncid);
  await hears(second, undefined, () => pendingOf(second)?.transID === 't1');
  const refused = await second.set(seen);
  t.deepEqual([refused.status, refused.body.code], [400, 'HF_ROUTER_TRANSACTION_PENDING']);
  const other = await second.set(seen, { transactionOp: 'append', transID: 't2' });
  t.is(other.body.code, 'HF_ROUTER_TRANSACTION_OTHER');
  t.is(await address(second), NEW);

  t.is((await first.set({}, { transactionOp: 'commit', transID: 't1' })).status, 200);
  await hears(second, undefined, () => pendingOf(second) === undefined);
  t.is((await second.set(await second.active())).status, 200, 'free again');
  for (const rig of [first, second]) t.is(rig.divergence(), undefined);
});

test.serial('[R6,R10] a save that races an append it has not heard of is refused by the store', async (t) => {
  const clock = new VirtualClock();
  const { first, second } = await two(t, clock); // no time passes, so the second never looks
  const before = await second.active();
  await first.set(changed(await first.active()), append);
  t.is((await second.set(before)).body.code, 'HF_ROUTER_NCID_MISMATCH');
  t.is((await second.set(before, { ignoreNcid: true })).status, 400, 'no bypass joins a transaction');
  t.is(await address(first), NEW);
});

test.serial(
  '[R6,R9] when the router that opened it is gone, the other reverts it at its deadline',
  async (t) => {
    const clock = new VirtualClock();
    const { server, first, second } = await two(t, clock);
    await first.set(changed(await first.active()), append);
    await hears(second, clock, () => pendingOf(second)?.transID === 't1');
    await first.runtime.stop('gone');
    await second.pass(110_000);
    t.is(await address(second), NEW, 'not before');
    await second.pass(15_000);
    t.is(await address(second), OLD);
    t.deepEqual((await second.state(LEG)).ip4, [OLD]);
    t.is(await server.client(t, 0).exists('holdfast:networkConfig:transaction'), 0);
    t.is((await second.set(await second.active())).status, 200);
    t.is(second.divergence(), undefined);

    const again = await startOn(t, server, { clock, dataDir: first.dataDir });
    await again.settled();
    t.is(pendingOf(again), undefined, 'it learns that its transaction is over');
    await again.pass(130_000);
    t.is((await again.active()).ncid, (await second.active()).ncid, 'and reverts nothing once more');
    t.is(again.divergence(), undefined);
  },
);

test.serial('[R6,R10] either router may end the transaction, and both know how it ended', async (t) => {
  const { first, second } = await two(t);
  const before = await first.active();
  await first.set(changed(before), append);
  await hears(second, undefined, () => pendingOf(second)?.transID === 't1');
  t.is((await second.set({}, { transactionOp: 'revert', transID: 't1' })).status, 200);
  await hears(first, undefined, () => pendingOf(first) === undefined);
  t.is(await address(first), OLD);
  t.deepEqual(first.actor().context.last, { outcome: 'reverted', transID: 't1' });

  const next = { transactionOp: 'append', transID: 't2' };
  t.is((await first.set(changed(await first.active()), next)).status, 200);
  await hears(second, undefined, () => pendingOf(second)?.transID === 't2');
  t.is((await second.set({}, { transactionOp: 'commit', transID: 't2' })).status, 200);
  await hears(first, undefined, () => pendingOf(first) === undefined);
  t.deepEqual(first.actor().context.last, { outcome: 'committed', transID: 't2' });
  t.is(await address(first), NEW);
  for (const rig of [first, second]) t.is(rig.divergence(), undefined);
});

test.serial(
  '[R6,R40] a router that starts meanwhile takes the transaction up with what is left of it',
  async (t) => {
    const clock = new VirtualClock();
    const server = await RedisServer.start(t);
    const first = await startOn(t, server, { clock });
    const { ncid } = (await first.set(await first.active())).body;
    await first.set({ ...changed(await first.active()), ncid }, append);
    const second = await startOn(t, server, { clock });
    await second.settled();
    t.like(pendingOf(second), { transID: 't1' });
    t.true(pendingOf(second).leftMs <= 120_000);
    await first.runtime.stop('gone');
    await second.pass(121_000);
    t.is(await address(second), OLD, 'what it had never seen itself is an entry of the history');
  },
);
