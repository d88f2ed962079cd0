import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../../../src/core/kernel/clock.ts';
import { SqliteLog } from '../../../../src/core/kernel/log/sqlite-log.ts';
import type { Software } from '../../../../src/machines/cluster/singleton.ts';
import type { HeldLease } from '../../../../src/plugins/cluster/messages/holder.ts';
import { StreamUnavailable } from '../../../../src/plugins/cluster/nats/stream-errors.ts';
import { Handover } from '../../../../src/plugins/cluster/takeover/handover.ts';
import { Succession } from '../../../../src/plugins/cluster/takeover/succession.ts';
import { openLink, silent } from '../../../support/cluster.ts';
import { holdLog } from '../../../support/held-log.ts';
import { tempDir } from '../../../support/temp.ts';
import { until } from '../../../support/until.ts';

/** How long a hand-over by plan waits for the stream, milliseconds. */
const PATIENCE_MS = 5_000;

/** The work `doors` on a host without NATS. */
async function setUp(t: ExecutionContext, begin: () => Promise<void> = async () => {}, begunWith?: Software) {
  const link = await openLink(t, 'nats://127.0.0.1:1', { isAlone: true });
  const dataDir = tempDir(t);
  const log = new SqliteLog({ dataDir, patienceMs: 50 });
  t.teardown(() => log.close());
  const services = { clock: systemClock, logger: silent, log, actors: { knownStates: () => [] } };
  const streams = { link, cluster: 'tests', clock: systemClock, logger: silent };
  const happened: string[] = [];
  const held: HeldLease[] = [];
  /** What cannot be recorded: as when too many events wait before a full log. */
  const unrecorded = new Set<string>();
  const effects = Promise.withResolvers<void>();
  const sent = Promise.withResolvers<void>();
  const doors = {
    name: 'doors',
    actorTypes: ['test.door'],
    machines: { 'test.door': 1 },
    begin: async ({ token }: { readonly token: string }) => {
      happened.push(`begin ${token}`);
      await begin();
    },
    end: async (reason: string, patienceMs = 0) => {
      happened.push(`end: ${reason}`);
      if (patienceMs > 0) await effects.promise;
    },
  };
  const handover = new Handover([doors], {
    services,
    ...{ host: 'attic', release: '0.9.0' },
    streams,
    holder: { hold: (_, lease) => void held.push(lease), release: () => {} },
    leases: {
      release: async (_, reason, _to, withholdMs = 0) =>
        void happened.push(`released: ${reason}${withholdMs > 0 ? `, for ${withholdMs} ms` : ''}`),
    },
    records: {
      singleton: (_, event) => {
        if (unrecorded.has(event.type)) throw new Error(`${event.type} is not recorded`);
        if (event.type.startsWith('END')) happened.push(event.type);
        if (event.type !== 'BEGIN_FAILED') return 0;
        if (begunWith) happened.push(event.reason);
        return 10_000;
      },
    },
    recorded: () => ({ begunBy: '2026-11-23T00:00:00Z:1', branches: [], begunWith }),
    mirrored: () => sent.promise,
  });
  const gain = (number: number, deadline = Number.POSITIVE_INFINITY) =>
    handover.gained(
      { singleton: 'doors', token: `2026-11-23T00:00:00Z:${number}`, deadline: () => deadline },
      { host: 'attic', run: 'r', number: 1 },
    );
  return { handover, happened, held, gain, unrecorded, effects, sent, services, streams, dataDir };
}

test('[C13] a fence that is found when the host has the singleton again does not end its work', async (t) => {
  const { handover, happened, gain } = await setUp(t);
  gain(9);
  await handover.settled();
  await handover.fenced('doors', '2026-11-23T00:00:00Z:7', 'cellar');
  await handover.fenced('doors', '2026-11-23T00:00:00Z:9', 'attic');
  t.deepEqual([...handover.running], ['doors']);
  await handover.fenced('doors', '2026-11-23T00:00:00Z:10', 'cellar');
  t.deepEqual([...handover.running], []);
  t.deepEqual(happened, ['begin 2026-11-23T00:00:00Z:9', 'end: cellar took it over', 'ENDING', 'ENDED']);
});

