import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { passed, systemClock } from '../../../../src/core/kernel/clock.ts';
import { ClusterError } from '../../../../src/plugins/cluster/errors.ts';
import { folderIdentity } from '../../../../src/plugins/cluster/leases/folder.ts';
import { encodeMessage, type LedgerMessage } from '../../../../src/plugins/cluster/leases/message.ts';
import { tempDir } from '../../../support/temp.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { MemoryLedger, SuspendableClock, startHost, type TestHost } from './hosts.ts';

const TTL = 10_000;
/** How long a claim allows to act after it was sent. */
const HOLD = TTL * 0.9 - 200;
const numberOf = (token: string | undefined) => Number(token?.split(':')[1]);

/** One host holds `a`, another one waits. */
async function pair(
  t: ExecutionContext,
  clock = new VirtualClock(),
): Promise<{ clock: VirtualClock; ledger: MemoryLedger; a: TestHost; b: TestHost }> {
  const ledger = new MemoryLedger();
  const a = startHost(clock, ledger, 'h1', ['a']);
  await clock.advance(100);
  const b = startHost(clock, ledger, 'h2', ['a']);
  t.teardown(() => Promise.all([a, b].map(({ leases }) => clock.passUntil(leases.stop()))));
  await clock.advance(TTL + 200);
  t.deepEqual([a.story, b.story], [['gained a'], []]);
  return { clock, ledger, a, b };
}

test('[C13] on a ledger that says nothing of a singleton, a host waits for as long as somebody could hold it', async (t) => {
  const clock = new VirtualClock();
  const one = startHost(clock, new MemoryLedger(), 'h1', ['a', 'b']);
  t.teardown(() => clock.passUntil(one.leases.stop()));
  await clock.advance(TTL - 10);
  t.deepEqual(one.story, []);
  await clock.advance(20);
  t.deepEqual(one.story, ['gained a', 'gained b']);
});

test('[C13] a lease is renewed five times in its time, and its deadline counts from when the claim was sent', async (t) => {
  const { clock, ledger, a } = await pair(t);
  const before = ledger.bodies.length;
  const token = a.held.get('a')?.token;
  await clock.advance(10 * TTL);
  t.deepEqual(a.story, ['gained a']);
  const beats = ledger.bodies.length - before;
  t.true(beats >= 49 && beats <= 51, `${beats}`);
  t.is(a.held.get('a')?.token, token);
  const left = (a.held.get('a')?.deadline() ?? 0) - clock.monotonic();
  t.true(left > HOLD - TTL / 5 - 20 && left <= HOLD, `${left}`);
});

test('[C13] a host that reads no ledger any more ends its work at the deadline; another one takes over within the time of a lease and a second', async (t) => {
  const { clock, a, b } = await pair(t);
  const lease = a.held.get('a');
  a.log.isCut = true;
  const deadline = lease?.deadline() ?? 0;
  await clock.advance(deadline - clock.monotonic() - 1);
  t.deepEqual(a.story, ['gained a']);
  await clock.advance(1);
  t.deepEqual(a.story, ['gained a', 'lost a: the lease ran out']);
  t.is(lease?.deadline(), Number.NEGATIVE_INFINITY);
  await clock.advance(TTL + 1_000 - HOLD);
  t.deepEqual(b.story, ['gained a from h1 at 42']);
  t.true(numberOf(b.held.get('a')?.token) > numberOf(lease?.token));
  a.log.isCut = false;
  await clock.advance(2 * TTL);
  t.is(a.story.length, 2, 'it follows');
});

test('[C13] a copy of the holder ends its work and releases nothing: the lease is that of the original', async (t) => {
  const { clock, ledger, a, b } = await pair(t);
  const [before, lease] = [ledger.bodies.length, a.held.get('a')];
  a.leases.abandon('it is a copy');
  t.deepEqual(a.story, ['gained a', 'lost a: it is a copy']);
  t.is(lease?.deadline(), Number.NEGATIVE_INFINITY);
  await clock.advance(HOLD);
  await clock.passUntil(a.leases.stop());
  t.is(ledger.bodies.length, before, 'it says nothing more');
  t.deepEqual(b.story, []);
});

