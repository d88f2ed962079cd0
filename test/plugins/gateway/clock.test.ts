import test, { type ExecutionContext } from 'ava';
import { type Clock, systemClock } from '../../../src/core/kernel/clock.ts';
import { asEpochMs, type EpochMs } from '../../../src/core/kernel/ids.ts';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { startUpstream } from '../../support/mcp-upstream.ts';
import { tempDir } from '../../support/temp.ts';
import { admission, initialize, MEDIA, Rig, rpc } from './rig.ts';

const HOUR = 3_600_000;

/** A clock that somebody sets while its timers, as real ones do, count on; waits beyond a second end when told to. */
class SetClock implements Clock {
  #ahead = 0;
  readonly #waits = new Set<() => void>();

  now(): EpochMs {
    return asEpochMs(systemClock.now() + this.#ahead);
  }

  monotonic(): number {
    return systemClock.monotonic();
  }

  after(delayMs: number, callback: () => void): () => void {
    if (delayMs <= 1_000) return systemClock.after(delayMs, callback);
    this.#waits.add(callback);
    return () => this.#waits.delete(callback);
  }

  /** @param ahead of the real time, milliseconds */
  set(ahead: number): void {
    this.#ahead = ahead;
  }

  /** A minute and more goes by on a clock that stands. */
  wait(): void {
    for (const callback of [...this.#waits]) {
      this.#waits.delete(callback);
      callback();
    }
  }
}

async function setUp(t: ExecutionContext) {
  const upstream = await startUpstream(t);
  const clock = new SetClock();
  const routes = [credentialFree({ name: 'wiki', url: upstream.url })];
  const rig = await Rig.start(t, { routes }, tempDir(t), clock);
  const generate = async (terms: object) => {
    const { body } = await rig.admin('POST', '/key/generate', {
      object_permission: { mcp_servers: ['wiki'] },
      ...terms,
    });
    const { key } = body as { key: string };
    const first = await rig.post('/wiki/mcp', initialize, admission(key));
    await first.text();
    return { key, session: { 'mcp-session-id': first.headers.get('mcp-session-id') ?? '' } };
  };
  const list = (key: string, session: Record<string, string>) =>
    rig.post('/wiki/mcp', rpc('tools/list'), { ...admission(key), ...session });
  const stream = (key: string, session: Record<string, string>) =>
    fetch(`${rig.url}/wiki/mcp`, { headers: { ...admission(key), ...session, accept: MEDIA } });
  return { rig, clock, generate, list, stream };
}

test('[G16,G18] however the clock is set, a limit makes nobody wait longer than its minute, and sessions go on', async (t) => {
  const { rig, clock, generate } = await setUp(t);
  const { key, session } = await generate({ rpm_limit: 2 });
  const call = () =>
    rig.post('/wiki/mcp', rpc('tools/call', { name: 'wiki-echo', arguments: { text: 'x' } }), {
      ...admission(key),
      ...session,
    });
  let refused = 0;
  for (const hours of [0, 1, 0, -1, 0, 2, -2, -2, 1]) {
    clock.set(hours * HOUR);
    for (let count = 0; count < 3; count += 1) {
      const answer = await call();
      t.is(answer.status, 200, 'the session is known');
      await answer.text();
      const wait = answer.headers.get('retry-after');
      if (wait === null) continue;
      refused += 1;
      t.true(/^\d+$/.test(wait) && Number(wait) >= 1 && Number(wait) <= 60, wait);
      const info = await rig.rest('GET', '/key/info', { authorization: `Bearer ${key}` });
      t.is(info.status, 429);
      const told = Number(info.headers.get('retry-after'));
      t.true(told >= 1 && told <= 60, String(told));
    }
  }
  t.true(refused > 0);
  const waits = (await rig.records()).flatMap(({ effects }) =>
    effects.flatMap(({ params }) => (params as { retryAfterMs?: number } | undefined)?.retryAfterMs ?? []),
  );
  t.true(
    waits.every((ms) => ms > 0 && ms <= 60_000),
    String(waits),
  );
});

test('[G14,G24] expiry and the overlap of a rotation follow the clock as it is set, for calls and for open streams', async (t) => {
  const { rig, clock, generate, list, stream } = await setUp(t);
  const expiring = await generate({ duration: '30m' });
  const rotating = await generate({});
  const rotated = await rig.admin('POST', '/key/rotate', { key: rotating.key, overlap: '30m' });
  const statuses = async () => [
    (await list(expiring.key, expiring.session)).status,
    (await list(rotating.key, rotating.session)).status,
    (await list(rotated.body.key, rotating.session)).status,
  ];
  t.deepEqual(await statuses(), [200, 200, 200]);
  const open = [await stream(expiring.key, expiring.session), await stream(rotating.key, rotating.session)];
  let ended = 0;
  const ends = open.map((one) =>
    one.text().then(
      () => (ended += 1),
      () => (ended += 1),
    ),
  );
  clock.set(-HOUR);
  clock.wait();
  t.deepEqual(await statuses(), [200, 200, 200]);
  t.is(ended, 0, 'what is good by the clock stays open');
  clock.set(HOUR);
  t.deepEqual(await statuses(), [401, 401, 200]);
  clock.wait();
  await Promise.all(ends);
  const { status } = await stream(expiring.key, expiring.session);
  t.is(status, 401);
  clock.set(0);
  t.deepEqual(await statuses(), [200, 200, 200]);
});
