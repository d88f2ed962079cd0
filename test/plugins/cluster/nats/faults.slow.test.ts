import { cpSync, rmSync } from 'node:fs';
import test from 'ava';
import { type Clock, systemClock } from '../../../../src/core/kernel/clock.ts';
import { LinearStream, type StreamDependencies } from '../../../../src/plugins/cluster/nats/stream.ts';
import {
  StreamConflict,
  StreamRewound,
  StreamUnknown,
} from '../../../../src/plugins/cluster/nats/stream-errors.ts';
import type { StreamMessage } from '../../../../src/plugins/cluster/nats/stream-message.ts';
import { openLink, silent, streamSettings } from '../../../support/cluster.ts';
import { startNats } from '../../../support/nats.ts';
import { until } from '../../../support/until.ts';

const dependencies: StreamDependencies = { clock: systemClock, logger: silent };

async function bodies(messages: AsyncIterable<StreamMessage>): Promise<string[]> {
  const found: string[] = [];
  for await (const { body } of messages) found.push(`${body}`);
  return found;
}

/** Reads again until the stream answers. */
async function ended(stream: LinearStream): Promise<number> {
  let seq = 0;
  await until('the stream answers', async () => {
    const ends = await stream.last().catch((error: unknown) => error);
    if (ends instanceof Error) return false;
    seq = (ends as { seq: number }).seq;
    return true;
  });
  return seq;
}

/**
 * Appends numbered messages, several at once, through any faults, as a writer of a log does it: at the first error it waits for all that
 * are under way, reads the end, and goes on behind what is stored.
 */
async function writeAll(
  stream: LinearStream,
  count: number,
  faults: (done: number) => void,
): Promise<string[]> {
  const errors: string[] = [];
  let stored = (await stream.last()).seq;
  const first = stored;
  while (stored < first + count) {
    const batch = Array.from({ length: Math.min(32, first + count - stored) }, (_, i) => stored + i);
    const results = await Promise.allSettled(
      batch.map((last) =>
        stream.append(`m${last}`, { expectedLast: last, id: `m${last}`, timeoutMs: 2_000 }),
      ),
    );
    const failed = results.find((result) => result.status === 'rejected');
    if (failed) errors.push(String(failed.reason?.code));
    stored = failed ? await ended(stream) : stored + batch.length;
    faults(stored - first);
  }
  return errors;
}

test('[C13] what a server that stood still may have stored is found again when it goes on', async (t) => {
  t.timeout(300_000);
  const nats = await startNats(t);
  const link = await openLink(t, nats.url());
  const stream = await LinearStream.open(link, streamSettings(), dependencies);
  await stream.append('m0', { expectedLast: 0 });
  nats.stop(0);
  const error = await t.throwsAsync(stream.append('m1', { expectedLast: 1, id: 'm1', timeoutMs: 300 }));
  t.true(error instanceof StreamUnknown);
  await until('the link has noticed', () => !link.isUp);
  await t.throwsAsync(stream.append('m1', { expectedLast: 1, id: 'm1' }), { code: 'HF_CLUSTER_UNREACHABLE' });
  nats.cont(0);
  await until('it is up again', () => link.isUp);
  // The server has the request still in its socket, or had it dropped with the connection: only the stream can tell.
  const result = await stream.append('m1', { expectedLast: 1, id: 'm1' });
  t.is(result.seq, 2);
  t.deepEqual(await bodies(stream.read(1)), ['m0', 'm1']);
});

test('[C13] a cut without a word is noticed within seconds, in either direction, and healed without a loss', async (t) => {
  t.timeout(600_000);
  const nats = await startNats(t);
  const proxy = await nats.proxyTo(0);
  const [link, other] = [await openLink(t, proxy.url), await openLink(t, nats.url())];
  const settings = streamSettings();
  const stream = await LinearStream.open(link, settings, dependencies);
  const writer = await LinearStream.open(other, settings, dependencies);
  const got: string[] = [];
  const follower = stream.follow(1, ({ body }) => void got.push(`${body}`));
  t.teardown(() => follower.end());
  for (const direction of ['both', 'up', 'down'] as const) {
    proxy.cut(direction);
    const began = performance.now();
    const waiting = stream
      .append('never sent twice', { expectedLast: writer.seen, timeoutMs: 60_000 })
      .catch((e) => e);
    await until('the link has noticed', () => !link.isUp);
    t.log(`${direction}: noticed after ${Math.round(performance.now() - began)} ms`);
    t.true((await waiting) instanceof StreamUnknown, direction);
    const end = await ended(writer);
    await writer.append(`while ${direction} was cut`, { expectedLast: end });
    proxy.heal();
    await until('it is up again', () => link.isUp);
    await until('what was written meanwhile is there', () => got.at(-1) === `while ${direction} was cut`);
  }
  t.deepEqual(got, await bodies(writer.read(1)));
});

test('[C13] a socket whose backlog is full holds nothing up', async (t) => {
  t.timeout(300_000);
  const nats = await startNats(t);
  const proxy = await nats.proxyTo(0);
  const link = await openLink(t, proxy.url);
  proxy.cut('up');
  for (let i = 0; i < 200 && link.isUp; i += 1) link.publish('hf.tests.backlog', Buffer.alloc(500_000));
  const began = performance.now();
  await until('the link has noticed', () => !link.isUp);
  t.log(`noticed after ${Math.round(performance.now() - began)} ms`);
  proxy.heal();
  await until('it is up again', () => link.isUp);
  await t.notThrowsAsync(link.connected().flush());
});