test('[C13] a host that was suspended with its machine holds nothing when it wakes, before any timer has fired', async (t) => {
  const clock = new SuspendableClock();
  const { a, b } = await pair(t, clock);
  const lease = a.held.get('a');
  t.true((lease?.deadline() ?? 0) > clock.monotonic());
  clock.suspend(TTL);
  t.true((lease?.deadline() ?? 0) < clock.monotonic());
  await clock.advance(TTL);
  t.deepEqual(a.story.slice(0, 2), ['gained a', 'lost a: the lease ran out']);
  const held = [a, b].flatMap((host) => host.held.get('a') ?? []);
  t.is(held.length, 1);
  t.true(numberOf(held[0]?.token) > numberOf(lease?.token));
});

test('[C13] a singleton is released when its work has ended, first of all to the host that is named', async (t) => {
  const { clock, ledger, a, b } = await pair(t);
  const c = startHost(clock, ledger, 'h3', ['a']);
  t.teardown(() => clock.passUntil(c.leases.stop()));
  await clock.advance(100);
  let end = () => {};
  a.end = () => new Promise((resolve) => (end = resolve));
  const released = a.leases.release('a', 'an operator moved it', 'h3');
  await clock.advance(2 * TTL);
  t.deepEqual([b.story, c.story], [[], []], 'its lease is renewed as long as work goes on');
  end();
  await clock.passUntil(released);
  await clock.advance(100);
  t.deepEqual(a.story, ['gained a', 'releases a: an operator moved it']);
  t.deepEqual([b.story, c.story], [[], ['gained a from h1 at 42']]);
});

test('[C13] a host that is named and does not come keeps a singleton from others for two beats only', async (t) => {
  const { clock, a, b } = await pair(t);
  await clock.passUntil(a.leases.release('a', 'moved', 'h9'), 10);
  await clock.advance((2 * TTL) / 5 - 100);
  t.deepEqual([a.story.length, b.story.length], [2, 0]);
  await clock.advance(200);
  t.is(a.story.length + b.story.length, 3);
});

test('[C13] a drained host releases what it has and claims nothing until it is told otherwise', async (t) => {
  const { clock, a, b } = await pair(t);
  await clock.passUntil(a.leases.drain(), 10);
  await clock.advance(100);
  t.deepEqual(b.story, ['gained a from h1 at 42']);
  t.true(b.leases.hosts().get('h1')?.drained);
  await clock.passUntil(b.leases.release('a', 'test'), 10);
  b.log.isCut = true;
  await clock.advance(3 * TTL);
  t.is(a.story.length, 2);
  a.leases.undrain();
  await clock.advance(100);
  t.is(a.story.at(-1), 'gained a from h2 at 42');
});

test('[C13] a host whose stop is clean leaves nothing to wait for', async (t) => {
  const { clock, a, b } = await pair(t);
  await clock.passUntil(a.leases.stop(), 10);
  await clock.advance(50);
  t.deepEqual(b.story, ['gained a from h1 at 42']);
});

test('[C13] a host does not claim again what its last work still goes on with', async (t) => {
  const { clock, a, b } = await pair(t);
  let end = () => {};
  a.end = () => new Promise((resolve) => (end = resolve));
  b.log.isCut = true;
  a.log.isCut = true;
  await clock.advance(TTL);
  a.log.isCut = false;
  await clock.advance(3 * TTL);
  t.deepEqual(a.story, ['gained a', 'lost a: the lease ran out']);
  end();
  await clock.advance(TTL);
  t.is(a.story.at(-1), 'gained a from h1 at 42');
});

test('[C13] a process that starts again in the same folder claims at once what its last one held; in a copy it waits', async (t) => {
  const { clock, ledger, a, b } = await pair(t);
  b.log.isCut = true;
  a.log.isCut = true; // its process was killed
  const copy = startHost(clock, ledger, 'h1', ['a'], { folder: 'a copy' });
  await clock.advance(TTL - 100);
  t.deepEqual(copy.story, []);
  copy.log.isCut = true;
  const again = startHost(clock, ledger, 'h1', ['a']);
  t.teardown(() => Promise.all([copy, again].map(({ leases }) => clock.passUntil(leases.stop()))));
  await clock.advance(10);
  t.deepEqual(again.story, ['gained a from h1 at 42']);
});