test('[C13] a singleton whose lease ran out before its turn to begin is released', async (t) => {
  const { handover, happened, gain } = await setUp(t);
  gain(9, Number.NEGATIVE_INFINITY);
  await handover.settled();
  t.deepEqual(happened, ['released: its lease ran out before it began']);
  t.deepEqual([...handover.running], []);
});

test('[C13] what is lost while it begins does not run, and is not released a second time', async (t) => {
  const begun = Promise.withResolvers<void>();
  const { handover, happened, gain } = await setUp(t, () => begun.promise);
  gain(9);
  await until('it begins', () => happened.length > 0);
  const lost = handover.lost('doors', 'the lease ran out');
  begun.resolve();
  await lost;
  t.deepEqual(happened, ['begin 2026-11-23T00:00:00Z:9', 'end: the lease ran out']);
  t.deepEqual([...handover.running], []);
});

test('[C13] while NATS elects its leaders, a host that cannot begin tries again at once, and never later each time', async (t) => {
  const { handover, happened, gain } = await setUp(t, () =>
    Promise.reject(new StreamUnavailable('HF_tests_LOG_cellar_1', 'no answer in time')),
  );
  gain(9);
  await handover.settled();
  t.deepEqual(happened, ['begin 2026-11-23T00:00:00Z:9', 'released: it did not begin here']);
});

test('[C13] a takeover whose lease is lost asks NATS nothing more, so that this host is free for the next one', async (t) => {
  const { services, streams } = await setUp(t);
  const succession = new Succession({
    ...{ services, streams, host: 'attic', recorded: () => undefined, mirrored: async () => {} },
  });
  const doors = {
    name: 'doors',
    actorTypes: ['test.door'],
    machines: {},
    begin: async () => {},
    end: async () => {},
  };
  const lease = { singleton: 'doors', token: '2026-11-23T00:00:00Z:9', deadline: () => 0 };
  const last = { host: 'cellar', run: 'r', number: 1 };
  const taken = (isWanted: boolean) => succession.inheritanceFor(doors, lease, last, () => isWanted);
  await t.throwsAsync(taken(false), { message: 'the lease is lost' });
  await t.throwsAsync(taken(true), { code: 'HF_CLUSTER_UNREACHABLE' });
});

test('[C13] a host that stops ends its singletons and begins none', async (t) => {
  const { handover, happened, gain, effects } = await setUp(t);
  gain(9);
  await handover.settled();
  const stopped = handover.stop('this host stops');
  gain(10);
  effects.resolve();
  await stopped;
  gain(11);
  await handover.lost('doors', 'the lease ran out');
  t.deepEqual(happened, [
    'begin 2026-11-23T00:00:00Z:9',
    'end: this host stops',
    'ENDING',
    'ENDED',
    'end: the lease ran out', // a second end finds nothing
  ]);
  t.deepEqual([...handover.running], []);
});

test('[C13] a singleton that goes elsewhere by plan has ended when its effects have, and the stream has their outcomes', async (t) => {
  const { handover, happened, gain, effects, sent } = await setUp(t);
  gain(9);
  await handover.settled();
  happened.length = 0;
  let isReleased = false;
  const released = handover.release('doors', 'ann moved it').then(() => {
    isReleased = true;
  });
  await until('it ends', () => happened.includes('ENDING'));
  t.deepEqual(happened, ['end: ann moved it', 'ENDING']);
  effects.resolve();
  await until('it has ended', () => happened.includes('ENDED'));
  t.false(isReleased, 'its successor would not know what it did');
  sent.resolve();
  await released;
  t.deepEqual([...handover.running], []);
});

test('[C13] a singleton that goes elsewhere because the log takes nothing waits for no record of it', async (t) => {
  const { handover, happened, gain, effects, services, dataDir } = await setUp(t);
  gain(9);
  await handover.settled();
  holdLog(t, dataDir);
  services.log.append(
    {
      ...{ seq: 1, at: 1, actor: 'test.door/a', machine: 'test-door', version: 1 },
      event: { type: 'OPEN' },
      to: { value: 'open' },
      effects: [],
      correlation: 'c',
    },
    { durability: 'sync' },
  );
  await until('the log takes nothing', () => services.log.status().state === 'frozen');
  happened.length = 0;
  effects.resolve();
  const from = performance.now();
  await handover.release('doors', 'its log takes nothing');
  t.true(performance.now() - from < PATIENCE_MS);
  t.deepEqual(happened, ['end: its log takes nothing', 'ENDING', 'ENDED']);
});

