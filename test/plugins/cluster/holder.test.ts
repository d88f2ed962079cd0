import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import type { ArrivedMessage } from '../../../src/core/contracts/cluster.ts';
import { HostError } from '../../../src/core/host/errors/host-error.ts';
import { openLink, strangersKey } from '../../support/cluster.ts';
import { clusterName, type MessageHost, openHost } from '../../support/message-hosts.ts';
import { type NatsServers, startNats } from '../../support/nats.ts';
import type { Scope } from '../../support/scope.ts';
import { until } from '../../support/until.ts';

let nats: NatsServers;
const ends: (() => unknown)[] = [];
const scope: Scope = { teardown: (end) => ends.unshift(end), log: () => {} };

test.before(async () => {
  nats = await startNats(scope);
});

test.after.always(async () => {
  for (const end of ends) await end();
});

const message = (correlation: string) => ({ topic: 'tests.topic', payload: { n: 1 }, correlation, cause: 7 });
const taken = ({ taken: messages }: MessageHost) => messages.map(({ correlation }) => correlation);

async function open(t: Scope, host: string, name: string, wish = {}): Promise<MessageHost> {
  return openHost(t, nats.url(), host, { name, withinMs: 60_000, ...wish });
}

test.serial(
  '[C13] a message waits for the holder of a singleton, goes to the next one after a takeover, and keeps its order',
  async (t) => {
    const name = clusterName();
    const [a, b, c] = [await open(t, 'a', name), await open(t, 'b', name), await open(t, 'c', name)];
    const first = a.holder.send('reconciler', message('m1'));
    await delay(300);
    t.is(a.holder.waiting, 1);
    b.holder.hold('reconciler', () => true);
    await first;
    t.deepEqual(b.taken, [
      {
        from: 'a',
        singleton: 'reconciler',
        topic: 'tests.topic',
        payload: { n: 1 },
        correlation: 'm1',
        cause: 7,
      },
    ] satisfies ArrivedMessage[]);
    // The lease is over, and nobody has told the old holder yet.
    b.holder.hold('reconciler', () => false);
    const sent = ['m2', 'm3', 'm4'].map((id) => a.holder.send('reconciler', message(id)));
    await delay(300);
    c.holder.hold('reconciler', () => true);
    b.holder.release('reconciler');
    await Promise.all(sent);
    t.deepEqual(taken(c), ['m2', 'm3', 'm4']);
    t.deepEqual(taken(b), ['m1']);
    await c.holder.send('reconciler', message('own'));
    t.deepEqual(taken(c).at(-1), 'own');
    t.is(a.holder.waiting, 0);
  },
);

test.serial(
  '[C13] a message is taken once, though its sender asks again because the answer takes long',
  async (t) => {
    const name = clusterName();
    const a = await open(t, 'a', name);
    let attempts = 0;
    const b = await open(t, 'b', name, {
      take: async () => {
        attempts += 1;
        await delay(3_000); // longer than one attempt of the sender
      },
    });
    b.holder.hold('watchdog', () => true);
    await a.holder.send('watchdog', message('slow'));
    t.is(attempts, 1);
    t.deepEqual(taken(b), ['slow']);
  },
);

test.serial(
  '[C13] a message that its holder cannot take, or that no holder takes in time, is an error',
  async (t) => {
    const name = clusterName();
    const a = await open(t, 'a', name, { withinMs: 600 });
    const b = await open(t, 'b', name, {
      take: () => {
        throw new Error('no such actor');
      },
    });
    b.holder.hold('alerts', () => true);
    await until('b hears a', () => b.beats.live().length === 1);
    const failed = await t.throwsAsync(a.holder.send('alerts', message('m1')), {
      code: 'HF_CLUSTER_UNDELIVERED',
    });
    t.regex(failed?.message ?? '', /could not take it/);
    const nobody = await t.throwsAsync(a.holder.send('nobody', message('m2')), {
      code: 'HF_CLUSTER_UNDELIVERED',
    });
    t.regex(nobody?.message ?? '', /nobody listens/);
    await t.throwsAsync(a.holder.send('alerts', { ...message('m3'), payload: 'x'.repeat(65_536) }), {
      code: 'HF_CLUSTER_MESSAGE_SIZE',
    });
    const waiting = Array.from({ length: 1_000 }, () =>
      a.holder.send('nobody', message('m')).catch(() => {}),
    );
    await t.throwsAsync(a.holder.send('nobody', message('one too many')), {
      code: 'HF_CLUSTER_UNDELIVERED',
      message: /1000 messages wait already/,
    });
    a.holder.stop();
    await Promise.all(waiting);
    t.is(a.holder.waiting, 0);
  },
);