test('[C13] work that ends after its lease has run out is released all the same, to whom it should go', async (t) => {
  const { clock, ledger, a, b } = await pair(t);
  const c = startHost(clock, ledger, 'h3', ['a']);
  t.teardown(() => clock.passUntil(c.leases.stop()));
  const work = Promise.withResolvers<void>();
  a.end = () => work.promise;
  const released = a.leases.release('a', 'moved', 'h3');
  for (const { log } of [a, b, c]) log.isCut = true;
  await clock.advance(HOLD);
  t.is(a.held.get('a'), undefined);
  for (const { log } of [a, b, c]) log.isCut = false;
  work.resolve();
  await clock.passUntil(released, 10);
  await clock.advance(200);
  t.deepEqual([b.story, c.story], [[], ['gained a from h1 at 42']]);
  t.deepEqual(a.story, ['gained a', 'releases a: moved', 'lost a: the lease ran out']);
});

test('[C13] a host whose work cannot begin leaves the singleton to others', async (t) => {
  const { clock, a, b } = await pair(t);
  b.begin = () => {
    throw new Error('no disk');
  };
  await clock.passUntil(a.leases.release('a', 'test'), 10);
  await clock.advance(1_000);
  t.deepEqual(b.story, ['releases a: it could not begin here']);
  await clock.advance(TTL / 2);
  t.deepEqual([a.story.at(-1), b.story.length], ['gained a from h2 at 42', 1]);
});

test('[C13] a host that can carry out nothing leaves its work to others after some seconds, and takes nothing over until it can', async (t) => {
  const { clock, a, b } = await pair(t);
  a.obstacle = 'a slow commit';
  await clock.advance(1_500);
  a.obstacle = undefined;
  await clock.advance(TTL);
  t.deepEqual([a.story, b.story], [['gained a'], []], 'what passes costs no hand-over');
  t.is(a.leases.obstacle, undefined);
  a.obstacle = 'its disk is full';
  await clock.advance(3_000);
  t.is(a.leases.obstacle, 'its disk is full');
  t.deepEqual(a.story, ['gained a', 'releases a: its disk is full']);
  t.deepEqual(b.story, ['gained a from h1 at 42'], 'nobody waits for a lease');
  await clock.passUntil(b.leases.stop());
  await clock.advance(2 * TTL);
  t.is(a.story.length, 2, 'it takes nothing over');
  a.obstacle = undefined;
  await clock.advance(1_000);
  t.is(a.story.at(-1), 'gained a from h2 at 42');
});

test('[C13] what is claimed while the host comes to a standstill is released as soon as the ledger has it', async (t) => {
  const { clock, ledger, a, b } = await pair(t);
  const { append } = b.log;
  b.log.append = async (...message) => {
    b.obstacle = 'its disk is full';
    return append(...message);
  };
  const stored = ledger.bodies.length;
  await clock.passUntil(a.leases.release('a', 'moved', 'h2'), 10);
  await clock.advance(TTL / 2);
  t.true(ledger.bodies.length > stored + 1, 'it was claimed');
  t.is(a.story.at(-1), 'gained a from h2 at 42');
  t.is(b.held.size, 0);
});

test('[C13] a claim of which no answer came counts all the same; one that is not wanted any more is released', async (t) => {
  const clock = new VirtualClock();
  const ledger = new MemoryLedger();
  const [a, b] = [startHost(clock, ledger, 'h1', ['a']), startHost(clock, ledger, 'h2', ['a'])];
  t.teardown(() => Promise.all([a, b].map(({ leases }) => clock.passUntil(leases.stop()))));
  b.log.isCut = true;
  await clock.advance(TTL - 100);
  a.log.losesAnswers = true;
  await clock.advance(400);
  t.deepEqual(a.story, ['gained a']);
  await clock.passUntil(a.leases.release('a', 'test'), 10);
  await clock.advance(TTL / 5);
  const stored = ledger.bodies.length;
  while (ledger.bodies.length === stored) await clock.advance(10);
  t.is(a.story.length, 2, 'the claim stands there, and this host does not know');
  await a.leases.drain();
  b.log.isCut = false;
  await clock.advance(1_000);
  t.is(a.story.length, 2);
  t.deepEqual(b.story, ['gained a from h1 at 42']);
});

