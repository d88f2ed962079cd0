import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../../../src/core/kernel/clock.ts';
import { LedgerStream } from '../../../../src/plugins/cluster/leases/ledger-stream.ts';
import { openLink, silent, strangersKey } from '../../../support/cluster.ts';
import { natsOfFile } from '../../../support/nats-of-file.ts';
import { until } from '../../../support/until.ts';

const nats = natsOfFile(test);
let names = 0;

/** One ledger as two hosts reach it, and somebody without the key of the cluster. */
async function open(t: ExecutionContext) {
  names += 1;
  const name = `ledger${names}`;
  const link = await openLink(t, nats().url());
  const stream = () =>
    new LedgerStream({ link, clock: systemClock, logger: silent, name, replicas: 1, ttlMs: 10_000 });
  const stranger = await connect({ servers: nats().urls() });
  t.teardown(() => stranger.close());
  return {
    link,
    one: stream(),
    two: stream(),
    stranger,
    name: `HF_${name}_LEDGER`,
    subject: `hf.${name}.ledger.`,
  };
}

test('[C13] a message is appended behind the one that the writer has read last, and nowhere else', async (t) => {
  const { one, two } = await open(t);
  const { incarnation, last } = await one.read(1);
  t.is(last, 0);
  t.regex(incarnation, /^\d{13,}-[0-9a-f]{12}$/);
  t.is((await two.read(1)).incarnation, incarnation);
  let hints = 0;
  t.teardown(two.onHint(() => (hints += 1)));
  await until('the other one hears of it', async () => {
    const before = await one.read(1);
    t.is(await one.append(Buffer.from('a'), before.last, incarnation), before.last + 1);
    return hints > 0;
  });
  const { entries } = await two.read(1);
  t.is(await two.append(Buffer.from('b'), 0, incarnation), undefined);
  t.is(await two.append(Buffer.from('b'), entries.length, incarnation), entries.length + 1);
  const [entry, ...more] = (await one.read(entries.length + 1)).entries;
  t.deepEqual([entry?.seq, String(entry?.body), more], [entries.length + 1, 'b', []]);
});

test('[C13] what somebody without the key writes there keeps its place and says nothing', async (t) => {
  const { one, stranger, subject } = await open(t);
  const { incarnation } = await one.read(1);
  await one.append(Buffer.from('a'), 0, incarnation);
  for (const text of ['x', 'y']) await stranger.request(`${subject}${incarnation}`, text);
  t.is(await one.append(Buffer.from('b'), 3, incarnation), 4);
  await stranger.request(`${subject}${incarnation}`, 'z');
  const { entries, last } = await one.read(1);
  t.deepEqual(
    entries.map(({ seq, body }) => [seq, body && String(body)]),
    [
      [1, 'a'],
      [2, undefined],
      [3, undefined],
      [4, 'b'],
      [5, undefined],
    ],
  );
  t.is(last, 5);
});

test('[C13] messages of a stranger that a host has not read keep it from appending in no place near, and are counted', async (t) => {
  const { one, link, stranger, subject, name } = await open(t);
  const { incarnation } = await one.read(1);
  await one.append(Buffer.from('a'), 0, incarnation);
  const junk = async (times: number) => {
    for (let more = 0; more < times; more += 1) await stranger.request(`${subject}${incarnation}`, 'x');
  };
  await junk(1); // 2
  t.is((await one.read(2)).last, 2);
  t.is(link.forged, 1);
  await junk(1); // 3
  t.is(await one.append(Buffer.from('b'), 2, incarnation), 4, 'behind the one that it has not read');
  await junk(9); // 13
  t.is(await one.append(Buffer.from('c'), 4, incarnation), undefined, 'more than it expected');
  t.is(await one.append(Buffer.from('c'), 4, incarnation), 14, 'about as many as the last time');
  const { state } = await (await jetstreamManager(stranger)).streams.info(name);
  t.is(state.last_seq, 14, 'it stands there once');
});

