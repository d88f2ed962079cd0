import { StorageType } from '@nats-io/jetstream';
import test from 'ava';
import { createLogger } from '../../../../src/core/host/logging/logger.ts';
import { systemClock } from '../../../../src/core/kernel/clock.ts';
import { asEpochMs } from '../../../../src/core/kernel/ids.ts';
import { openLink, strangersKey } from '../../../support/cluster.ts';
import { clusterName, type MessageHost, openHost } from '../../../support/message-hosts.ts';
import { natsOfFile } from '../../../support/nats-of-file.ts';
import type { Scope } from '../../../support/scope.ts';
import { read, until } from '../../../support/until.ts';

const nats = natsOfFile(test);

const open = (t: Scope, host: string, name: string, wish = {}): Promise<MessageHost> =>
  openHost(t, nats().url(), host, { name, ...wish });
const hears = ({ beats }: MessageHost, ...hosts: string[]) =>
  beats
    .live()
    .map(({ host }) => host)
    .sort()
    .join() === hosts.join();

test.serial('[C13] hosts hear each other, what they announce, and prove that they reach NATS', async (t) => {
  const name = clusterName();
  const [a, b] = [await open(t, 'a', name), await open(t, 'b', name)];
  a.beats.announce('calls', () => ({ key1: 3 }));
  b.beats.announce('calls', () => {
    throw new Error('no figures now');
  });
  b.beats.announce('routes', () => [1]);
  await until('they hear each other', () => hears(a, 'b') && hears(b, 'a'));
  await until('b knows the figures', () => b.beats.announced('calls').get('a') !== undefined);
  t.deepEqual([...b.beats.announced('calls')], [['a', { key1: 3 }]]);
  await until('a knows the others', () => a.beats.announced('routes').size === 1);
  await until('a knows that its own are stored', () => a.beats.announced('calls').size === 1);
  t.deepEqual([...a.beats.announced('calls')], [['a', { key1: 3 }]]);
  t.is(a.beats.announced('toString').size, 0);
  const { hosts, silentMs } = await read(
    'a knows that it reaches NATS',
    () => a.beats.standing(),
    ({ isIsolated }) => !isIsolated,
  );
  t.is(hosts, 2);
  t.true(silentMs >= 0 && silentMs <= 2_000, 'what it calls not isolated');
});

test.serial(
  '[C13] a host without an acknowledgement for two seconds knows that it is isolated, and when it is not any more',
  async (t) => {
    const name = clusterName();
    const proxy = await nats().proxyTo(0);
    const a = await openHost(t, proxy.url, 'a', { name });
    const b = await open(t, 'b', name);
    await until('they hear each other', () => hears(a, 'b') && hears(b, 'a'));
    proxy.cut('down'); // what it sends arrives, and nobody tells it
    await until('a is isolated', () => a.beats.standing().isIsolated);
    t.true(a.beats.standing().silentMs > 2_000);
    await t.throwsAsync(a.beats.nameIsOurs(), { code: 'HF_CLUSTER_NAME_UNKNOWN' });
    t.false(b.beats.standing().isIsolated);
    proxy.heal();
    await until('a is back', () => !a.beats.standing().isIsolated);
  },
);

test.serial(
  '[C13] a process that stood still knows by its own clock that it is behind, before its first timer or beat',
  async (t) => {
    let stoodStillMs = 0;
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + stoodStillMs };
    const a = await open(t, 'a', clusterName(), { clock });
    t.like(a.beats.standing(), { isIsolated: false, isBehind: false });
    stoodStillMs += 10_000;
    t.like(a.beats.standing(), { isIsolated: true, isBehind: true });
    await until('it has proven that it is connected', () => !a.beats.standing().isIsolated);
  },
);

test.serial('[C13] a second host of one name does not start, and names the first', async (t) => {
  const name = clusterName();
  const first = await open(t, 'a', name);
  const error = await t.throwsAsync(open(t, 'a', name), { code: 'HF_CLUSTER_NAME_TAKEN' });
  t.regex(error?.message ?? '', /host a of this cluster, since 20\d\d-/);
  t.is(first.nameTaken, undefined);
  await first.stop();
  await t.notThrowsAsync(open(t, 'a', name));
});

