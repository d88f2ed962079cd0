import { setTimeout as delay } from 'node:timers/promises';
import type { Msg as NatsMessage } from '@nats-io/transport-node';
import test from 'ava';
import type { ArrivedMessage } from '../../../../src/core/contracts/cluster.ts';
import { HostError } from '../../../../src/core/host/errors/host-error.ts';
import { openLink, strangersKey } from '../../../support/cluster.ts';
import { clusterName, type MessageHost, openHost } from '../../../support/message-hosts.ts';
import { natsOfFile } from '../../../support/nats-of-file.ts';
import type { Scope } from '../../../support/scope.ts';
import { until } from '../../../support/until.ts';

const nats = natsOfFile(test);

const message = (correlation: string) => ({ topic: 'tests.topic', payload: { n: 1 }, correlation, cause: 7 });
const lease = (token: string, isHeld = true) => ({ token, isHeld: () => isHeld, counts: () => true });
const taken = ({ taken: messages }: MessageHost) => messages.map(({ correlation }) => correlation);

async function open(t: Scope, host: string, name: string, wish = {}): Promise<MessageHost> {
  return openHost(t, nats().url(), host, { name, withinMs: 60_000, ...wish });
}

test.serial(
  '[C13] a message waits for the holder of a singleton, goes to the next one after a takeover, and keeps its order',
  async (t) => {
    const name = clusterName();
    const [a, b, c] = [await open(t, 'a', name), await open(t, 'b', name), await open(t, 'c', name)];
    const first = a.holder.send('reconciler', message('m1'));
    await delay(300);
    t.is(a.holder.waiting, 1);
    b.holder.hold('reconciler', lease('x:1'));
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
    b.holder.hold('reconciler', lease('x:1', false));
    const sent = ['m2', 'm3', 'm4'].map((id) => a.holder.send('reconciler', message(id)));
    await delay(300);
    c.holder.hold('reconciler', lease('x:2'));
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
  '[C13] what waits for the holder of a singleton goes to it together, in its order, over a slow link too',
  async (t) => {
    const name = clusterName();
    const proxy = await nats().proxyTo(0);
    const slow = await openHost(t, proxy.url, 'slow', { name });
    const b = await open(t, 'b', name);
    b.holder.hold('backups', lease('x:1'));
    await slow.holder.send('backups', message('first'));
    let requests = 0;
    b.link.listen(`hf.${name}.to.backups`, () => {
      requests += 1;
    });
    await b.link.connected().flush();
    proxy.set({ delayMs: 100 });
    const beganAt = performance.now();
    const ids = Array.from({ length: 30 }, (_, i) => `m${i}`);
    await Promise.all(
      ids.map((id) => slow.holder.send('backups', { ...message(id), topic: `tests.${id.length}` })),
    );
    t.log(
      `all were taken after ${Math.round(performance.now() - beganAt)} ms, in ${requests} requests, over a link with a round trip of 200 ms`,
    );
    t.deepEqual(taken(b), ['first', ...ids]);
    t.is(requests, 2, 'the first one, and all others');
  },
);

test.serial(
  '[C13] of messages that went together, those behind one that is not taken now wait for it, and those before it are taken once',
  async (t) => {
    const name = clusterName();
    const a = await open(t, 'a', name);
    let refusals = 2;
    const b = await open(t, 'b', name, {
      take: ({ correlation }: ArrivedMessage) => {
        if (correlation === 'm3') throw new Error('no such actor');
        if (correlation !== 'm2' || refusals === 0) return;
        refusals -= 1;
        throw new HostError('HF_PLUGIN_ELSEWHERE', { what: 'Singleton alerts', where: 'b does not hold it' });
      },
    });
    b.holder.hold('alerts', lease('x:1'));
    await a.holder.send('alerts', message('first'));
    const sent = ['m0', 'm1', 'm2', 'm3', 'm4'].map((id) => a.holder.send('alerts', message(id)));
    await t.throwsAsync(sent[3] ?? Promise.resolve(), { message: /could not take it/ });
    await Promise.all(sent.toSpliced(3, 1));
    t.deepEqual(taken(b), ['first', 'm0', 'm1', 'm2', 'm4']);
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
    b.holder.hold('watchdog', lease('x:1'));
    await a.holder.send('watchdog', message('slow'));
    t.is(attempts, 1);
    t.deepEqual(taken(b), ['slow']);
  },
);

test.serial(
  '[C13] a message that its holder cannot take, or that no holder takes in time, is an error',
  async (t) => {
    const name = clusterName();
    const a = await open(t, 'a', name, { withinMs: 2_000 });
    const b = await open(t, 'b', name, {
      take: () => {
        throw new Error('no such actor');
      },
    });
    b.holder.hold('alerts', lease('x:1'));
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
    b.holder.hold('rotation', lease('x:1'));
    await t.throwsAsync(a.holder.send('rotation', message('m4')), { message: /could not take it/ });
    a.holder.stop();
    await Promise.all(waiting);
    t.is(a.holder.waiting, 0);
  },
);

test.serial(
  '[C13] a message that its own host takes, and that no successor gets to know of, is an error in time, too',
  async (t) => {
    const stream = Promise.withResolvers<void>();
    const wish = { withinMs: 2_500, known: () => stream.promise };
    const a = await open(t, 'a', clusterName(), wish);
    a.holder.hold('watchdog', lease('x:1'));
    const error = { code: 'HF_CLUSTER_UNDELIVERED', message: /may have been taken/ };
    await t.throwsAsync(a.holder.send('watchdog', message('own')), error);
    t.deepEqual(taken(a), ['own'], 'once');
    stream.resolve();
    await a.holder.send('watchdog', message('next'));
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
  b.holder.hold('alerts', lease('x:1')); // the lease is released when everything of the host has stopped
  const sent = a.holder.send('alerts', message('m1'));
  const own = b.holder.send('alerts', message('m2'));
  await until('both were refused, and tried again', () => attempts >= 4);
  const c = await open(t, 'c', name);
  c.holder.hold('alerts', lease('x:2'));
  b.holder.release('alerts');
  await Promise.all([sent, own]);
  t.deepEqual(taken(c).toSorted(), ['m1', 'm2']);
  t.deepEqual(taken(b), []);
});

for (const [how, counts] of [
  ['is lost', false],
  ['ends by plan', true],
] as const) {
  test.serial(
    `[C13] a message that is on its way to the stream when the lease ${how} is taken once`,
    async (t) => {
      const name = clusterName();
      const a = await open(t, 'a', name);
      const mirrored = Promise.withResolvers<void>();
      let attempts = 0;
      const b = await open(t, 'b', name, {
        take: () => {
          attempts += 1;
        },
        known: () => mirrored.promise,
      });
      let isHeld = true;
      b.holder.hold('alerts', { token: 'x:1', isHeld: () => isHeld, counts: () => isHeld || counts });
      const sent = a.holder.send('alerts', message('m1'));
      await until('b has it', () => attempts === 1);
      isHeld = false;
      mirrored.resolve();
      if (!counts) {
        const c = await open(t, 'c', name);
        c.holder.hold('alerts', lease('x:2'));
        b.holder.release('alerts');
        await sent;
        t.deepEqual(taken(c), ['m1']);
      }
      await sent;
      t.is(attempts, 1);
    },
  );
}

/** A client of the account without the key: it notes what is sent on a subject, and sends it again as it was. */
async function recorder(t: Scope, name: string, subject: string) {
  const stranger = await openLink(t, nats().url(), { name, key: strangersKey() });
  const recorded: Msg[] = [];
  stranger.listen(subject, (message) => void recorded.push({ ...copyOf(message) }));
  await stranger.connected().flush();
  const again = async (reply?: string) => {
    for (const { data, headers, reply: first } of recorded.slice())
      stranger.connected().publish(subject, data, {
        ...(headers && { headers }),
        ...((reply ?? first) && { reply: reply ?? first }),
      });
    await stranger.connected().flush();
  };
  return { stranger, recorded, again };
}

type Msg = Pick<NatsMessage, 'data' | 'headers' | 'reply'>;
const namesToken = ({ data }: Msg) => Buffer.from(data).toString().includes('"token":"x:1"');
const copyOf = ({ data, headers, reply }: Msg): Msg => ({
  data: data.slice(),
  ...(headers && { headers }),
  ...(reply !== undefined && { reply }),
});

test.serial('[C13] a request of a stranger, or an old one sent again, is not taken', async (t) => {
  const name = clusterName();
  const [a, b] = [await open(t, 'a', name), await open(t, 'b', name)];
  b.holder.hold('backups', lease('x:1'));
  const { stranger, recorded, again } = await recorder(t, name, `hf.${name}.to.backups`);
  await a.holder.send('backups', message('genuine'));
  await until('the one that was taken is recorded', () => recorded.some(namesToken));
  await again();
  stranger.publish(`hf.${name}.to.backups`, JSON.stringify({ id: 'x' }));
  await a.stop();
  await a.link.close();
  const restarted = await open(t, 'a', name);
  await until('b hears the new run', () => b.beats.heard.get('a')?.run === restarted.beats.run);
  const before = b.holder.dropped;
  await again(); // of a run that has ended
  await until('it is refused', () => b.holder.dropped > before);
  await restarted.holder.send('backups', message('last'));
  t.deepEqual(taken(b), ['genuine', 'last']);
});

test.serial(
  '[C13] a message for a holder, sent again, is taken by no other holder, nor by the same one under another lease',
  async (t) => {
    const name = clusterName();
    const [a, b, c] = [await open(t, 'a', name), await open(t, 'b', name), await open(t, 'c', name)];
    await until('c hears a', () => c.beats.live().some(({ host }) => host === 'a'));
    b.holder.hold('backups', lease('x:1'));
    const { recorded, again } = await recorder(t, name, `hf.${name}.to.backups`);
    await a.holder.send('backups', message('genuine'));
    await until('the one that was taken is recorded', () => recorded.some(namesToken));
    b.holder.release('backups');
    c.holder.hold('backups', lease('x:2'));
    await c.link.connected().flush();
    await again(); // still fresh
    await until('c refused it', () => c.holder.dropped > 0);
    await a.holder.send('backups', message('next'));
    c.holder.release('backups');
    c.holder.hold('backups', lease('x:3'));
    await a.holder.send('backups', message('last'));
    t.deepEqual(taken(b), ['genuine']);
    t.deepEqual(taken(c), ['next', 'last']);
  },
);

test.serial(
  '[C13] a question that a stranger repeats is answered nowhere else, and asked of nobody twice',
  async (t) => {
    const name = clusterName();
    const [a, b] = [await open(t, 'a', name), await open(t, 'b', name)];
    await until('they hear each other', () => [a, b].every(({ beats }) => beats.live().length === 1));
    let asked = 0;
    b.asks.onAsked('secrets', () => {
      asked += 1;
      return 'known';
    });
    const { stranger, recorded, again } = await recorder(t, name, `hf.${name}.ask.secrets`);
    const heard: string[] = [];
    stranger.listen('_INBOX.stranger', ({ data }) => void heard.push(Buffer.from(data).toString()));
    await stranger.connected().flush();
    await a.asks.ask('secrets', null, 60_000);
    await until('it is recorded', () => recorded.length === 1);
    const before = b.link.forged;
    await again('_INBOX.stranger');
    await until('the one to another inbox is dropped as forged', () => b.link.forged > before);
    await again(recorded[0]?.reply);
    await until('the one as it was is known', () => b.asks.dropped > 0);
    await b.link.connected().flush();
    await stranger.connected().flush();
    t.is(asked, 1);
    t.deepEqual(heard, []);
  },
);

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
    const { answers, unanswered } = await a.asks.ask('gateway.approval', { id: 1 }, withinMs);
    t.deepEqual(unanswered, []);
    t.deepEqual(
      [...answers].sort((x, y) => x.host.localeCompare(y.host)),
      [
        { host: 'b', answer: { host: 'b', body: { id: 1 }, from: 'a' } },
        { host: 'c', answer: { host: 'c', body: { id: 1 }, from: 'a' } },
      ],
    );
    const onlyB = { answers: [{ host: 'b', answer: 'b' }], unanswered: [] };
    t.deepEqual(await a.asks.ask('only.b', null, withinMs), onlyB);
    const broken = await a.asks.ask('broken', null, withinMs);
    t.deepEqual([broken.answers, broken.unanswered.toSorted()], [[], ['b', 'c']]);
    t.deepEqual(await a.asks.ask('nobody.knows', null, withinMs), { answers: [], unanswered: [] });
    await t.throwsAsync(a.asks.ask('large', 'x'.repeat(65_536), 1_000), { code: 'HF_CLUSTER_MESSAGE_SIZE' });
  },
);

