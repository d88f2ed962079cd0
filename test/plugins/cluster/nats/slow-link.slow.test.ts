import test from 'ava';
import { systemClock } from '../../../../src/core/kernel/clock.ts';
import { LinearStream } from '../../../../src/plugins/cluster/nats/stream.ts';
import { openLink, silent, streamSettings } from '../../../support/cluster.ts';
import { openHost } from '../../../support/message-hosts.ts';
import { MirroredHost } from '../../../support/mirrored-host.ts';
import { startNats } from '../../../support/nats.ts';
import { until } from '../../../support/until.ts';

const MESSAGE_BYTES = 700_000;

test('[C13] a link on which large messages come slowly is not taken for a dead one', async (t) => {
  const nats = await startNats(t);
  const settings = streamSettings();
  const writes = await openLink(t, nats.url());
  const written = await LinearStream.open(writes, settings, { clock: systemClock, logger: silent });
  for (let i = 0; i < 3; i += 1) await written.append(Buffer.alloc(MESSAGE_BYTES, i));
  const proxy = await nats.proxyTo(0);
  const link = await openLink(t, proxy.url);
  const stream = await LinearStream.open(link, settings, { clock: systemClock, logger: silent });
  const changes: boolean[] = [];
  link.onChange((isUp) => changes.push(isUp));
  // A message takes 2.3 s: what else is answered comes behind it.
  proxy.set({ bytesPerSecond: 400_000 });
  let read = 0;
  for await (const { body } of stream.read(1)) read += body.length;
  t.is(read, 3 * MESSAGE_BYTES);
  t.deepEqual(changes, []);
});

test('[C13] a link over which some messages come, and no answer, is taken for a dead one', async (t) => {
  const nats = await startNats(t);
  const proxy = await nats.proxyTo(0);
  const [link, others] = [await openLink(t, proxy.url), await openLink(t, nats.url())];
  link.subscribe('hf.link.beats', () => {});
  await link.connected().flush();
  const timer = setInterval(() => others.publish('hf.link.beats', 'a beat of another host'), 50);
  t.teardown(() => clearInterval(timer));
  proxy.cut('up');
  const cutAt = performance.now();
  await until('it is lost', () => !link.isUp);
  t.true(performance.now() - cutAt < 10_000);
});

test('[C13] a host whose log goes over a slow link is not cut off by what it sends', async (t) => {
  const nats = await startNats(t);
  const proxy = await nats.proxyTo(0);
  const { beats, link } = await openHost(t, proxy.url, 'one', { name: 'tests' });
  const host = new MirroredHost(t, link);
  await host.mirror(10);
  await until('its beats are stored', () => !beats.standing().isIsolated);
  const changes: boolean[] = [];
  link.onChange((isUp) => changes.push(isUp));
  proxy.set({ bytesPerSecond: 600_000 });
  let mostSilentMs = 0;
  const timer = setInterval(() => {
    mostSilentMs = Math.max(mostSilentMs, beats.standing().silentMs);
  }, 50);
  await host.mirror(8_000);
  clearInterval(timer);
  t.log(`the newest proof was at most ${Math.round(mostSilentMs)} ms old`);
  t.deepEqual(changes, []);
  t.true(mostSilentMs < 2_000);
});
