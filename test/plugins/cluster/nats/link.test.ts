import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { headers } from '@nats-io/transport-node';
import test from 'ava';
import { createLogger } from '../../../../src/core/host/logging/logger.ts';
import { systemClock } from '../../../../src/core/kernel/clock.ts';
import type { LinkMessage } from '../../../../src/plugins/cluster/nats/link.ts';
import { openLink, strangersKey } from '../../../support/cluster.ts';
import { natsOfFile } from '../../../support/nats-of-file.ts';
import { until } from '../../../support/until.ts';

const nats = natsOfFile(test);

const unheard = () => headers(503, 'No Responders');
const text = ({ body }: LinkMessage) => body.toString();

test('[C13] a message of somebody with the key arrives; one of a stranger is dropped and counted', async (t) => {
  const [hears, sends] = [await openLink(t, nats().url()), await openLink(t, nats().url())];
  const stranger = await openLink(t, nats().url(), { key: strangersKey() });
  const heard: LinkMessage[] = [];
  hears.subscribe('hf.link.a', (message) => void heard.push(message));
  await hears.connected().flush();
  stranger.publish('hf.link.a', 'forged');
  stranger.connected().publish('hf.link.a', 'without any code');
  await stranger.connected().flush();
  sends.publish('hf.link.a', 'genuine', { 'Hf-From': '7' });
  await until('it has arrived', () => heard.length > 0);
  t.deepEqual(heard.map(text), ['genuine']);
  t.is(heard[0]?.headers['Hf-From'], '7');
  t.is(hears.forged, 2);
});

test('[C13] a handler that throws, or rejects, stops neither its own subscription nor another', async (t) => {
  const link = await openLink(t, nats().url());
  const heard: string[] = [];
  link.subscribe('hf.link.throws', (message) => {
    heard.push(text(message));
    if (text(message) === '1') throw new Error('on purpose');
    return Promise.reject(new Error('on purpose, too'));
  });
  for (const body of ['1', '2', '3']) link.publish('hf.link.throws', body);
  await until('all have arrived', () => heard.length === 3);
  t.deepEqual(heard, ['1', '2', '3']);
});

test('[C13] a subscription that has ended hears nothing more', async (t) => {
  const link = await openLink(t, nats().url());
  const heard: string[] = [];
  const end = link.subscribe('hf.link.ends', (message) => void heard.push(text(message)));
  link.publish('hf.link.ends', '1');
  await until('it has arrived', () => heard.length === 1);
  end();
  end();
  link.publish('hf.link.ends', '2');
  await link.connected().flush();
  t.deepEqual(heard, ['1']);
});

test('[C13] a question is answered by one or by all; a stranger answers nothing', async (t) => {
  const [asks, a, b] = [
    await openLink(t, nats().url()),
    await openLink(t, nats().url()),
    await openLink(t, nats().url()),
  ];
  const stranger = await openLink(t, nats().url(), { key: strangersKey() });
  stranger.listen('hf.link.asked', (message) => stranger.publish(message.reply ?? '', 'forged'));
  await stranger.connected().flush();
  await t.throwsAsync(asks.request('hf.link.asked', '?', 200), { code: 'HF_CLUSTER_TIMEOUT' });
  a.subscribe('hf.link.asked', (message) => message.respond(`a heard ${text(message)}`));
  b.subscribe('hf.link.asked', async (message) => message.respond(`b heard ${text(message)}`));
  await Promise.all([a.connected().flush(), b.connected().flush()]);
  t.regex(text(await asks.request('hf.link.asked', '1', 60_000)), /^[ab] heard 1$/);
  let heard = 0;
  const all = await asks.requestAll('hf.link.asked', '2', 60_000, () => {
    heard += 1;
    return heard === 2;
  });
  t.deepEqual(all.map(text).sort(), ['a heard 2', 'b heard 2']);
});

test('[C13] a question that nobody listens to is answered soon', async (t) => {
  const link = await openLink(t, nats().url());
  await t.throwsAsync(link.request('hf.link.nobody', '?', 120_000), { code: 'HF_CLUSTER_UNREACHABLE' });
  t.deepEqual(await link.requestAll('hf.link.nobody', '?', 200), []);
});

test('[C13] a stranger who says that nobody listens ends no question before its answers', async (t) => {
  // On a busy machine half a second is short.
  const after = (ms: number, callback: () => void) => systemClock.after(ms * 50, callback);
  const asks = await openLink(t, nats().url(), { clock: { ...systemClock, after } });
  const answers = await openLink(t, nats().url());
  const stranger = await openLink(t, nats().url(), { key: strangersKey() });
  const told = Promise.withResolvers<void>();
  stranger.listen('hf.link.liar', ({ reply }) => {
    const socket = stranger.connected();
    // As the server says it.
    if (reply) socket.publish(reply, '', { headers: unheard() });
    void socket.flush().then(told.resolve);
  });
  answers.subscribe('hf.link.liar', async (message) => {
    await told.promise;
    message.respond('heard');
  });
  await Promise.all([stranger, answers].map((link) => link.connected().flush()));
  t.is(text(await asks.request('hf.link.liar', '1', 60_000)), 'heard');
  t.deepEqual((await asks.requestAll('hf.link.liar', '2', 60_000, () => true)).map(text), ['heard']);
});

