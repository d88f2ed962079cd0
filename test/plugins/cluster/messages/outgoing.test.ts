import test from 'ava';
import fc from 'fast-check';
import { Outgoing } from '../../../../src/plugins/cluster/messages/outgoing.ts';
import { SharedOrder } from '../../../../src/plugins/cluster/messages/shared-order.ts';
import type { AppendOptions } from '../../../../src/plugins/cluster/nats/stream.ts';
import { StreamUnavailable, StreamUnknown } from '../../../../src/plugins/cluster/nats/stream-errors.ts';
import { runs } from '../../../support/runs.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const ONE_WAY_MS = 100;

/**
 * What becomes of an attempt: `unheard` is stored without an acknowledgement, `delayed` when its sender has given it up, `twice` because
 * the server has forgotten its id.
 */
const FATES = ['stored', 'unheard', 'lost', 'delayed', 'twice', 'refused'] as const;
/** `forged`: somebody acknowledges it in the server's place, or the server loses it again. */
type Fate = (typeof FATES)[number] | 'forged';

/** A stream behind a link with a round trip of 200 ms, and a host that sends to it and reads what stands on it. */
class Rig {
  readonly clock = new VirtualClock();
  readonly outgoing: Outgoing;
  /** The newest message that this host has seen on the stream, read or not. */
  seen = 0;
  /** What this host has delivered: topic and text. */
  readonly heard: [topic: string, text: string][] = [];
  readonly orders: number[] = [];
  appends = 0;
  readonly messageIds: string[] = [];
  places = 0;
  readonly #order = new SharedOrder({ incarnation: 'one', seq: 0, epoch: 0, trail: [] });
  readonly #ids = new Set<string>();
  readonly #fates: Iterator<Fate>;

  constructor(fates: readonly Fate[] = [], withinMs = 3_600_000) {
    this.#fates = fates.values();
    const stream = {
      incarnation: 'one',
      append: (body: Uint8Array | string, options?: AppendOptions) => this.#append(body, options),
      last: async () => ({ seq: this.places, firstSeq: 1, bytes: 0, maxBytes: -1 }),
    };
    this.outgoing = new Outgoing({
      ...{
        clock: this.clock,
        host: 'a',
        order: this.#order,
        stream: () => ({ ...stream, seen: this.seen }),
        withinMs,
      },
      ...{ onStored: () => {}, onDoubt: () => {} },
    });
  }

  send(topic: string, text: string): Promise<void> {
    return this.outgoing.send({ kind: 'messages', topic, messages: [{ payload: text, correlation: 'c' }] });
  }

  #append(body: Uint8Array | string, { id = '', timeoutMs = 0 }: AppendOptions = {}) {
    const fate = this.#fates.next().value ?? 'stored';
    this.appends += 1;
    this.messageIds.push(id);
    const bytes = Buffer.from(body);
    if (fate !== 'lost' && fate !== 'refused' && fate !== 'forged')
      this.clock.after(fate === 'delayed' ? 2.5 * timeoutMs : ONE_WAY_MS, () => this.#store(bytes, id));
    if (fate === 'twice')
      this.clock.after(ONE_WAY_MS + 1, () => {
        this.#ids.delete(id);
        this.#store(bytes, id);
      });
    return new Promise<{ seq: number; duplicate: boolean }>((resolve, reject) => {
      const isHeard = fate === 'stored' || fate === 'twice' || fate === 'refused' || fate === 'forged';
      this.clock.after(isHeard ? 2 * ONE_WAY_MS : timeoutMs, () => {
        if (fate === 'refused') reject(new StreamUnavailable('S', 'it has no leader'));
        else if (isHeard) resolve({ seq: this.places, duplicate: false });
        else reject(new StreamUnknown('S', 'no answer came'));
      });
    });
  }

  #store(body: Uint8Array, id: string): void {
    if (this.#ids.has(id)) return;
    this.#ids.add(id);
    this.places += 1;
    const seq = this.places;
    this.clock.after(ONE_WAY_MS, () => this.#read(seq, body));
  }

  #read(seq: number, entry: Uint8Array): void {
    const outcome = this.#order.take({ seq, body: entry });
    if (outcome.kind === 'dropped' && outcome.reason === 'late') this.outgoing.late(outcome.id);
    if (outcome.kind !== 'accepted' || outcome.body.kind !== 'messages') return;
    const { body, order } = outcome;
    for (const [i, { payload }] of body.messages.entries()) {
      this.heard.push([body.topic, String(payload)]);
      this.orders.push(order + i);
    }
    this.outgoing.delivered(body.id);
  }
}