test.serial(
  '[C13] of two hosts of one name that started without NATS, the later one is stopped',
  async (t) => {
    const name = clusterName();
    const proxy = await nats().proxyTo(0);
    proxy.refuse();
    const first = await openHost(t, proxy.url, 'a', { name, isAlone: true });
    const second = await openHost(t, proxy.url, 'a', { name, isAlone: true });
    proxy.heal();
    await until('one is stopped', () => first.nameTaken ?? second.nameTaken);
    t.is(first.nameTaken, undefined);
    t.like(second.nameTaken, { code: 'HF_CLUSTER_NAME_TAKEN' });
  },
);

test.serial(
  '[C13] of two hosts of one name that started without NATS, the later one is stopped though its clock is years behind',
  async (t) => {
    const name = clusterName();
    const proxy = await nats().proxyTo(0);
    proxy.refuse();
    let passedMs = 0;
    const early = { ...systemClock, monotonic: () => systemClock.monotonic() + passedMs };
    const first = await openHost(t, proxy.url, 'a', { name, isAlone: true, clock: early });
    passedMs += 60_000;
    const behind = { ...systemClock, now: () => asEpochMs(Date.UTC(2020)) };
    const second = await openHost(t, proxy.url, 'a', { name, isAlone: true, clock: behind });
    proxy.heal();
    await until('one is stopped', () => first.nameTaken ?? second.nameTaken);
    t.is(first.nameTaken, undefined);
    t.like(second.nameTaken, { code: 'HF_CLUSTER_NAME_TAKEN' });
  },
);

test.serial('[C13] a host of another protocol does not count', async (t) => {
  const name = clusterName();
  const lines: string[] = [];
  const logger = createLogger({ level: 'warn', destination: { write: (line) => void lines.push(line) } });
  const a = await open(t, 'a', name, { logger });
  const b = await open(t, 'b', name, { protocol: 2, version: '9.0.0' });
  const c = await open(t, 'c', name, { version: '1.1.0' });
  await until('a and c hear each other', () => hears(a, 'c') && hears(c, 'a'));
  await until('a has dropped beats of b', () => a.beats.dropped > 0 && b.beats.dropped > 0);
  t.true(hears(a, 'c') && hears(c, 'a') && hears(b));
  t.is(a.beats.heard.get('c')?.version, '1.1.0');
  await until('a has heard b often', () => a.beats.dropped >= 3);
  const told = lines.filter((line) => line.includes('The host b runs version 9.0.0, this one 1.0.0'));
  t.is(told.length, 1);
  t.deepEqual([...a.beats.foreign], ['b'], 'it is known to live');
  t.deepEqual([...a.beats.present], ['c']);
});

test.serial('[C13] beats of the past, sent again, bring no host back to life', async (t) => {
  const name = clusterName();
  const stranger = await openLink(t, nats().url(), { name, key: strangersKey() });
  const recorded: { subject: string; data: Uint8Array; code: string }[] = [];
  stranger.listen(`hf.${name}.beat.*`, ({ subject, data, headers }) => {
    recorded.push({ subject, data: data.slice(), code: headers?.get('Hf-Mac') ?? '' });
  });
  const dead = await open(t, 'dead', name);
  await until('beats are recorded', () => recorded.length >= 2);
  await dead.stop();
  await dead.link.close();
  const a = await open(t, 'a', name);
  const again = () => {
    for (const { subject, data, code } of recorded.filter((beat) => beat.subject.endsWith('dead')))
      stranger.connected().publish(subject, data, { headers: stranger.headers({ 'Hf-Mac': code }) });
  };
  const heard: string[] = [];
  a.link.subscribe(`hf.${name}.beat.dead`, () => void heard.push('dead'));
  await a.link.connected().flush();
  again();
  stranger.publish(`hf.${name}.beat.dead`, '{}'); // by another key
  await until('a hears them', () => heard.length >= 2);
  const b = await open(t, 'b', name);
  await until('a hears b', () => hears(a, 'b'));
  t.is(a.beats.heard.get('dead'), undefined);
  t.true(a.link.forged > 0);
  const run = b.beats.run;
  t.false(a.beats.isFresh({ from: 'dead', run: dead.beats.run, upMs: 1 }));
  t.true(a.beats.isFresh({ from: 'b', run, upMs: b.beats.upMs }));
  t.false(a.beats.isFresh({ from: 'b', run, upMs: b.beats.upMs - 31_000 }));
  t.false(a.beats.isFresh({ from: 'b', run, upMs: b.beats.upMs + 31_000 }));
  t.false(a.beats.isFresh({ from: 'c', run, upMs: b.beats.upMs }));
});