test('[C13] a message larger than the servers take is refused, and the connection stays', async (t) => {
  const link = await openLink(t, nats().url());
  t.throws(() => link.publish('hf.link.large', Buffer.alloc(1024 * 1024)), { code: 'HF_CLUSTER_SIZE' });
  await link.connected().flush();
  t.true(link.isUp);
});

test('[C13] without a connection nothing is sent, and the reason holds no password', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as { port: number };
  await new Promise((resolve) => taken.close(resolve));
  const link = await openLink(t, `nats://me:s3cret@127.0.0.1:${port}`, { isAlone: true });
  await until('it has tried', () => link.problem !== 'it has not answered yet');
  t.false(link.isUp);
  const error = t.throws(() => link.publish('hf.link.none', 'x'), { code: 'HF_CLUSTER_UNREACHABLE' });
  t.notRegex(`${error?.message} ${link.problem} ${link.shown}`, /s3cret/);
  await t.throwsAsync(link.request('hf.link.none', 'x', 100), { code: 'HF_CLUSTER_UNREACHABLE' });
  t.throws(() => link.jetstream(), { code: 'HF_CLUSTER_UNREACHABLE' });
});

test('[C13] after a lost connection the subscriptions are there again, and what changed is said', async (t) => {
  const proxy = await nats().proxyTo(0);
  const [link, sends] = [await openLink(t, proxy.url), await openLink(t, nats().url())];
  const heard: string[] = [];
  const changes: boolean[] = [];
  link.onChange((isUp) => changes.push(isUp));
  link.subscribe('hf.link.again', (message) => void heard.push(text(message)));
  proxy.drop();
  await until('it is up again', () => changes.length === 2 && link.isUp);
  t.deepEqual(changes, [false, true]);
  await link.connected().flush();
  sends.publish('hf.link.again', 'after');
  await until('it hears again', () => heard.length === 1);
});

test('[C13] what happens again and again is logged once: forged messages, and attempts to connect', async (t) => {
  const lines: string[] = [];
  const logger = createLogger({ destination: { write: (line) => void lines.push(line) } });
  const proxy = await nats().proxyTo(0);
  const link = await openLink(t, proxy.url, { logger });
  lines.length = 0; // on a busy machine the first attempt may have failed
  const stranger = await openLink(t, nats().url(), { key: strangersKey() });
  link.subscribe('hf.link.many', () => {});
  await link.connected().flush();
  for (let i = 0; i < 100; i += 1) stranger.publish('hf.link.many', 'forged');
  await until('all were dropped', () => link.forged === 100);
  let changes = 0;
  link.onChange(() => {
    changes += 1;
  });
  proxy.refuse();
  await until('it is lost', () => !link.isUp);
  await until('it has tried again and again', () => proxy.refused >= 3);
  proxy.heal();
  await until('it is up again', () => link.isUp);
  const count = (event: string) => lines.filter((line) => line.includes(`"${event}"`)).length;
  t.is(changes, 2);
  t.is(count('cluster.nats.forged'), 1);
  t.is(count('cluster.nats.unreachable'), 1);
  t.is(count('cluster.nats.connected'), 1);
});

test('[C13] the client of NATS is loaded with the first connection, not with the module', (t) => {
  const script = `
    const { NatsLink } = await import('./src/plugins/cluster/nats/link.ts');
    const { createRequire } = await import('node:module');
    const loaded = Object.keys(createRequire(import.meta.url).cache).filter((name) => name.includes('@nats-io'));
    console.log(typeof NatsLink.open, loaded.length);
  `;
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script];
  t.is(execFileSync(process.execPath, args, { encoding: 'utf8' }).trim(), 'function 0');
});

test('[C13] a question that a stranger repeats with another place for the answer is dropped', async (t) => {
  const [one, two] = [await openLink(t, nats().url()), await openLink(t, nats().url())];
  const stranger = (await openLink(t, nats().url(), { key: strangersKey() })).connected();
  let asked = 0;
  one.subscribe('hf.link.question', ({ respond }) => {
    asked += 1;
    respond('an answer');
  });
  const heard: string[] = [];
  two.subscribe('hf.link.order', (message) => void heard.push(text(message)));
  stranger.subscribe('hf.link.question', {
    max: 1,
    callback: (_, { data, headers }) =>
      stranger.publish('hf.link.question', data, { reply: 'hf.link.order', ...(headers && { headers }) }),
  });
  await Promise.all([one.connected().flush(), two.connected().flush(), stranger.flush()]);
  t.is(text(await two.request('hf.link.question', 'what?', 5_000)), 'an answer');
  await until('the repeated one is dropped', () => one.forged === 1);
  t.is(asked, 1);
  await one.connected().flush();
  await two.connected().flush();
  t.deepEqual(heard, []);
});

test('[C13] a forged message on a stream counts once however often it is read, and the memory of that is bounded', async (t) => {
  const link = await openLink(t, nats().url());
  const places = Array.from({ length: 10_001 }, (_, i) => `a stream ${i}`);
  for (const place of [...places, ...places.slice(1)]) link.countForged('hf.link.stored', place);
  t.is(link.forged, 10_001);
  link.countForged('hf.link.stored', places[0]);
  t.is(link.forged, 10_002, 'the oldest was forgotten');
});
