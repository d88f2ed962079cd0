import test from 'ava';
import type { NetworkConfig, RouterApi, SetAnswer } from '../../../src/core/contracts/router.ts';
import { Coalescer, Mutex } from '../../../src/core/host/concurrency.ts';
import { LegPoster } from '../../../src/plugins/reconciler/router-access.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const legs = ['eth1.10', 'eth1.20', 'eth1.40'].map((intf, index) => ({
  intf,
  address: `fd00:${index}::1/64`,
}));
const { signal } = new AbortController();

/** A router whose answers a test gives by hand. */
function bench(decided: () => Promise<void> = async () => {}) {
  const clock = new VirtualClock();
  const reads: PromiseWithResolvers<void>[] = [];
  const sets: { body: any; answer: (answer: SetAnswer) => void }[] = [];
  let ncid = 'n1';
  const active = (): NetworkConfig => ({
    ncid,
    interface: { vlan: Object.fromEntries(legs.map(({ intf }) => [intf, {}])) },
  });
  const api: RouterApi = {
    async active() {
      const config = active();
      const read = Promise.withResolvers<void>();
      reads.push(read);
      await read.promise;
      return config;
    },
    set: (body) => new Promise((answer) => sets.push({ body, answer })),
    interfaceState: async () => undefined,
    reapply: async () => ({ kind: 'applied' }),
  };
  const poster = new LegPoster({ api, clock, batchMs: 5, decided, random: () => 0.123_456 });
  const add = (index: number, ncid = 'n1', own = signal) =>
    poster.add({ leg: legs[index]!, ncid, correlation: `c${index}`, signal: own });
  const read = () => poster.reader.read(signal);
  return { clock, reads, sets, poster, add, read, saveBySomebody: (next: string) => (ncid = next) };
}

/** Reads once, so that the config of `n1` is at hand. */
async function readOnce({ clock, reads, read }: ReturnType<typeof bench>) {
  const reading = read();
  await clock.advance(5);
  reads.at(-1)!.resolve();
  await reading;
}

test('[R24] requests of one moment are one piece of work, which begins after the last of them', async (t) => {
  const clock = new VirtualClock();
  const work: (readonly string[])[] = [];
  const coalescer = new Coalescer<string, number>({
    clock,
    windowMs: 5,
    ready: async () => {},
    work: async (requests) => work.push(requests),
  });
  const first = [coalescer.add('a'), coalescer.add('b')];
  await clock.advance(4);
  first.push(coalescer.add('c'));
  t.deepEqual(work, []);
  await clock.advance(1);
  t.deepEqual(await Promise.all(first), [1, 1, 1]);
  const second = coalescer.add('d');
  await clock.advance(5);
  t.is(await second, 2);
  t.deepEqual(work, [['a', 'b', 'c'], ['d']]);
});

test('[R24] a moment lasts until it is ready, and a failure reaches all who asked', async (t) => {
  const clock = new VirtualClock();
  const gate = Promise.withResolvers<void>();
  const coalescer = new Coalescer<string, never>({
    clock,
    windowMs: 5,
    ready: () => gate.promise,
    work: async (asked) => {
      throw new Error(asked.join());
    },
  });
  const a = t.throwsAsync(coalescer.add('a'), { message: 'a,b' });
  await clock.advance(100);
  const b = t.throwsAsync(coalescer.add('b'), { message: 'a,b' });
  gate.resolve();
  await Promise.all([a, b]);
});

test('a mutex runs one piece of work after another, also after one that failed', async (t) => {
  const mutex = new Mutex();
  const order: string[] = [];
  const gate = Promise.withResolvers<void>();
  const first = mutex.run(async () => {
    await gate.promise;
    order.push('first');
    throw new Error('no');
  });
  const second = mutex.run(async () => void order.push('second'));
  const free = mutex.idle().then(() => order.push('free'));
  gate.resolve();
  await t.throwsAsync(first, { message: 'no' });
  await Promise.all([second, free]);
  t.deepEqual(order, ['first', 'second', 'free']);
});

test('[R24] wishes for one ncid go into one post of the config that was read with it', async (t) => {
  const rig = bench();
  await readOnce(rig);
  const wishes = [rig.add(0), rig.add(1), rig.add(2)];
  await rig.clock.advance(5);
  t.is(rig.reads.length, 1);
  t.is(rig.sets.length, 1);
  t.deepEqual(rig.sets[0]!.body, {
    ncid: 'n1',
    interface: { vlan: Object.fromEntries(legs.map(({ intf, address }) => [intf, { ipv6: [address] }])) },
  });
  rig.sets[0]!.answer({ kind: 'conflict' });
  const answers = await Promise.all(wishes);
  t.deepEqual(answers[0], {
    answer: { kind: 'conflict' },
    posted: legs.map(({ intf, address }) => `${intf} ${address}`),
    jitter: 0.123,
  });
  t.is(answers[0], answers[1], 'one answer, and one jitter, for all');
});

test('[R24] legs whose records became durable in different commits are still one post', async (t) => {
  const commits = Promise.withResolvers<void>();
  const rig = bench(() => commits.promise);
  const reading = rig.read();
  await rig.clock.advance(40);
  const alsoReading = rig.read();
  commits.resolve();
  await rig.clock.advance(5);
  t.is(rig.reads.length, 1);
  rig.reads[0]!.resolve();
  t.is(await reading, await alsoReading);
});

test('[R24] a read does not begin while a write of ours is under way', async (t) => {
  const rig = bench();
  await readOnce(rig);
  const wish = rig.add(0);
  await rig.clock.advance(5);
  const reading = rig.read();
  await rig.clock.advance(50);
  t.is(rig.reads.length, 1, 'it waits');
  rig.saveBySomebody('n2');
  rig.sets[0]!.answer({ kind: 'applied', ncid: 'n2' });
  await wish;
  await rig.clock.advance(0);
  rig.reads[1]!.resolve();
  t.is((await reading).ncid, 'n2');
});

test('[R25] a wish for a config that is no longer at hand reads anew, and loses when somebody saved', async (t) => {
  const rig = bench();
  await readOnce(rig);
  await rig.clock.advance(30_000);
  const still = rig.add(0);
  await rig.clock.advance(5);
  rig.reads[1]!.resolve();
  await rig.clock.advance(0);
  t.is(rig.sets.length, 1, 'the same ncid is the same config');
  rig.sets[0]!.answer({ kind: 'pending' });
  t.deepEqual((await still).answer, { kind: 'pending' });

  rig.saveBySomebody('n2');
  const late = rig.add(0, 'n0');
  await rig.clock.advance(5);
  rig.reads[2]!.resolve();
  t.like(await late, { answer: { kind: 'conflict' }, posted: [] });
  t.is(rig.sets.length, 1, 'nothing was posted');
});

test('[R24] a router that never answers does not keep the other legs waiting beyond the deadline', async (t) => {
  const rig = bench();
  await readOnce(rig);
  const deadline = new AbortController();
  const first = rig.add(0, 'n1', deadline.signal);
  await rig.clock.advance(5);
  const reading = rig.read();
  await rig.clock.advance(60_000);
  t.is(rig.reads.length, 1);
  deadline.abort();
  t.like(await first, { answer: { kind: 'unknown', reason: 'no answer within the deadline' } });
  await rig.clock.advance(0);
  rig.reads[1]!.resolve();
  t.is((await reading).ncid, 'n1');
});
