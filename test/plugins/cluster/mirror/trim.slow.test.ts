import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { recover } from '../../../../src/core/kernel/actors/recover.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { connectLogs } from '../../../../src/plugins/cluster/mirror/command-logs.ts';
import { openHostLog } from '../../../../src/plugins/cluster/mirror/host-log.ts';
import { namesOf } from '../../../../src/plugins/cluster/mirror/incarnations.ts';
import { inheritanceOf, placeFence } from '../../../../src/plugins/cluster/mirror/inheritance.ts';
import type { NatsLink } from '../../../../src/plugins/cluster/nats/link.ts';
import { clusterOptions } from '../../../../src/plugins/cluster/options.ts';
import { openLink } from '../../../support/cluster.ts';
import { CLUSTER, MirroredHost, streamsOf } from '../../../support/mirrored-host.ts';
import { startNats } from '../../../support/nats.ts';
import { tempDir } from '../../../support/temp.ts';
import { until } from '../../../support/until.ts';

const LIMITS = { maxBytes: 4 * 1024 * 1024, replicas: 1 };
/** Each record has some 8 kB, and the states of the three doors as much together. */
const HEAVY = { event: { type: 'KNOCK', text: 'k'.repeat(8_000) } };
/** More than the stream holds, twice. */
const MANY = 1_200;

async function setUp(t: ExecutionContext) {
  const nats = await startNats(t);
  const link = await openLink(t, nats.url());
  return { nats, link, host: new MirroredHost(t, link, { limits: LIMITS }) };
}

const infoOf = async (link: NatsLink, incarnation = 1) =>
  (await link.manager()).streams.info(namesOf(CLUSTER, 'one', incarnation).stream);

/** The stream ends as the local log does, record by record, and begins with the states before its first record. */
async function checkEnd(t: ExecutionContext, link: NatsLink, host: MirroredHost, incarnation = 1) {
  const mirrored = await openHostLog(streamsOf(link), 'one');
  const local = new SqliteReader(host.dataDir);
  try {
    const { from } = mirrored.header.range;
    t.deepEqual([...mirrored.reader.pages()].flat(), [...local.pages({ from })].flat());
    t.is(mirrored.incarnation, incarnation);
    t.true(mirrored.isFilled);
    if (from > 1) {
      const states = (log: SqliteReader) =>
        [...recover(log, from - 1).states.values()].map((state) => JSON.stringify(state)).sort();
      t.deepEqual(states(mirrored.reader), states(local));
    }
    return from;
  } finally {
    mirrored.reader.close();
    local.close();
  }
}

test('[C13] a stream that is nearly full is trimmed: it goes on within its limit, and begins with the states of all actors', async (t) => {
  const { link, host } = await setUp(t);
  await host.mirror(MANY, HEAVY);
  const { state } = await infoOf(link);
  t.true(state.bytes < LIMITS.maxBytes);
  t.true(state.first_seq > 1);
  const from = await checkEnd(t, link, host);
  t.true(from > 1);
  // About half of it is kept.
  t.true(MANY - from > 150, `it begins with record ${from}`);
  t.deepEqual(host.told.troubles, []);
  t.deepEqual(host.told.incarnations, []);
});

test('[C13] a host that starts again goes on in its trimmed stream, whatever it remembers of it', async (t) => {
  const { link, host } = await setUp(t);
  const file = join(host.dataDir, 'cluster-position.json');
  await host.mirror(20);
  await until(
    'the position is noted',
    () => existsSync(file) && readFileSync(file, 'utf8').includes('"seq":20'),
  );
  const early = readFileSync(file);
  await host.mirror(MANY, HEAVY);
  await host.stop();
  for (const position of [early, '{}', undefined]) {
    if (position !== undefined) writeFileSync(file, position);
    const again = new MirroredHost(t, link, { dataDir: host.dataDir, limits: LIMITS });
    await again.mirror(300, HEAVY);
    await again.stop();
    t.deepEqual(again.told.incarnations, []);
    t.deepEqual(again.told.troubles, []);
  }
  t.true((await checkEnd(t, link, host)) > MANY);
});

test('[C13] who reads a trimmed stream is told from which record on', async (t) => {
  const { nats, link, host } = await setUp(t);
  await host.mirror(MANY, HEAVY);
  const keyFile = join(tempDir(t), 'cluster-key');
  writeFileSync(keyFile, Buffer.alloc(32, 'the key of a cluster of tests'), { mode: 0o600 });
  const options = { servers: nats.url(), keyFile, name: CLUSTER, host: 'two' };
  const logs = await connectLogs(clusterOptions.parse(options));
  t.teardown(() => logs.close());
  const { reader, lacks } = await logs.open('one');
  t.teardown(() => reader.close());
  const from = await checkEnd(t, link, host);
  t.is(
    lacks,
    `its stream begins with record ${from}: those before are on that host, unless they were pruned`,
  );
});

test('[C13] a takeover from a trimmed stream knows every actor', async (t) => {
  const { link, host } = await setUp(t);
  await host.mirror(MANY, HEAVY);
  const fence = await placeFence(streamsOf(link), 'one', { singleton: 'doors', token: '1:7', by: 'two' });
  const { seq, states } = await inheritanceOf(streamsOf(link), fence, ['test.door']);
  t.is(seq, MANY);
  t.is(JSON.stringify(states), JSON.stringify([...host.states.values()]));
});