test('[C13] on a slow link that loses, messages are appended and read in order', async (t) => {
  t.timeout(300_000);
  const nats = await startNats(t);
  const proxy = await nats.proxyTo(0);
  const link = await openLink(t, proxy.url);
  proxy.set({ delayMs: 100, loss: 0.05 });
  const stream = await LinearStream.open(link, streamSettings(), dependencies);
  t.deepEqual(await writeAll(stream, 200, () => {}), []);
  t.deepEqual(
    await bodies(stream.read(1)),
    Array.from({ length: 200 }, (_, i) => `m${i}`),
  );
  t.true(link.isUp);
});

test('[C13] nothing is lost, doubled or reordered when the only server is killed and starts again', async (t) => {
  t.timeout(300_000);
  const nats = await startNats(t);
  const link = await openLink(t, nats.url());
  const stream = await LinearStream.open(link, streamSettings(), dependencies);
  let restarted: Promise<void> | undefined;
  const errors = await writeAll(stream, 2_000, (done) => {
    if (done >= 500) restarted ??= nats.restart(0);
  });
  await restarted;
  t.true(errors.length > 0);
  t.deepEqual(
    await bodies(stream.read(1)),
    Array.from({ length: 2_000 }, (_, i) => `m${i}`),
  );
});

test('[C13] a server that was set back to an older store is noticed: the end before what was seen', async (t) => {
  t.timeout(300_000);
  const nats = await startNats(t);
  const link = await openLink(t, nats.url());
  let aheadMs = 0;
  const clock: Clock = { ...systemClock, monotonic: () => performance.now() + aheadMs };
  const stream = await LinearStream.open(link, streamSettings(), { ...dependencies, clock });
  for (let i = 0; i < 10; i += 1) await stream.append(`m${i}`, { expectedLast: i });
  await nats.kill(0);
  cpSync(nats.storeOf(0), `${nats.storeOf(0)}.old`, { recursive: true });
  await nats.restart(0);
  await until('it is up again', () => link.isUp);
  for (let i = 10; i < 20; i += 1) await stream.append(`m${i}`, { expectedLast: i });
  t.is((await stream.last()).seq, 20); // an acknowledgement alone is nothing seen
  const faults: unknown[] = [];
  const follower = stream.follow(21, () => {}, { onFault: (error) => faults.push(error), pollMs: 50 });
  t.teardown(() => follower.end());
  await nats.kill(0);
  rmSync(nats.storeOf(0), { recursive: true });
  cpSync(`${nats.storeOf(0)}.old`, nats.storeOf(0), { recursive: true });
  await nats.restart(0);
  await until('it is up again', () => link.isUp);
  const rewound = await t.throwsAsync(stream.last(), { instanceOf: StreamRewound });
  t.deepEqual([rewound?.lastSeq, rewound?.seenSeq, rewound?.isCertain], [10, 20, false]);
  await t.throwsAsync(bodies(stream.read(1, 20)), { instanceOf: StreamRewound });
  const conflict = await t.throwsAsync(stream.append('m20', { expectedLast: 20 }), {
    instanceOf: StreamConflict,
  });
  t.is(conflict?.lastSeq, 10);
  t.deepEqual(faults, []);
  aheadMs = 31_000;
  t.true((await t.throwsAsync(stream.last(), { instanceOf: StreamRewound }))?.isCertain);
  await until('who follows hears of it', () => faults.length > 0);
  t.true(faults[0] instanceof StreamRewound);
});

test.serial(
  '[C13] of three servers the leader is killed while many messages are under way: nothing is lost or doubled',
  async (t) => {
    t.timeout(600_000);
    const nats = await startNats(t, { servers: 3 });
    const [link, reads] = [await openLink(t, nats.urls()), await openLink(t, nats.urls())];
    const settings = streamSettings();
    const stream = await LinearStream.open(link, settings, dependencies);
    const reader = await LinearStream.open(reads, settings, dependencies);
    const got: string[] = [];
    const follower = reader.follow(1, ({ body }) => void got.push(`${body}`));
    t.teardown(() => follower.end());
    let killed: Promise<void> | undefined;
    const leader = async () => {
      const info = await (await reads.manager()).streams.info(settings.name);
      return Number(info.cluster?.leader?.slice(1));
    };
    t.is((await (await link.manager()).streams.info(settings.name)).config.num_replicas, 3);
    const began = performance.now();
    const errors = await writeAll(stream, 3_000, (done) => {
      if (done >= 1_000) killed ??= leader().then((i) => nats.kill(i).then(() => nats.restart(i)));
    });
    await killed;
    t.log(
      `3,000 messages in ${Math.round(performance.now() - began)} ms, ${errors.length} errors: ${errors}`,
    );
    t.deepEqual(
      await bodies(reader.read(1)),
      Array.from({ length: 3_000 }, (_, i) => `m${i}`),
    );
    await until('who follows has all', () => got.length === 3_000);
    t.deepEqual(got, await bodies(reader.read(1)));

    // A hint comes before its message is stored on more than one server: it is looked for again, long before the next poll as a rule.
    const pollMs = 30_000;
    let polls = 0;
    const after: Clock['after'] = (ms, run) =>
      systemClock.after(ms, () => {
        if (ms === pollMs) polls += 1;
        run();
      });
    const polled = await LinearStream.open(reads, settings, {
      ...dependencies,
      clock: { ...systemClock, after },
    });
    const late: number[] = [];
    const hinted = polled.follow(3_001, ({ seq }) => void late.push(seq), { pollMs });
    t.teardown(() => hinted.end());
    const from = performance.now();
    for (let i = 1; i <= 20 && polls < 5; i += 1) {
      await stream.append('x', { expectedLast: 2_999 + i });
      await until('it has come', () => late.length === i, 1);
    }
    t.log(
      `20 messages one by one, each handed on before the next: ${Math.round(performance.now() - from)} ms, ${polls} polls`,
    );
    t.true(polls < 5, 'as a rule nothing waits for a poll');
  },
);