/** Keeps the beats of a host, as anybody in the account can, and sends one of them again. */
async function recorder(t: Scope, name: string, host: string) {
  const stranger = await openLink(t, nats().url(), { name, key: strangersKey() });
  const recorded: { data: Uint8Array; code: string }[] = [];
  stranger.listen(`hf.${name}.beat.${host}`, ({ data, headers }) => {
    recorded.push({ data: data.slice(), code: headers?.get('Hf-Mac') ?? '' });
  });
  await stranger.connected().flush();
  const again = () => {
    const [first] = recorded;
    const headers = stranger.headers({ 'Hf-Mac': first?.code ?? '' });
    if (first) stranger.connected().publish(`hf.${name}.beat.${host}`, first.data, { headers });
  };
  return { recorded, again };
}

test.serial(
  '[C13] a host that is dead does not count because somebody sends its last beat again and again',
  async (t) => {
    const name = clusterName();
    const { recorded, again } = await recorder(t, name, 'dead');
    const dead = await open(t, 'dead', name);
    await until('a beat is recorded', () => recorded.length > 0);
    await dead.stop();
    await dead.link.close();
    const a = await open(t, 'a', name);
    const timer = setInterval(again, 100);
    t.teardown(() => clearInterval(timer));
    await until('it may live', () => a.beats.present.has('dead'));
    await until('it was asked in vain', () => !a.beats.present.has('dead'));
    const heard = recorded.length;
    await until('it is heard as before', () => recorded.length > heard + 20);
    t.deepEqual([...a.beats.present], []);
    const next = await open(t, 'dead', name);
    await until('its next run counts', () => hears(a, 'dead'));
    t.is(a.beats.heard.get('dead')?.run, next.beats.run);
  },
);

test.serial(
  '[C13] a copy of a machine that runs is noticed by the beats that it did not send itself',
  async (t) => {
    const name = clusterName();
    const { recorded, again } = await recorder(t, name, 'a');
    const a = await open(t, 'a', name);
    const b = await open(t, 'b', name);
    await until('beats are recorded', () => recorded.length > 2);
    const heard = recorded.length;
    again();
    await until('its own beat has come again, and more', () => recorded.length > heard + 2);
    t.is(a.nameTaken, undefined);
    const host = await openLink(t, nats().url(), { name });
    const own = JSON.parse(Buffer.from(recorded[0]?.data ?? '').toString());
    host.publish(`hf.${name}.beat.a`, JSON.stringify({ ...own, number: own.number + 1_000 }));
    await until('it is stopped', () => a.nameTaken);
    t.like(a.nameTaken, { code: 'HF_CLUSTER_NAME_TAKEN' });
    t.is(b.nameTaken, undefined);
  },
);

/** Somebody in the account who answers each message in the servers' place: the message that it sends is well-formed. */
async function acknowledger(t: Scope, name: string) {
  const stranger = await openLink(t, nats().url(), { name, key: strangersKey() });
  const ack = JSON.stringify({ stream: `HF_${name}_QUORUM_1`, seq: 1 });
  stranger.listen(`hf.${name}.>`, ({ reply }) => {
    if (reply) stranger.connected().publish(reply, ack);
  });
  await stranger.connected().flush();
  return stranger;
}

test.serial('[C13] an acknowledgement by a stranger proves nothing, and hides nothing', async (t) => {
  const name = clusterName();
  const stranger = await acknowledger(t, name);
  const a = await open(t, 'a', name);
  await until('a has proven that it reaches NATS', () => !a.beats.standing().isIsolated);
  const { streams } = await stranger.manager();
  const takeTheSubjects = async () => {
    await streams.delete(`HF_${name}_QUORUM_1`).catch(() => {});
    // It answers nobody, so that the stranger alone does.
    return streams.add({ name: 'FRONT', subjects: [`hf.${name}.quorum.1.*`], no_ack: true });
  };
  await until('another stream has the subjects', () => takeTheSubjects().catch(() => false));
  await until('a is isolated', () => a.beats.standing().isIsolated);
  t.true(a.beats.unacknowledgedMs > 2_000);
  await streams.delete('FRONT');
  await until('a is back', () => !a.beats.standing().isIsolated);
});