test('[C13] what is sent to a ledger that was deleted is not taken by the one that was made in its place', async (t) => {
  const { one, two, stranger, name } = await open(t);
  const { incarnation } = await one.read(1);
  await one.append(Buffer.from('a'), 0, incarnation);
  t.true(await (await jetstreamManager(stranger)).streams.delete(name));
  const made = await two.read(1);
  t.not(made.incarnation, incarnation);
  await t.throwsAsync(one.append(Buffer.from('late'), 0, incarnation));
  t.is((await two.read(1)).last, 0);
  await t.throwsAsync(one.read(1), { code: 'HF_CLUSTER_STREAM_GONE' });
  t.is((await one.read(1)).incarnation, made.incarnation);
  await t.throwsAsync(one.append(Buffer.from('late'), 0, incarnation), { code: 'HF_CLUSTER_STREAM_GONE' });
});

test('[C13] an acknowledgement that somebody without the key sends in the name of the server is not believed', async (t) => {
  const { one, stranger, name, subject } = await open(t);
  const { incarnation } = await one.read(1);
  await one.append(Buffer.from('a'), 0, incarnation);
  const taken = await stranger.request(`${subject}${incarnation}`, 'x');
  t.is(taken.json<{ seq: number }>().seq, 2);
  // The server refuses each of these; sooner or later the stranger is faster with an answer.
  const pretend = { stream: name, seq: 2 };
  stranger.subscribe(`${subject}*`, {
    callback: (_, { reply }) => {
      if (reply) stranger.publish(reply, JSON.stringify(pretend));
    },
  });
  await stranger.flush();
  for (let attempt = 0; attempt < 300; attempt += 1)
    t.is(await one.append(Buffer.from('claim'), 1, incarnation), undefined);
});

test('[C13] hosts that make the ledger at the same time compete in one', async (t) => {
  for (let round = 0; round < 10; round += 1) {
    const { one, two } = await open(t);
    const [first, second] = await Promise.all([one.read(1), two.read(1)]);
    t.is(first.incarnation, second.incarnation);
  }
});

test('[C13] a stream with other settings is not competed in, and the error says what to do', async (t) => {
  const { one, stranger, name, subject } = await open(t);
  const { streams } = await jetstreamManager(stranger);
  const subjects = [`${subject}1790000000000-abc`];
  for (const [config, reason] of [
    [{ name, subjects: ['theirs'] }, /it keeps theirs/],
    [{ name, subjects: [`${subject}9007199254740991-a`] }, /it keeps .*9007199254740991-a/],
    [{ name, subjects }, /its settings differ: max_msgs is/],
    [{ name, subjects: [`${subject}9999999999999-later`] }, /made in the future/],
  ] as const) {
    await streams.add({ name, subjects: [...config.subjects] });
    const error = await t.throwsAsync(one.read(1), { code: 'HF_CLUSTER_LEDGER', message: reason });
    t.regex(
      String(error && 'remedy' in error && error.remedy),
      /HOLDFAST_CLUSTER_NAME.*HOLDFAST_CLUSTER_KEY_FILE/,
    );
    await streams.delete(name);
  }
  t.is((await one.read(1)).last, 0, 'when it is gone, a ledger is made');
});

test('[C13] a ledger in which another cluster of the name is at work, by another key, is not competed in', async (t) => {
  const { one, link, name } = await open(t);
  const theirs = await openLink(t, nats().url(), { key: strangersKey() });
  const dependencies = { clock: systemClock, logger: silent };
  const wish = { name: name.slice('HF_'.length, -'_LEDGER'.length), replicas: 1, ttlMs: 10_000 };
  const other = new LedgerStream({ ...wish, ...dependencies, link: theirs });
  const { incarnation } = await other.read(1);
  t.is((await one.read(1)).incarnation, incarnation, 'both know it while it is empty');
  for (const after of [0, 1, 2]) await other.append(Buffer.from('a'), after, incarnation);
  const late = new LedgerStream({ ...wish, ...dependencies, link });
  for (const ledger of [one, late, one])
    await t.throwsAsync(ledger.read(1), { code: 'HF_CLUSTER_LEDGER', message: /cluster’s key/ });
  await t.throwsAsync(one.read(4), { code: 'HF_CLUSTER_LEDGER' });
  t.is(await one.append(Buffer.from('b'), 0, incarnation), undefined, 'nor is it written to');
  t.is((await other.read(1)).last, 3);
});
