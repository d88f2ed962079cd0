import test from 'ava';
import { HostError } from '../../../../src/core/host/errors/host-error.ts';
import type { ActorDefinition } from '../../../../src/core/kernel/actors/definition.ts';
import { systemClock } from '../../../../src/core/kernel/clock.ts';
import { version } from '../../../../src/core/kernel/version.ts';
import { SharedMessages } from '../../../../src/plugins/cluster/messages/shared-messages.ts';
import type { Position } from '../../../../src/plugins/cluster/mirror/position.ts';
import { LinearStream } from '../../../../src/plugins/cluster/nats/stream.ts';
import { openLink, silent } from '../../../support/cluster.ts';
import { clusterName } from '../../../support/message-hosts.ts';
import { startNats } from '../../../support/nats.ts';
import type { Scope } from '../../../support/scope.ts';
import { until } from '../../../support/until.ts';

interface Wish {
  readonly name: string;
  readonly doors?: readonly string[];
  readonly position?: Position;
  readonly others?: Iterable<string>;
  readonly whenDurable?: () => Promise<void>;
}

const connected = { hosts: 2, silentMs: 0, isIsolated: false, isBehind: false };

/** What every host hears, at a host that has some doors, which all hosts share. */
async function open(t: Scope, url: string, host: string, wish: Wish) {
  const { name, doors = [], position = {}, others = [] } = wish;
  const link = await openLink(t, url, { name, host, isAlone: true });
  const notes = { current: position };
  const heard = new Set<string>();
  const hear: NonNullable<ActorDefinition['hear']> = () => ({ type: 'HEARD' });
  const state = (ref: string) => ({
    ...{ ref, machine: 'door', version: 1, value: 'open', context: { order: 1 }, done: false },
    ...{ seq: 1, at: 1, timers: {}, effects: {} },
  });
  const actors = {
    states: () => doors.map(state),
    snapshot: state,
    deliver: (ref: string) => {
      heard.add(ref);
      const nobody = () => Promise.reject(new Error('nobody waits'));
      return { record: undefined, decided: nobody, durable: nobody };
    },
    whenFree: async () => {},
  };
  const log = { lastSeq: () => 0, whenDurable: wish.whenDurable ?? (async () => {}) };
  const declarations = () => ({ actors: [{ type: 'test.door', hear }] });
  const common = { link, clock: systemClock, logger: silent };
  const shared = new SharedMessages({
    ...{ ...common, name, host, replicas: 1 },
    services: { ...common, actors, log, declarations },
    position: {
      get current() {
        return notes.current;
      },
      set: (part) => {
        notes.current = { ...notes.current, ...part };
      },
    },
    others: () => new Set(others),
    deliver: async ({ from, topic }) => {
      if (topic === 'test.news')
        throw new HostError('HF_PLUGIN_MESSAGE', { host: from, topic, reason: 'new' });
    },
  });
  t.teardown(() => shared.stop());
  shared.start();
  return { shared, notes, heard, link };
}

test('[C13] a host whose first start ends before it reaches NATS sends what it has at the next one', async (t) => {
  const nats = await startNats(t);
  const name = clusterName();
  const doors = ['test.door/front', 'test.door/back'];
  const first = await open(t, 'nats://127.0.0.1:9', 'a', { name, doors });
  await first.shared.stop();
  t.is(first.notes.current.shared, undefined, 'the next start is the first one, too');
  const b = await open(t, nats.url(), 'b', { name });
  const again = await open(t, nats.url(), 'a', { name, doors, position: first.notes.current });
  await until('the other host has them', () => b.heard.size === 2);
  await until('that is noted', () => again.notes.current.shared?.isUnshared === false);
  // A stop before all was sent is no end of it either.
  await again.shared.stop();
  const { shared = { incarnation: '', seq: 0, epoch: 0, trail: [] } } = again.notes.current;
  b.heard.clear();
  await open(t, nats.url(), 'a', { name, doors, position: { shared: { ...shared, isUnshared: true } } });
  await until('the other host has them again', () => b.heard.size === 2);
});

