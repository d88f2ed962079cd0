import { DiscardPolicy, jetstreamManager, type StreamConfig } from '@nats-io/jetstream';
import { connect, headers } from '@nats-io/transport-node';
import test, { type ExecutionContext } from 'ava';
import { type Clock, systemClock } from '../../../../src/core/kernel/clock.ts';
import { SqliteLog } from '../../../../src/core/kernel/log/sqlite-log.ts';
import { hostsOf, openHostLog } from '../../../../src/plugins/cluster/mirror/host-log.ts';
import { inheritanceOf, placeFence } from '../../../../src/plugins/cluster/mirror/inheritance.ts';
import { Handover } from '../../../../src/plugins/cluster/takeover/handover.ts';
import { openLink, silent } from '../../../support/cluster.ts';
import { recordingReads } from '../../../support/inherited.ts';
import { MirroredHost, streamsOf } from '../../../support/mirrored-host.ts';
import { startNats } from '../../../support/nats.ts';
import { tempDir } from '../../../support/temp.ts';
import { until } from '../../../support/until.ts';

const FENCE = { singleton: 'doors', token: '1-a:7', by: 'two' };

/** With these settings a host takes a stream for one of its own. */
const AS_OURS = {
  discard: DiscardPolicy.New,
  deny_delete: true,
  deny_purge: false,
  max_bytes: 256 * 1024 * 1024,
};

/** What is looked at every few seconds is looked at all the time. */
const quick: Clock = {
  ...systemClock,
  after: (ms, callback) => systemClock.after(Math.min(ms, 50), callback),
};

/** A server, a host's connection to it, and that of somebody without the key who may make streams. */
async function open(t: ExecutionContext) {
  const nats = await startNats(t);
  const link = await openLink(t, nats.url());
  const stranger = await connect({ servers: nats.urls() });
  t.teardown(() => stranger.close());
  const manager = await jetstreamManager(stranger);
  const make = async (host: string, incarnation: number, more: Partial<StreamConfig> = {}) => {
    const subject = `hf.tests.log.${host}.${incarnation}`;
    const subjects = [`${subject}.records`, `${subject}.states`];
    await manager.streams.add({ name: `HF_tests_LOG_${host}_${incarnation}`, subjects, ...more });
    return `${subject}.records`;
  };
  return { link, streams: streamsOf(link), stranger, manager, make };
}

test('[C13] streams that somebody without the key makes keep nobody from reading, taking over and mirroring a log', async (t) => {
  const { link, streams, stranger, make } = await open(t);
  const host = new MirroredHost(t, link);
  await host.mirror(50);
  await make('one', 2);
  await make('one', 3, AS_OURS);
  await make('one', 999_999_999, { no_ack: true });
  await stranger.request(await make('two', 1), 'x');
  t.deepEqual(await hostsOf(streams), ['one']);
  const { reader, end } = await openHostLog(streams, 'one');
  reader.close();
  t.is(end.seq, 50);

  const fence = await placeFence(streams, 'one', FENCE);
  t.is(fence.incarnation, 1);
  t.is((await inheritanceOf(streams, fence, ['test.door'])).seq, 50);

  await host.stop();
  const again = new MirroredHost(t, link, { dataDir: host.dataDir });
  await again.mirror(5);
  t.is(again.outbox.position.incarnation, 1);
  t.is([...host.told.fences, ...again.told.fences].length, 1);
});

test('[C13] what somebody without the key wrote into a stream before its host does not keep others from taking over', async (t) => {
  const { link, streams, stranger, make } = await open(t);
  await stranger.request(await make('one', 1, AS_OURS), 'x');
  const host = new MirroredHost(t, link);
  await host.mirror(20);
  const fence = await placeFence(streams, 'one', FENCE);
  t.is(fence.incarnation, 1);
  t.is((await inheritanceOf(streams, fence, ['test.door'])).seq, 20);
});

test('[C13] a host that finds the stream of somebody without the key under the name of its next one takes the one after it', async (t) => {
  const { link, manager, make } = await open(t);
  const host = new MirroredHost(t, link);
  await host.mirror(20);
  await make('one', 2);
  t.true(await manager.streams.delete('HF_tests_LOG_one_1'));
  await host.mirror(1);
  t.is(host.outbox.position.incarnation, 3);
});

test('[C13] a host passes over streams that somebody without the key has filled, or put in front of its next ones', async (t) => {
  const { link, streams, stranger, manager, make } = await open(t);
  const host = new MirroredHost(t, link);
  await host.mirror(20);
  await manager.streams.add({ name: 'FRONT', subjects: ['hf.tests.log.one.2.>'] });
  const subject = await make('one', 3, AS_OURS);
  for (let sent = 0; sent <= 1_000; sent += 1) stranger.publish(subject, 'x');
  await stranger.flush();
  t.true(await manager.streams.delete('HF_tests_LOG_one_1'));
  await host.mirror(1);
  t.is(host.outbox.position.incarnation, 4);
  t.is((await placeFence(streams, 'one', FENCE)).incarnation, 4);
});