test.serial('[C13] a message waits while its holder stops, and goes to the next one', async (t) => {
  const name = clusterName();
  const a = await open(t, 'a', name);
  let attempts = 0;
  const b = await open(t, 'b', name, {
    take: () => {
      attempts += 1;
      throw new HostError('HF_PLUGIN_ELSEWHERE', { what: 'Singleton alerts', where: 'b does not hold it' });
    },
  });
  b.holder.hold('alerts', () => true); // the lease is released when everything of the host has stopped
  const sent = a.holder.send('alerts', message('m1'));
  const own = b.holder.send('alerts', message('m2'));
  await until('both were refused, and tried again', () => attempts >= 4);
  const c = await open(t, 'c', name);
  c.holder.hold('alerts', () => true);
  b.holder.release('alerts');
  await Promise.all([sent, own]);
  t.deepEqual(taken(c).toSorted(), ['m1', 'm2']);
  t.deepEqual(taken(b), []);
});

test.serial('[C13] a request of a stranger, or an old one sent again, is not taken', async (t) => {
  const name = clusterName();
  const [a, b] = [await open(t, 'a', name), await open(t, 'b', name)];
  b.holder.hold('backups', () => true);
  const stranger = await openLink(t, nats.url(), { name, key: strangersKey() });
  const recorded: { data: Uint8Array; code: string }[] = [];
  stranger.listen(`hf.${name}.to.backups`, ({ data, headers }) => {
    recorded.push({ data: data.slice(), code: headers?.get('Hf-Mac') ?? '' });
  });
  await a.holder.send('backups', message('genuine'));
  await until('it is recorded', () => recorded.length > 0);
  const again = () => {
    for (const { data, code } of recorded.slice())
      stranger
        .connected()
        .publish(`hf.${name}.to.backups`, data, { headers: stranger.headers({ 'Hf-Mac': code }) });
  };
  again();
  stranger.publish(`hf.${name}.to.backups`, JSON.stringify({ id: 'x' }));
  await a.stop();
  await a.link.close();
  const restarted = await open(t, 'a', name);
  await until('b hears the new run', () => b.beats.heard.get('a')?.run === restarted.beats.run);
  const before = b.holder.dropped;
  again(); // of a run that has ended
  await until('it is refused', () => b.holder.dropped > before);
  await restarted.holder.send('backups', message('last'));
  t.deepEqual(taken(b), ['genuine', 'last']);
});

test.serial(
  '[C13] a question is answered by whoever knows, without waiting for those who do not',
  async (t) => {
    const name = clusterName();
    const [a, b, c] = [await open(t, 'a', name), await open(t, 'b', name), await open(t, 'c', name)];
    await until('all hear each other', () => [a, b, c].every(({ beats }) => beats.live().length === 2));
    for (const host of [a, b, c])
      host.asks.onAsked('gateway.approval', (body, from) => ({ host: host.host, body, from }));
    b.asks.onAsked('only.b', async () => 'b');
    b.asks.onAsked('broken', () => {
      throw new Error('not for others');
    });
    c.asks.onAsked('broken', () => 'x'.repeat(300_000));
    // Waiting for those who do not know would outlast the test.
    const withinMs = 3_600_000;
    const answers = await a.asks.ask('gateway.approval', { id: 1 }, withinMs);
    t.deepEqual(
      [...answers].sort((x, y) => x.host.localeCompare(y.host)),
      [
        { host: 'b', answer: { host: 'b', body: { id: 1 }, from: 'a' } },
        { host: 'c', answer: { host: 'c', body: { id: 1 }, from: 'a' } },
      ],
    );
    t.deepEqual(await a.asks.ask('only.b', null, withinMs), [{ host: 'b', answer: 'b' }]);
    t.deepEqual(await a.asks.ask('broken', null, withinMs), []);
    t.deepEqual(await a.asks.ask('nobody.knows', null, withinMs), []);
    await t.throwsAsync(a.asks.ask('large', 'x'.repeat(65_536), 1_000), { code: 'HF_CLUSTER_MESSAGE_SIZE' });
  },
);