const numbered = (count: number) => Array.from({ length: count }, (_, i) => `m${i}`);

test('[C13] a burst on one topic is on the stream after two round trips, in its order', async (t) => {
  const rig = new Rig();
  const sent = numbered(50).map((text) => rig.send('keys.revoked', text));
  await rig.clock.advance(3 * ONE_WAY_MS);
  t.deepEqual([rig.appends, rig.places], [2, 2]);
  await rig.clock.advance(ONE_WAY_MS);
  await Promise.all(sent);
  t.deepEqual(
    rig.heard,
    numbered(50).map((text) => ['keys.revoked', text]),
  );
});

test('[C13] what goes together has at most 64 messages and 64 KiB', async (t) => {
  const many = new Rig();
  for (const text of numbered(1 + 64 + 10)) void many.send('t', text);
  const large = new Rig();
  for (let i = 0; i < 1 + 4; i += 1) void large.send('t', 'x'.repeat(30_000));
  for (const { clock } of [many, large]) await clock.advance(5_000);
  t.deepEqual([many.places, large.places], [1 + 2, 1 + 2]);
  t.deepEqual([many.outgoing.waiting, large.outgoing.waiting], [0, 0]);
});

test('[C13] who gives up a message that may be stored stops none of those that went with it', async (t) => {
  const rig = new Rig(['unheard', 'lost', 'lost', 'lost', 'lost'], 5_000);
  const first = rig.send('t', 'm0');
  const given = rig.send('t', 'm1');
  await rig.clock.advance(1_000);
  const kept = rig.send('t', 'm2');
  const error = t.throwsAsync(given, { code: 'HF_CLUSTER_ISOLATED' });
  await rig.clock.advance(10_000);
  t.regex((await error)?.message ?? '', /it may be stored and still arrive/);
  await Promise.all([first, kept]);
  t.deepEqual(
    rig.heard,
    ['m0', 'm1', 'm2'].map((text) => ['t', text]),
  );
  t.is(rig.places, 2);
});

test('[C13,G14] a message that was acknowledged and is not stored is sent again within seconds, and arrives once', async (t) => {
  const rig = new Rig(['forged', 'forged']);
  const revoked = rig.send('keys.revoked', 'm0');
  await rig.clock.advance(2_000);
  t.is(rig.appends, 1, 'it may be on its way');
  await rig.clock.advance(6_000);
  await revoked;
  t.deepEqual(rig.heard, [['keys.revoked', 'm0']]);
  t.deepEqual([rig.appends, rig.places], [3, 1]);
  t.is(new Set(rig.messageIds).size, 3, 'by an id that nobody can have taken before');
});

test('[C13] a message is not sent again while its host has yet to read what stands on the stream', async (t) => {
  const rig = new Rig(['forged']);
  const sent = rig.send('keys.revoked', 'm0');
  rig.seen = 5;
  await rig.clock.advance(20_000);
  t.is(rig.appends, 1);
  rig.seen = 0; // it has read all
  await rig.clock.advance(6_000);
  await sent;
  t.is(rig.appends, 2);
});

test('[C13] whatever becomes of attempts, messages of a topic arrive once each, in their order', async (t) => {
  const schedule = fc.record({
    sends: fc.array(
      fc.record({ topic: fc.constantFrom('a', 'b'), afterMs: fc.constantFrom(0, 0, 0, 50, 250, 1_200) }),
      { minLength: 1, maxLength: 40 },
    ),
    fates: fc.array(fc.constantFrom(...FATES), { maxLength: 25 }),
  });
  await fc.assert(
    fc.asyncProperty(schedule, async ({ sends, fates }) => {
      const rig = new Rig(fates);
      const sent: [string, string][] = [];
      const ends: Promise<void>[] = [];
      for (const { topic, afterMs } of sends) {
        if (afterMs > 0) await rig.clock.advance(afterMs);
        const text = `${sent.length}`;
        sent.push([topic, text]);
        ends.push(rig.send(topic, text));
      }
      await rig.clock.advance(120_000);
      await Promise.all(ends);
      for (const topic of ['a', 'b']) {
        const of = (list: readonly [string, string][]) => list.filter(([name]) => name === topic);
        t.deepEqual(of(rig.heard), of(sent));
      }
      t.true(rig.orders.every((order, i) => i === 0 || order > (rig.orders[i - 1] ?? 0)));
      t.is(rig.outgoing.waiting, 0);
    }),
    { numRuns: runs(100) },
  );
});