test('[C13] a host that missed messages has heard all that another one knows when it counts as connected again', async (t) => {
  const nats = await startNats(t);
  const name = clusterName();
  const doors = Array.from({ length: 1_000 }, (_, i) => `test.door/${i}`);
  const a = await open(t, nats.url(), 'a', { name, doors, others: ['b'] });
  await until('it has shared them', () => a.notes.current.shared?.isUnshared === false);
  const place = a.notes.current.shared ?? { incarnation: '', seq: 0, epoch: 0, trail: [] };
  const b = await open(t, nats.url(), 'b', {
    ...{ name, others: ['a'] },
    position: { shared: { ...place, isIncomplete: true } },
  });
  b.shared.returned(0);
  t.like(b.shared.standing(connected), { isIsolated: true, isBehind: true });
  await until('it is complete', () => !b.shared.standing(connected).isBehind);
  t.is(b.heard.size, 1_000);
  await until('that is noted', () => b.notes.current.shared?.isIncomplete === false);
});

test('[C13,G6] a host that has read nothing since its start is behind, not merely cut off, also when it was back for a moment', async (t) => {
  const { shared } = await open(t, 'nats://127.0.0.1:9', 'a', { name: clusterName() });
  const cutOff = { ...connected, silentMs: 3_000, isIsolated: true };
  t.like(shared.standing(cutOff), { isIsolated: true, isBehind: true });
  shared.returned(3_000);
  t.like(shared.standing(connected), { isIsolated: true, isBehind: true });
  t.like(shared.standing(cutOff), { isIsolated: true, isBehind: true });
});

test('[C13] what a host of another release says and this one does not understand counts as missed, with both releases named', async (t) => {
  const nats = await startNats(t);
  const name = clusterName();
  const alive = new Set(['b']);
  const a = await open(t, nats.url(), 'a', { name, others: alive });
  const b = await open(t, nats.url(), 'b', { name, doors: ['test.door/front'], others: new Set(['a']) });
  a.shared.returned(0);
  const isConnected = () => !a.shared.standing(connected).isBehind;
  await until('a is connected', isConnected);
  t.deepEqual(a.shared.foreign, []);
  // Its payload does not fit the topic here; the host's states do.
  await b.shared.send({ topic: 'test.news', payload: 1, correlation: 'c' });
  await until('a lacks it', () => a.shared.foreign.length > 0);
  const [error] = a.shared.foreign;
  t.like(error, { code: 'HF_CLUSTER_VERSION' });
  t.true(error?.what.startsWith(`The host b runs version ${version}, this one ${version}`));
  await until(
    'a has heard in another way what b knows',
    () => isConnected() && a.shared.foreign.length === 0,
  );
  // A host of another protocol can answer nothing: only when it is gone there is nobody to be asked.
  alive.add('c');
  const stream = await LinearStream.open(
    a.link,
    {
      ...{ name: `HF_${name}_SHARED`, subjects: [`hf.${name}.shared`], maxBytes: 64 * 1024 * 1024 },
      ...{ discard: 'old', replicas: 1 },
    },
    { clock: systemClock, logger: silent },
  );
  await stream.append(JSON.stringify({ protocol: 2, version: '9.0.0', from: 'c', news: 1 }));
  await until('a lacks that', () => a.shared.foreign.length > 0);
  t.regex(a.shared.foreign[0]?.what ?? '', /^The host c runs version 9\.0\.0, this one /);
  await until('b has answered', () => b.notes.current.shared?.isUnshared === false);
  t.false(isConnected());
  t.true(a.notes.current.shared?.isIncomplete, 'also after a restart');
  alive.delete('c');
  await until('a goes on without it', isConnected);
});

test('[C13] a log that is closed before it took anything ends a host as ever, and nothing counts as taken', async (t) => {
  const nats = await startNats(t);
  const closed = Promise.withResolvers<void>();
  const whenDurable = () => closed.promise;
  const a = await open(t, nats.url(), 'a', { name: clusterName(), whenDurable });
  await a.shared.send({ topic: 'test.other', payload: 1, correlation: 'c' });
  await a.shared.stop();
  closed.reject(new Error('the log is closed'));
  await new Promise((resolve) => setImmediate(resolve));
  t.is(a.notes.current.shared, undefined);
});
