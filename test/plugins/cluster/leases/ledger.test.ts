import test from 'ava';
import { Ledger, newIncarnation } from '../../../../src/plugins/cluster/leases/ledger.ts';
import { encodeMessage, type LedgerMessage } from '../../../../src/plugins/cluster/leases/message.ts';

const BORN = 1_000_000;
const ledger = () => new Ledger(newIncarnation(BORN, 'x'));

/** Writes messages as hosts do that have read everything. */
class Writer {
  readonly ledger = ledger();
  readonly bodies: Uint8Array[] = [];
  #beat = 0;

  says(host: string, more: Partial<LedgerMessage>): void {
    this.#beat += 1;
    const body = encodeMessage({
      ...{ protocol: 1, host, run: `${host}-run`, beat: this.#beat, folder: host, version: '1', ttlMs: 100 },
      ...{ drained: false, prev: this.ledger.chain, above: this.ledger.above, claims: [], releases: [] },
      ...more,
    });
    this.bodies.push(body);
    this.ledger.apply({ seq: this.bodies.length, body });
  }

  /** A reader for whom the messages before one are gone. */
  from(seq: number): Ledger {
    const one = ledger();
    for (const [index, body] of this.bodies.entries())
      if (index + 1 >= seq) one.apply({ seq: index + 1, body });
    return one;
  }
}

const claim = { claims: [{ singleton: 'a' }] };

test('[C13] a claim counts from its place in the ledger, is kept by its number, and ends by a release or another claim', (t) => {
  const writer = new Writer();
  const holding = () => writer.ledger.holdings.get('a');
  writer.says('h1', claim);
  t.like(holding()?.holder, { host: 'h1', number: BORN + 1, since: 1, beatSeq: 1 });
  writer.says('h1', { claims: [{ singleton: 'a', number: BORN + 1 }], mirror: { incarnation: '1', seq: 9 } });
  t.like(holding()?.holder, { number: BORN + 1, since: 1, beatSeq: 2 });
  writer.says('h2', claim);
  t.like(holding()?.holder, { host: 'h2', number: BORN + 3 });
  t.like(holding()?.last, { host: 'h1', mirror: { incarnation: '1', seq: 9 } });
  writer.says('h1', { claims: [{ singleton: 'a', number: BORN + 1 }] });
  t.is(holding()?.holder?.host, 'h2', 'what is over is not kept');
  writer.says('h1', { releases: [{ singleton: 'a', number: BORN + 1 }] });
  t.is(holding()?.holder?.host, 'h2', 'nor released');
  writer.says('h2', { releases: [{ singleton: 'a', number: BORN + 3, to: 'h1' }] });
  t.deepEqual([holding()?.holder, holding()?.released?.to, holding()?.last?.host], [undefined, 'h1', 'h2']);
});

test('[C13] of tenures of one host behind each other the first counts, and how far its log was by the end of the last', (t) => {
  const writer = new Writer();
  const mirror = (seq: number) => ({ mirror: { incarnation: '1', seq, states: seq - 1 } });
  writer.says('h1', { ...claim, ...mirror(9) });
  writer.says('h1', { ...claim, ...mirror(20) });
  writer.says('h2', claim);
  writer.says('h3', claim);
  const { last } = writer.ledger.holdings.get('a') ?? {};
  t.is(last?.host, 'h2');
  t.deepEqual(
    last?.before?.map(({ host, number, mirror }) => [host, number, mirror]),
    [['h1', BORN + 1, { incarnation: '1', seq: 20, states: 19 }]],
  );
});

test('[C13] a message whose sender had read something else counts for nobody', (t) => {
  const writer = new Writer();
  writer.says('h1', claim);
  const before = writer.ledger.chain;
  writer.says('h2', {});
  writer.says('h3', { ...claim, prev: before });
  t.is(writer.ledger.holdings.get('a')?.holder?.host, 'h1');
  t.is(writer.ledger.last, 3);
});

test('[C13] messages that nobody of the cluster can have written are skipped, and others go on behind them', (t) => {
  const writer = new Writer();
  writer.says('h1', claim);
  const { chain } = writer.ledger;
  t.is(writer.ledger.apply({ seq: 2 }), 'forged');
  t.deepEqual([writer.ledger.last, writer.ledger.chain], [2, chain]);
  t.throws(() => writer.ledger.apply({ seq: 4 }), { instanceOf: RangeError });
});

test('[C13] behind messages of strangers that its sender had not read a message counts, behind one of the cluster it says nothing', (t) => {
  const writer = new Writer();
  writer.says('h1', claim);
  const { chain: prev } = writer.ledger;
  for (const seq of [2, 3]) writer.ledger.apply({ seq });
  const said = (host: string, read: number) =>
    encodeMessage({
      ...{
        protocol: 1,
        host,
        run: `${host}-run`,
        beat: 1,
        folder: host,
        version: '1',
        ttlMs: 100,
        read,
        prev,
      },
      ...{ drained: false, above: BORN + 1, ...claim, releases: [] },
    });
  t.like(writer.ledger.apply({ seq: 4, body: said('h2', 1) }), { host: 'h2' });
  t.is(writer.ledger.holdings.get('a')?.holder?.number, BORN + 4);
  t.is(writer.ledger.apply({ seq: 5, body: said('h3', 1) }), 'late');
  t.is(writer.ledger.apply({ seq: 6, body: said('h3', 3) }), 'late');
  t.is(writer.ledger.apply({ seq: 7, body: said('h3', 6) }), 'forked', 'it has read all of them, and others');
  t.is(writer.ledger.holdings.get('a')?.holder?.host, 'h2');
});

test('[C13] a message of another history is told from one that came too late, also behind messages of strangers', (t) => {
  const writer = new Writer();
  writer.says('h1', claim);
  const { chain: first } = writer.ledger;
  writer.says('h2', {});
  const said = (read: number, prev: string) =>
    encodeMessage({
      ...{ protocol: 1, host: 'h3', run: 'h3-run', beat: 1, folder: 'h3', version: '1', ttlMs: 100 },
      ...{ drained: false, above: BORN + 1, ...claim, releases: [], read, prev },
    });
  t.is(writer.ledger.apply({ seq: 3 }), 'forged');
  t.is(writer.ledger.apply({ seq: 4, body: said(1, first) }), 'late');
  t.is(writer.ledger.apply({ seq: 5, body: said(0, '') }), 'late', 'it had read nothing');
  t.is(writer.ledger.apply({ seq: 6, body: said(1, 'of other messages') }), 'forked');
  t.is(writer.ledger.apply({ seq: 7, body: said(0, 'of other messages') }), 'forked');
  t.is(writer.ledger.holdings.get('a')?.holder?.host, 'h1');
});

test('[C13] a reader from whom messages are gone takes none as counting that may have come too late', (t) => {
  const said = (read: number) =>
    encodeMessage({
      ...{ protocol: 1, host: 'h1', run: 'r', beat: 1, folder: 'f', version: '1', ttlMs: 100, read },
      ...{ drained: false, prev: 'unknown here', above: 0, ...claim, releases: [] },
    });
  const late = ledger();
  t.is(late.apply({ seq: 100 }), 'forged');
  t.false(late.isKnown);
  t.is(late.apply({ seq: 101, body: said(98) }), 'late', '99 may have been of the cluster');
  t.is(late.apply({ seq: 102, body: said(100) }), 'late', 'it came behind that');
  t.false(late.isKnown);
  t.is(late.apply({ seq: 103 }), 'forged');
  t.like(late.apply({ seq: 104, body: said(102) }), { host: 'h1' });
  t.true(late.isKnown);
  const first = ledger();
  t.true(first.isKnown, 'before anything was said');
  t.is(first.apply({ seq: 1 }), 'forged');
  t.true(first.isKnown);
});

test('[C13] a reader from whom the first messages are gone learns who holds and who held from those that are left', (t) => {
  const writer = new Writer();
  writer.says('h1', claim);
  writer.says('h1', { releases: [{ singleton: 'a', number: BORN + 1 }] });
  writer.says('h2', { claims: [{ singleton: 'b' }] });
  for (let i = 0; i < 996; i += 1) writer.says('h2', { claims: [{ singleton: 'b', number: BORN + 3 }] });
  t.is(writer.ledger.earlierDue, undefined);
  writer.says('h2', { claims: [{ singleton: 'b', number: BORN + 3 }] });
  const due = writer.ledger.earlierDue;
  t.deepEqual(
    due?.map(({ singleton, host, number }) => [singleton, host, number]),
    [
      ['a', 'h1', BORN + 1],
      ['b', 'h2', BORN + 3],
    ],
  );
  writer.says('h2', { earlier: due });
  const late = writer.from(900);
  t.like(late.holdings.get('b')?.holder, { host: 'h2', number: BORN + 3 });
  t.is(late.holdings.get('a')?.last?.host, 'h1');
  t.is(late.holdings.get('a')?.holder, undefined);
  t.is(late.chain, writer.ledger.chain);
});

test('[C13] who held a singleton before the last one is known, too: of tenures of one host behind each other the first', (t) => {
  const writer = new Writer();
  const last = (one = writer.ledger) => {
    const { holder, last } = one.holdings.get('a') ?? {};
    return [holder?.host, last?.host, last?.before?.map(({ host, number }) => `${host} ${number - BORN}`)];
  };
  writer.says('h1', claim);
  t.deepEqual(last(), ['h1', undefined, undefined]);
  writer.says('h2', claim);
  t.deepEqual(last(), ['h2', 'h1', undefined]);
  writer.says('h2', claim);
  writer.says('h2', claim);
  t.deepEqual(last(), ['h2', 'h2', ['h2 2', 'h1 1']]);
  writer.says('h3', { releases: [], claims: [{ singleton: 'a' }] });
  const number = writer.ledger.holdings.get('a')?.holder?.number ?? 0;
  writer.says('h3', { releases: [{ singleton: 'a', number }] });
  t.deepEqual(last(), [undefined, 'h3', ['h2 2', 'h1 1']]);
  // Whoever reads a new ledger, or the end of this one, hears of them, too.
  t.deepEqual(last(new Ledger(newIncarnation(BORN, 'y'), writer.ledger)), last());
  writer.says('h1', { earlier: new Ledger(newIncarnation(BORN, 'y'), writer.ledger).earlierDue });
  t.deepEqual(last(writer.from(6)), [undefined, 'h3', ['h2 2', 'h1 1']]);
  writer.says('h4', claim);
  const claimed = writer.ledger.holdings.get('a')?.holder?.number ?? 0;
  writer.says('h4', {
    claims: [{ singleton: 'a', number: claimed }],
    earlier: new Ledger(newIncarnation(BORN, 'y'), writer.ledger).earlierDue,
  });
  writer.says('h4', { claims: [{ singleton: 'a', number: claimed }] });
  t.deepEqual(last(writer.from(10)).slice(0, 2), ['h4', undefined], 'the end alone does not say it');
  writer.says('h4', {
    claims: [{ singleton: 'a', number: claimed }],
    earlier: new Ledger(newIncarnation(BORN, 'y'), writer.ledger).earlierDue,
  });
  for (const from of [8, 9, 10, 11])
    t.deepEqual(last(writer.from(from)), ['h4', 'h3', ['h2 2', 'h1 1']], String(from));
});

test('[C13] a ledger that lost its end does not hide who held last: by what is left, another one would go on from long ago', (t) => {
  const writer = new Writer();
  writer.says('h1', claim);
  writer.says('h2', claim);
  const short = writer.bodies.length;
  writer.says('h1', claim);
  const late = writer.ledger.holdings.get('a')?.holder?.number ?? 0;
  /** As a host knows the ledger that has what is left; one that was there before knows more. */
  const left = (before?: Ledger) => {
    const one = new Ledger(newIncarnation(BORN, 'x'), before);
    for (const [index, body] of writer.bodies.slice(0, short).entries()) one.apply({ seq: index + 1, body });
    return one;
  };
  const [knows, isNew] = [left(writer.ledger), left()];
  const lastOf = (one: Ledger) => one.holdings.get('a')?.last?.number;
  t.is(lastOf(knows), late);
  t.is(knows.above, late);
  // It tells the others with its next message, and the next claim is above what was lost.
  const text = { prev: knows.chain, earlier: knows.earlierDue, above: knows.above };
  const says = (more: object) =>
    encodeMessage({
      ...{ protocol: 1, host: 'h1', run: 'h1-run', beat: 9, folder: 'h1', version: '1', ttlMs: 100 },
      ...{ drained: false, claims: [], releases: [], ...text, ...more },
    });
  const [told, next] = [says({}), (prev: string) => says({ ...claim, earlier: undefined, prev })];
  for (const one of [knows, isNew]) {
    one.apply({ seq: short + 1, body: told });
    t.is(lastOf(one), late);
    one.apply({ seq: short + 2, body: next(one.chain) });
    t.is(lastOf(one), late);
    t.true((one.holdings.get('a')?.holder?.number ?? 0) > late);
  }
  t.is(knows.earlierDue, undefined);
});