test('[C13] two processes that run under one name hold nothing together', async (t) => {
  const { clock, ledger, a, b } = await pair(t);
  const twin = startHost(clock, ledger, 'h1', ['a', 'b'], { folder: 'of another machine' });
  t.teardown(() => clock.passUntil(twin.leases.stop()));
  await clock.advance(2 * TTL);
  t.deepEqual(a.story, ['gained a']);
  t.deepEqual(twin.story, ['gained b']);
  t.deepEqual(b.story, []);
});

test('[C13] a ledger that was deleted and made anew voids every lease, and nothing is claimed for the time of one', async (t) => {
  const { clock, ledger, a, b } = await pair(t);
  const before = a.held.get('a')?.token;
  ledger.replace();
  await clock.advance(2_500);
  t.deepEqual(a.story, ['gained a', 'lost a: the ledger was replaced']);
  await clock.advance(TTL - 2_600);
  t.is(a.held.size + b.held.size, 0);
  await clock.advance(TTL);
  t.is(a.held.size + b.held.size, 1);
  const heir = [a, b].find(({ held }) => held.size > 0);
  t.is(heir?.story.at(-1), 'gained a from h1 at 42', 'who held it is remembered');
  t.true(numberOf(heir?.held.get('a')?.token) > numberOf(before));
  const late = startHost(clock, ledger, 'h3', ['a']);
  t.teardown(() => clock.passUntil(late.leases.stop()));
  await clock.advance(100);
  t.is(late.leases.table()[0]?.last?.host, 'h1', 'and told to hosts that come later');
});

test('[C13] on a ledger that was made anew a host waits for as long as any host could hold by the one before', async (t) => {
  const clock = new VirtualClock();
  const ledger = new MemoryLedger();
  const slow = startHost(clock, ledger, 'h1', ['a'], { ttlMs: 4 * TTL });
  await clock.advance(100);
  const quick = startHost(clock, ledger, 'h2', ['a']);
  t.teardown(() => Promise.all([slow, quick].map(({ leases }) => clock.passUntil(leases.stop()))));
  await clock.advance(4 * TTL);
  t.deepEqual([slow.story, quick.story], [['gained a'], []]);
  slow.log.isCut = true;
  ledger.replace();
  await clock.advance(3 * TTL);
  t.deepEqual([slow.held.size, quick.held.size], [1, 0], 'it does not know of the new one');
  await clock.advance(2 * TTL);
  t.deepEqual([slow.held.size, quick.held.size], [0, 1]);
});

test('[C13] a ledger that lost acknowledged messages is believed when that lasts for the time of a lease; numbers still grow', async (t) => {
  const { clock, ledger, a, b } = await pair(t);
  await clock.advance(TTL);
  const before = numberOf(a.held.get('a')?.token);
  ledger.bodies = ledger.bodies.slice(0, 2); // of which none is the claim
  await clock.advance(TTL - 1_000);
  t.deepEqual([a.held.size, b.story], [0, []]);
  await clock.advance(TTL + 2_000);
  t.is(a.held.size + b.held.size, 1);
  t.true(numberOf([a, b].find(({ held }) => held.size > 0)?.held.get('a')?.token) > before);
});

test('[C13] messages that made room are no reason to claim what somebody holds', async (t) => {
  const { clock, ledger, a, b } = await pair(t);
  b.log.isCut = true;
  await clock.advance(4 * TTL);
  ledger.discard(ledger.bodies.length - 2);
  b.log.isCut = false;
  const c = startHost(clock, ledger, 'h3', ['a', 'b']);
  t.teardown(() => clock.passUntil(c.leases.stop()));
  await clock.advance(TTL - 500);
  t.deepEqual([a.held.size, b.held.size, c.held.size], [1, 0, 0]);
  await clock.advance(TTL);
  t.deepEqual(c.story, ['gained b'], 'what nobody names');
  t.is(a.held.size, 1);
});