test('[C13] a singleton whose end cannot be recorded is released when its effects have ended, no sooner', async (t) => {
  const { handover, happened, gain, unrecorded, effects } = await setUp(t);
  gain(9);
  await handover.settled();
  unrecorded.add('ENDING');
  let isReleased = false;
  const released = handover.release('doors', 'ann moved it').then(() => {
    isReleased = true;
  });
  await until('it ends', () => happened.includes('end: ann moved it'));
  await new Promise((resolve) => setImmediate(resolve));
  t.false(isReleased);
  effects.resolve();
  await released;
  t.deepEqual([...handover.running], []);
});

test('[C13] a singleton whose beginning cannot be recorded does not run here, and is released', async (t) => {
  const { handover, happened, gain, unrecorded } = await setUp(t);
  for (const type of ['TAKING', 'BEGIN_FAILED']) unrecorded.add(type);
  gain(9);
  await handover.settled();
  t.deepEqual(happened, ['released: it did not begin here']);
  t.deepEqual([...handover.running], []);
});

test('[C13] what the holder has taken counts while the work ends by plan, and not once the lease is lost', async (t) => {
  const { handover, held, gain, effects } = await setUp(t);
  gain(9);
  await handover.settled();
  const [lease] = held;
  t.deepEqual([lease?.isHeld(), lease?.counts()], [true, true]);
  const released = handover.release('doors', 'ann moved it');
  t.deepEqual([lease?.isHeld(), lease?.counts()], [false, true]);
  const lost = handover.fenced('doors', '2026-11-23T00:00:00Z:10', 'cellar');
  t.deepEqual([lease?.isHeld(), lease?.counts()], [false, false]);
  effects.resolve();
  await Promise.all([released, lost]);
});

test('[C13] a lease that is lost during a planned hand-over ends it at once, whatever is under way', async (t) => {
  const { handover, happened, gain, effects } = await setUp(t);
  gain(9);
  await handover.settled();
  happened.length = 0;
  const released = handover.release('doors', 'ann moved it');
  const lost = handover.lost('doors', 'the lease ran out');
  effects.resolve(); // they were interrupted
  await Promise.all([released, lost]); // nothing waits for the stream
  t.deepEqual(happened, ['end: ann moved it', 'end: the lease ran out', 'ENDING', 'ENDED']);
});

/** What a host with version 1 of `test.door` says of work that was done with something newer. */
const DECLINES: readonly (readonly [string, Software, RegExp])[] = [
  [
    'a newer machine',
    { release: '0.10.0', machines: { 'test.door': 2 } },
    /^The work of doors was done last by release 0\.10\.0, with version 2 of the machine of test\.door; this host has release 0\.9\.0, with version 1\. Update this host to release 0\.10\.0/,
  ],
  [
    'a machine that only a later release has',
    { release: '0.10.0', machines: { 'test.door': 1, 'test.bell': 1 } },
    /version 1 of the machine of test\.bell; this host has release 0\.9\.0, with version none/,
  ],
];

for (const [what, software, reason] of DECLINES) {
  test(`[C13] work that was done with ${what} is left to other hosts, and both versions and releases are named`, async (t) => {
    const { handover, happened, gain } = await setUp(t, undefined, software);
    gain(9);
    await handover.settled();
    t.regex(happened[0] ?? '', reason);
    t.deepEqual(happened.slice(1), ['released: it did not begin here, for 10000 ms']);
    t.deepEqual([...handover.running], []);
    t.is(handover.outdated.length, 1);
    t.like(handover.outdated[0], { code: 'HF_CLUSTER_OUTDATED' });
  });
}

const GOES_ON: readonly (readonly [string, Software])[] = [
  ['an older machine', { release: '0.8.0', machines: { 'test.door': 0 } }],
  ['the same machine of a later release', { release: '0.10.0', machines: { 'test.door': 1 } }],
  ['a machine that this later release does not have', { release: '0.8.0', machines: { 'test.bell': 4 } }],
];

for (const [what, software] of GOES_ON) {
  test(`[C13] work that was done with ${what} goes on here`, async (t) => {
    const { handover, gain } = await setUp(t, undefined, software);
    gain(9);
    await handover.settled();
    t.deepEqual([...handover.running], ['doors']);
    t.deepEqual(handover.outdated, []);
  });
}
