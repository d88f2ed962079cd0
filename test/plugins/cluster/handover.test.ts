import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { SqliteLog } from '../../../src/core/kernel/log/sqlite-log.ts';
import { Handover } from '../../../src/plugins/cluster/handover.ts';
import { openLink, silent } from '../../support/cluster.ts';
import { tempDir } from '../../support/temp.ts';
import { until } from '../../support/until.ts';

/** The work `doors` on a host without NATS. */
async function setUp(t: ExecutionContext, begin: () => Promise<void> = async () => {}) {
  const link = await openLink(t, 'nats://127.0.0.1:1', { isAlone: true });
  const log = new SqliteLog({ dataDir: tempDir(t) });
  t.teardown(() => log.close());
  const happened: string[] = [];
  const doors = {
    name: 'doors',
    actorTypes: ['test.door'],
    begin: async ({ token }: { readonly token: string }) => {
      happened.push(`begin ${token}`);
      await begin();
    },
    end: async (reason: string) => void happened.push(`end: ${reason}`),
  };
  const handover = new Handover([doors], {
    services: {
      clock: systemClock,
      logger: silent,
      log,
      actors: { get: () => undefined, knownStates: () => [] },
    },
    host: 'attic',
    streams: { link, cluster: 'tests', clock: systemClock, logger: silent },
    holder: { hold: () => {}, release: () => {} },
    leases: { release: async (_, reason) => void happened.push(`released: ${reason}`) },
    records: { singleton: () => 0 },
  });
  const gain = (number: number, deadline = Number.POSITIVE_INFINITY) =>
    handover.gained(
      { singleton: 'doors', token: `2026-11-23T00:00:00Z:${number}`, deadline: () => deadline },
      undefined,
    );
  return { handover, happened, gain };
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
  t.deepEqual(happened, ['begin 2026-11-23T00:00:00Z:9', 'end: cellar took it over']);
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

test('[C13] a host that stops ends its singletons and begins none', async (t) => {
  const { handover, happened, gain } = await setUp(t);
  gain(9);
  await handover.settled();
  const stopped = handover.stop('this host stops');
  gain(10);
  await stopped;
  gain(11);
  await handover.lost('doors', 'the lease ran out');
  t.deepEqual(happened, [
    'begin 2026-11-23T00:00:00Z:9',
    'end: this host stops',
    'end: the lease ran out', // a second end finds nothing
  ]);
  t.deepEqual([...handover.running], []);
});