test('[C13] somebody without the key who takes the ids that a host would use next does not keep its log from the stream', async (t) => {
  t.timeout(60_000);
  const { link, stranger } = await open(t);
  const host = new MirroredHost(t, link);
  await host.mirror(3);
  const subject = 'hf.tests.log.one.1.records';
  const taken = new Set<string>();
  stranger.subscribe(subject, {
    callback: (_, message) => {
      const id = message.headers?.get('Nats-Msg-Id') ?? '';
      if (!id.startsWith('one.1.records') || message.headers?.has('Of-Stranger')) return;
      // It was in vain: the next attempt will name the message behind the one that follows.
      const next = id.replace(
        /\.(\d+)((?:\.[^.]*-[^.]*)?)$/,
        (_all, last, more) => `.${Number(last) + 2}${more}`,
      );
      if (taken.has(id) || taken.has(next)) return;
      taken.add(next);
      const mine = headers();
      mine.set('Nats-Msg-Id', next);
      mine.set('Of-Stranger', '1');
      stranger.publish(subject, 'x', { headers: mine });
    },
  });
  stranger.publish(subject, 'so that the next append is in vain');
  await stranger.flush();
  t.is(await host.mirror(1), 4);
  t.true(taken.size > 0);
});

test('[C13] large messages of somebody without the key keep nobody from reading a log or mirroring it', async (t) => {
  const { link, stranger } = await open(t);
  const reader = await openLink(t, link.shown, { host: 'two' });
  const host = new MirroredHost(t, link);
  await host.mirror(50);
  // More than a server keeps for a connection that does not read: 64 MiB.
  for (let sent = 0; sent < 80; sent += 1)
    await stranger.request('hf.tests.log.one.1.records', new Uint8Array(1_000_000));
  const log = await openHostLog(streamsOf(reader), 'one');
  log.reader.close();
  t.is(log.end.seq, 50);
  await host.mirror(5);
  t.is(host.outbox.position.incarnation, 1);
});

test('[C13] messages of somebody without the key among the states of a host let nobody who takes over read far', async (t) => {
  const { link, streams, stranger } = await open(t);
  const host = new MirroredHost(t, link, { clock: quick });
  await host.mirror(2_100);
  await until('states are on the stream', () => host.outbox.position.states !== undefined);
  const forge = async (count: number) => {
    for (let sent = 0; sent < count; sent += 1) stranger.publish('hf.tests.log.one.1.states', 'x');
    await stranger.flush();
  };
  await forge(2_000);
  // It records nothing meanwhile.
  await until('states stand behind them', () => (host.outbox.position.states ?? 0) > 2_000);
  await forge(10);
  const { reads, logger } = recordingReads();
  const fence = await placeFence(streams, 'one', FENCE);
  const { states, seq } = host.outbox.position;
  const mirror = { incarnation: '1', seq, states };
  const left = await inheritanceOf({ ...streams, logger }, fence, ['test.door'], { mirror });
  t.deepEqual([left.seq, reads], [2_100, [states]]);
  t.true(fence.streamSeq - (states ?? 0) < 100);
});

test('[C13] a stream that was set back behind what its host said of it in the ledger is taken over by nobody', async (t) => {
  const { link, streams } = await open(t);
  const host = new MirroredHost(t, link);
  await host.mirror(20);
  const happened: string[] = [];
  const doors = {
    name: 'doors',
    actorTypes: ['test.door'],
    machines: { 'test.door': 1 },
    begin: async () => void happened.push('begin'),
    end: async () => {},
  };
  const services = {
    clock: systemClock,
    logger: silent,
    log: new SqliteLog({ dataDir: tempDir(t) }),
    actors: { knownStates: () => [] },
  };
  t.teardown(() => services.log.close());
  const handover = new Handover([doors], {
    ...{ services, host: 'two', release: '0.2.0', streams },
    holder: { hold: () => {}, release: () => {} },
    leases: { release: async (_, reason) => void happened.push(reason) },
    records: { singleton: () => 0 },
    recorded: () => undefined,
    mirrored: async () => {},
  });
  const lease = { singleton: 'doors', token: '1-a:7', deadline: () => Infinity };
  const last = (seq: number) => ({ host: 'one', run: 'r', number: 6, mirror: { incarnation: '1', seq } });
  handover.gained(lease, last(21));
  await handover.settled();
  handover.gained(lease, last(20));
  await handover.settled();
  t.deepEqual(happened, ['it did not begin here', 'begin']);
});