test('[C13] of two versions of the protocol, the one that holds something keeps the other from claiming', async (t) => {
  const clock = new VirtualClock();
  const ledger = new MemoryLedger();
  const a = startHost(clock, ledger, 'h1', ['a']);
  await clock.advance(TTL + 100);
  const b = startHost(clock, ledger, 'h2', ['b'], { protocol: 2 });
  t.teardown(() => clock.passUntil(b.leases.stop()));
  await clock.advance(3 * TTL);
  t.deepEqual(b.story, ['refused by h1, version 1.0.0']);
  await clock.passUntil(a.leases.stop());
  await clock.advance(TTL);
  t.deepEqual(b.story.slice(1).sort(), ['gained b', 'refused no more']);
});

test('[C13] a message that cannot be read may be a claim: nothing is claimed for the time of a lease', async (t) => {
  const { clock, ledger, a, b } = await pair(t);
  ledger.bodies.push(Buffer.from('{"protocol":"of tomorrow"}'));
  await clock.passUntil(a.leases.release('a', 'test'), 10);
  await clock.advance(TTL / 2);
  t.is(a.held.size + b.held.size, 0);
  await clock.advance(TTL);
  t.is(a.held.size + b.held.size, 1);
});

test('[C13] a data folder has another identity as a copy, and under another name of the host', (t) => {
  const dir = tempDir(t);
  const [folder, copy] = [join(dir, 'one'), join(dir, 'two')];
  mkdirSync(folder);
  cpSync(folder, copy, { recursive: true });
  const own = folderIdentity(folder, 'h1', systemClock);
  t.is(folderIdentity(folder, 'h1', systemClock), own);
  t.not(folderIdentity(copy, 'h1', systemClock), own);
  t.not(folderIdentity(folder, 'h2', systemClock), own);
});

test('[C13] a host that finds a ledger that is not its cluster’s holds nothing and says why, until that is fixed', async (t) => {
  const { clock, a, b } = await pair(t);
  const refusal = new ClusterError('HF_CLUSTER_LEDGER', { stream: 'HF_x_LEDGER', reason: 'it keeps theirs' });
  for (const { log } of [a, b]) log.refusal = refusal;
  await clock.advance(3 * TTL);
  t.deepEqual([a.held.size, b.held.size], [0, 0]);
  t.deepEqual([a.leases.trouble, b.leases.trouble], [refusal, refusal]);
  for (const { log } of [a, b]) log.refusal = undefined;
  await clock.advance(3 * TTL);
  t.deepEqual([a.leases.trouble, b.leases.trouble], [undefined, undefined]);
  t.is(a.held.size + b.held.size, 1);
});

test('[C13] a host that cannot read the ledger for a whole lease says why, and that it knows nothing of the others', async (t) => {
  const { clock, b } = await pair(t);
  b.log.isCut = true;
  await clock.advance(TTL - 600);
  t.deepEqual([b.leases.trouble, b.leases.isUnread], [undefined, false], 'an election passes');
  await clock.advance(1_200);
  t.deepEqual([b.leases.trouble?.message, b.leases.isUnread], ['cut off', true]);
  b.log.isCut = false;
  await clock.advance(1_000);
  t.deepEqual([b.leases.trouble, b.leases.isUnread], [undefined, false]);
});

test('[C13] a host that reads the ledger and cannot write it for a whole lease says why', async (t) => {
  const { clock, a, b } = await pair(t);
  const full = new ClusterError('HF_CLUSTER_STREAM_FULL', { stream: 'HF_x_LEDGER', reason: 'no room' });
  const { append } = a.log;
  for (const { log } of [a, b]) log.append = () => Promise.reject(full);
  await clock.advance(2 * TTL);
  t.deepEqual([a.leases.trouble, a.leases.isUnread], [full, false]);
  for (const { log } of [a, b]) log.append = append;
  await clock.advance(TTL);
  t.deepEqual([a.leases.trouble, b.leases.trouble], [undefined, undefined]);
});

test('[C13] hosts that somebody leaves no place in the ledger pause between their attempts, and say why', async (t) => {
  const { clock, ledger, a, b } = await pair(t);
  let attempts = 0;
  const { append } = a.log;
  for (const { log } of [a, b])
    log.append = async (body, after, incarnation) => {
      attempts += 1;
      ledger.bodies.push(undefined);
      return append(body, after, incarnation);
    };
  await clock.advance(4 * TTL);
  t.deepEqual([a.held.size, b.held.size], [0, 0]);
  t.true(attempts < 60_000, `${attempts}`);
  t.like(a.leases.trouble, { code: 'HF_CLUSTER_LEDGER_BUSY' });
  for (const { log } of [a, b]) log.append = append;
  await clock.advance(TTL);
  t.is(a.leases.trouble, undefined);
  t.is(a.held.size + b.held.size, 1);
});

