import test, { type ExecutionContext } from 'ava';
import type { Clock } from '../../../src/core/kernel/clock.ts';
import { asEpochMs } from '../../../src/core/kernel/ids.ts';
import { hostActor, singletonActor } from '../../../src/plugins/cluster/actors.ts';
import { ClusterRecords } from '../../../src/plugins/cluster/records.ts';
import { openBench } from '../../support/actors.ts';
import { silent } from '../../support/cluster.ts';
import { tempDir } from '../../support/temp.ts';

/** Time that goes on by hand, also while the process stands still: then each timer goes off once. */
class HandClock implements Clock {
  #ms = 1_000;
  #timers: { readonly at: number; readonly callback: () => void }[] = [];

  now = () => asEpochMs(1_700_000_000_000 + this.#ms);
  monotonic = () => this.#ms;

  after(delayMs: number, callback: () => void): () => void {
    const timer = { at: this.#ms + delayMs, callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  pass(ms: number): void {
    this.#ms += ms;
    const due = this.#timers.filter(({ at }) => at <= this.#ms);
    this.#timers = this.#timers.filter(({ at }) => at > this.#ms);
    for (const { callback } of due) callback();
  }
}

/** A host `attic` that has heard the cellar at some time, and says how it stands itself. */
async function watching(t: ExecutionContext) {
  const clock = new HandClock();
  const bench = await openBench(tempDir(t), [hostActor, singletonActor], [], clock);
  t.teardown(() => bench.close());
  let isFull = false;
  const send: typeof bench.actors.send = (...event) => {
    if (isFull) throw new Error('too many events wait');
    return bench.actors.send(...event);
  };
  const get: typeof bench.actors.get = (...actor) => bench.actors.get(...actor);
  const records = new ClusterRecords({ actors: { send, get }, clock, logger: silent });
  t.teardown(() => records.stop());
  const attic = { heardMs: clock.monotonic(), silentMs: 0, isBehind: false, holds: [] as string[] };
  const beat = {
    ...{ host: 'cellar', run: 'r', version: '0.2.0', protocol: 1, number: 1, startedAt: 1, upMs: 1 },
    ...{ shared: { incarnation: '', seq: 0 }, lag: 0, holds: [], announced: {} },
  };
  records.watch(
    {
      host: 'attic',
      heard: () => new Map([['cellar', { ...beat, heardMs: attic.heardMs, holds: attic.holds }]]),
      standing: () => ({
        silentMs: attic.silentMs,
        isIsolated: attic.isBehind || attic.silentMs > 2_000,
        isBehind: attic.isBehind,
      }),
      lag: () => ({ records: 0, ms: 0 }),
      holderOf: () => 'cellar',
    },
    ['doors'],
  );
  const presence = () => bench.actors.get(hostActor, 'cellar')?.value.presence;
  const link = () => bench.actors.get(hostActor, 'attic')?.value.link;
  const seconds = (count: number) => {
    for (let i = 0; i < count; i += 1) clock.pass(1_000);
  };
  return {
    clock,
    records,
    attic,
    presence,
    link,
    seconds,
    /** While events of actors wait, more of them are refused. */
    fill: (is: boolean) => {
      isFull = is;
    },
    doors: () => bench.actors.get(singletonActor, 'doors'),
  };
}

test('[C13] a host that is not heard any more is lost, and found when it is heard again', async (t) => {
  const { clock, attic, presence, seconds } = await watching(t);
  seconds(1);
  t.is(presence(), 'heard');
  seconds(11);
  t.is(presence(), 'lost');
  attic.heardMs = clock.monotonic();
  seconds(1);
  t.is(presence(), 'heard');
});

test('[C13] what cannot be recorded because too many events wait is recorded later, and ends nothing', async (t) => {
  const { presence, seconds, fill } = await watching(t);
  seconds(1);
  fill(true);
  seconds(12);
  t.is(presence(), 'heard');
  fill(false);
  seconds(1);
  t.is(presence(), 'lost');
});

test('[C13] a host that stood still itself, or was cut off, takes nobody for lost because of that', async (t) => {
  const { clock, attic, presence, link, seconds } = await watching(t);
  seconds(1);
  // Frozen for 21 s: nobody could be heard, and no beat of its own was acknowledged.
  attic.silentMs = 21_000;
  clock.pass(21_000);
  t.is(presence(), 'heard');
  t.not(link(), 'isolated');
  attic.silentMs = 100;
  attic.heardMs = clock.monotonic();
  seconds(5);
  t.not(link(), 'isolated');
  // Cut off: it says so, and nothing of the others.
  for (let i = 0; i < 30; i += 1) {
    attic.silentMs += 1_000;
    seconds(1);
  }
  t.is(link(), 'isolated');
  t.is(presence(), 'heard');
});

test('[C13] a host that is back is told of only when it still has not read what the others said after some seconds', async (t) => {
  const { attic, link, seconds } = await watching(t);
  seconds(1);
  attic.isBehind = true;
  attic.silentMs = 4_000;
  seconds(1);
  t.not(link(), 'isolated');
  attic.silentMs = 6_000;
  seconds(1);
  t.is(link(), 'isolated');
  attic.isBehind = false;
  attic.silentMs = 0;
  seconds(1);
  t.is(link(), 'connected');
});

test('[C13] a host that has just started is told of as cut off only once an election would be over', async (t) => {
  const { attic, link, seconds } = await watching(t);
  attic.silentMs = 11_000;
  seconds(1);
  t.is(link(), undefined, 'nothing is recorded of it');
  attic.silentMs = 13_000;
  seconds(1);
  t.is(link(), 'isolated');
  attic.silentMs = 0;
  seconds(1);
  attic.silentMs = 3_000;
  seconds(1);
  t.is(link(), 'isolated', 'later it is told at once');
});

test('[C13] beginnings that fail in a row are counted on while another host has the lease and has not begun either', async (t) => {
  const { records, attic, seconds, doors } = await watching(t);
  records.singleton('doors', { type: 'TAKING', at: 1, token: 'i:5' });
  records.singleton('doors', { type: 'BEGIN_FAILED', at: 2, reason: 'it is outdated' });
  seconds(2);
  t.like(doors()?.context, { failures: 1, reason: 'it is outdated' });
  attic.holds.push('doors');
  seconds(1);
  t.like(doors()?.context, { failures: 0, holder: 'cellar' });
});

test('[C13] an orphaned branch that is told once more after a crash is recorded once', async (t) => {
  const { records, doors } = await watching(t);
  const branch = { singleton: 'doors', token: 'i:7', by: 'cellar', incarnation: 1, types: ['test.door'] };
  const told = { ...branch, after: 80, to: 100, records: 20 };
  for (const one of [told, told, { ...told, after: 100, to: 120 }]) records.orphaned(one, 'attic');
  t.deepEqual(doors()?.context.branches, [
    { from: 81, to: 100, count: 20 },
    { from: 101, to: 120, count: 20 },
  ]);
});