test.serial(
  '[C13] a stranger who writes to the place of each message at once, and to those of the beats, cuts no host off',
  async (t) => {
    const name = clusterName();
    const stranger = await openLink(t, nats().url(), { name, key: strangersKey() });
    let written = 0;
    const proofs: string[] = [];
    const write = (subject: string) => {
      written += 1;
      stranger.connected().publish(subject, `a message of a stranger ${written}`);
    };
    stranger.listen(`hf.${name}.>`, ({ subject, data }) => {
      if (Buffer.from(data).includes('of a stranger')) return; // its own
      if (subject.includes('.quorum.')) proofs.push(subject);
      for (let i = 0; i < 5; i += 1) write(subject);
    });
    await stranger.connected().flush();
    // The stranger is nearer to the servers: what it writes stands there before a reads its own.
    const proxy = await nats().proxyTo(0);
    proxy.set({ delayMs: 30 });
    const a = await openHost(t, proxy.url, 'a', { name });
    const timer = setInterval(() => write(`hf.${name}.beat.a`), 20);
    t.teardown(() => clearInterval(timer));
    await until('a has proven that it reaches NATS', () => !a.beats.standing().isIsolated);
    let mostSilentMs = 0;
    const look = setInterval(() => {
      mostSilentMs = Math.max(mostSilentMs, a.beats.standing().silentMs);
    }, 50);
    const from = performance.now();
    await until('it has beaten for some seconds', () => performance.now() - from > 4_000);
    clearInterval(look);
    t.true(written > 200 && proofs.length > 6);
    t.is(new Set(proofs).size, proofs.length, 'nobody can write there before');
    t.true(mostSilentMs < 2_000, `${mostSilentMs}`);
  },
);

test.serial('[C13] a refusal by a stranger does not cut a host off', async (t) => {
  const name = clusterName();
  const stranger = await openLink(t, nats().url(), { name, key: strangersKey() });
  const [refused, nobody] = [
    JSON.stringify({ error: { code: 400, err_code: 10060, description: 'no' } }),
    '',
  ];
  const headers = stranger.headers({});
  let answers = 0;
  stranger.listen(`hf.${name}.quorum.>`, ({ reply }) => {
    if (reply) stranger.connected().publish(reply, answers % 2 === 0 ? refused : nobody, { headers });
    answers += 1;
  });
  await stranger.connected().flush();
  const a = await open(t, 'a', name);
  await until('many were refused', () => answers > 8);
  await until('a is not isolated', () => !a.beats.standing().isIsolated);
  t.is(a.beats.trouble, undefined);
});

for (const [what, wish] of [
  [
    'in front of that of the proofs',
    { stream: 'FRONT', replicas: 1, why: /subjects belong to a stream of another name/ },
  ],
  ['of its name, with fewer copies', { stream: 'QUORUM_1', replicas: 3, why: /num_replicas is 1, not 3/ }],
] as const) {
  test.serial(`[C13] a stream of a stranger ${what} proves nothing, and is told`, async (t) => {
    const { stream, replicas, why } = wish;
    const name = clusterName();
    const link = await openLink(t, nats().url(), { name });
    const { streams } = await link.manager();
    const config = { subjects: [`hf.${name}.quorum.1.*`], storage: StorageType.Memory, num_replicas: 1 };
    await streams.add({ ...config, name: `HF_${name}_${stream}` });
    const lines: string[] = [];
    const logger = createLogger({ level: 'warn', destination: { write: (line) => void lines.push(line) } });
    const a = await open(t, 'a', name, { logger, replicas });
    const b = await open(t, 'b', name);
    await until('they hear each other', () => hears(a, 'b') && hears(b, 'a'));
    await until('a has sent some beats', () => (b.beats.heard.get('a')?.number ?? 0) > 4);
    t.true(a.beats.standing().isIsolated);
    t.regex(a.beats.trouble?.message ?? '', why);
    t.is(lines.filter((line) => line.includes('cluster.beat.stream')).length, 1);
  });
}