test('[C13] messages that are stored, and come too late each time, are followed by a pause as others are', async (t) => {
  const { clock, ledger, a, b } = await pair(t);
  await clock.passUntil(b.leases.stop());
  let attempts = 0;
  const { append } = a.log;
  a.log.append = async (body) => {
    attempts += 1;
    await Promise.resolve();
    // Another host's stands before it.
    const other = { ...(JSON.parse(body.toString()) as LedgerMessage), host: 'h3', run: 'r3', releases: [] };
    ledger.bodies.push(encodeMessage({ ...other, beat: attempts, claims: [] }), body);
    return ledger.bodies.length;
  };
  await clock.advance(1.2 * TTL);
  t.true(attempts < 10_000, `${attempts}`);
  t.like(a.leases.trouble, { code: 'HF_CLUSTER_LEDGER_BUSY' });
  a.log.append = append;
  await clock.advance(2 * TTL);
  t.is(a.leases.trouble, undefined);
});

test('[C13] a host that has read other messages than somebody claims nothing before it has read the ledger once more', async (t) => {
  const { clock, ledger, a, b } = await pair(t);
  await clock.passUntil(b.leases.drain());
  await clock.passUntil(a.leases.stop());
  ledger.discard(ledger.bodies.length);
  const claim = { claims: [{ singleton: 'a' }], releases: [], drained: false, above: 0, prev: '' };
  const h3 = { protocol: 1, host: 'h3', run: 'r3', beat: 1, folder: 'f3', version: '1', ttlMs: TTL };
  ledger.bodies.push(encodeMessage({ ...h3, ...claim }));
  b.leases.undrain();
  await clock.advance(TTL - 500);
  t.deepEqual(b.story, [], 'a third one holds it');
  await clock.advance(2 * TTL);
  t.is(b.held.size, 1);
});

test('[C13] a host that never comes to the end of the ledger says so when that lasts', async (t) => {
  const { clock, ledger, b } = await pair(t);
  const { read } = b.log;
  b.log.read = async (from) => {
    for (let more = 0; more < 8; more += 1) ledger.bodies.push(undefined);
    await passed(clock, 100);
    return read(from);
  };
  await clock.advance(3 * TTL);
  t.like(b.leases.trouble, { code: 'HF_CLUSTER_LEDGER_BUSY' });
  b.log.read = read;
  await clock.advance(1_000);
  t.is(b.leases.trouble, undefined);
});

test('[C13] while the ledger cannot be used, a host logs each half minute why, as it is by then, and when that is over', async (t) => {
  const { clock, b } = await pair(t);
  b.log.isCut = true;
  await clock.advance(2 * TTL);
  b.log.isCut = false;
  b.log.refusal = new Error('it can be read again, and not written');
  await clock.advance(60_000);
  b.log.refusal = undefined;
  await clock.advance(1_000);
  t.deepEqual(b.lines, [
    'cluster.ledger_unreachable: cut off',
    'cluster.ledger_refused: cut off',
    'cluster.ledger_refused: it can be read again, and not written',
    'cluster.ledger_refused: it can be read again, and not written',
    'cluster.ledger_goes_on',
  ]);
});

test('[C13] what nobody has ever held is listed by every host that competes for it, also while the ledger is not read', async (t) => {
  const clock = new VirtualClock();
  const one = startHost(clock, new MemoryLedger(), 'h1', ['a', 'b']);
  t.teardown(() => clock.passUntil(one.leases.stop()));
  const listed = () => one.leases.table().map(({ singleton, holder }) => [singleton, holder?.host]);
  t.true(one.leases.isUnread);
  t.deepEqual(listed(), [
    ['a', undefined],
    ['b', undefined],
  ]);
  await clock.advance(1_000);
  t.false(one.leases.isUnread);
  t.deepEqual(listed().flat(), ['a', undefined, 'b', undefined]);
  await clock.advance(TTL);
  t.deepEqual(listed().flat(), ['a', 'h1', 'b', 'h1']);
});