test.serial(
  '[C13] a question that a stranger repeats at once is still answered by every host, however long that takes',
  async (t) => {
    const name = clusterName();
    const [a, b, c] = [await open(t, 'a', name), await open(t, 'b', name), await open(t, 'c', name)];
    await until('all hear each other', () => [a, b, c].every(({ beats }) => beats.live().length === 2));
    const { promise: known, resolve: know } = Promise.withResolvers<void>();
    for (const { asks, host } of [b, c]) asks.onAsked('denied', () => known.then(() => `denied on ${host}`));
    const { recorded, again } = await recorder(t, name, `hf.${name}.ask.denied`);
    const asking = a.asks.ask('denied', null, 60_000);
    await until('it is recorded', () => recorded.length === 1);
    await again(recorded[0]?.reply);
    await until('the copies arrived', () => [b, c].every(({ asks }) => asks.dropped > 0));
    know();
    const { answers, unanswered } = await asking;
    t.deepEqual(answers.map(({ answer }) => answer).toSorted(), ['denied on b', 'denied on c']);
    t.deepEqual(unanswered, []);
  },
);

test.serial(
  '[C13] several answers of one host to a question count as one, and what it knows takes the place of that it failed',
  async (t) => {
    const name = clusterName();
    const [a, b, c] = [await open(t, 'a', name), await open(t, 'b', name), await open(t, 'c', name)];
    await until('all hear each other', () => [a, b, c].every(({ beats }) => beats.live().length === 2));
    b.asks.stop();
    c.asks.onAsked('denied', async () => {
      await delay(200);
      return 'denied on c';
    });
    // A host of an earlier release answers copies of a question, too.
    b.link.subscribe(`hf.${name}.ask.denied`, (asked) => {
      for (const answer of [{ failed: true }, { answer: 'denied on b' }, { failed: true }])
        asked.respond(JSON.stringify({ from: 'b', ...answer }));
    });
    await b.link.connected().flush();
    const { answers, unanswered } = await a.asks.ask('denied', null, 60_000);
    t.deepEqual(answers.map(({ answer }) => answer).toSorted(), ['denied on b', 'denied on c']);
    t.deepEqual(unanswered, []);
  },
);

test.serial('[C13] a question says which hosts gave no answer, also when this host is cut off', async (t) => {
  const name = clusterName();
  const proxy = await nats().proxyTo(0);
  const a = await openHost(t, proxy.url, 'a', { name });
  const [b, c] = [await open(t, 'b', name), await open(t, 'c', name)];
  await until('all hear each other', () => [a, b, c].every(({ beats }) => beats.live().length === 2));
  b.asks.onAsked('who', () => 'b');
  c.asks.stop(); // it beats, and does not answer
  await c.link.connected().flush();
  t.deepEqual(await a.asks.ask('who', null, 2_000), {
    answers: [{ host: 'b', answer: 'b' }],
    unanswered: ['c'],
  });
  proxy.refuse();
  await until('a is cut off', () => a.beats.standing().isIsolated);
  const { answers, unanswered } = await a.asks.ask('who', null, 2_000);
  t.deepEqual([answers, unanswered.toSorted()], [[], ['b', 'c']]);
});
