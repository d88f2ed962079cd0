import test from 'ava';
import { newestStates, statesAt } from '../../../../src/plugins/cluster/mirror/newest-states.ts';
import type { StreamMessage } from '../../../../src/plugins/cluster/nats/stream-message.ts';

const RECORDS = 'hf.tests.log.one.1.records';
const STATES = 'hf.tests.log.one.1.states';

interface Stored {
  readonly subject: string;
  /** Undefined: anybody wrote it. */
  readonly headers: Readonly<Record<string, string>> | undefined;
}

const records = (to: number): Stored => ({
  subject: RECORDS,
  headers: { 'Hf-Kind': 'records', 'Hf-From': String(to), 'Hf-To': String(to), 'Hf-Hash': `hash ${to}` },
});

/** States after a record, in parts. */
const states = (to: number, of = 1): Stored[] =>
  Array.from({ length: of }, (_, i) => ({
    subject: i === of - 1 ? STATES : RECORDS,
    headers: {
      ...{ 'Hf-Kind': 'states', 'Hf-From': String(to + 1), 'Hf-To': String(to), 'Hf-Hash': `hash ${to}` },
      ...(of > 1 && { 'Hf-Part': `${i + 1}/${of}` }),
    },
  }));

const FORGED: Stored = { subject: STATES, headers: undefined };

/** A stream that holds these, and how many of them were asked for. */
function streamOf(stored: readonly Stored[]) {
  const asked = { count: 0 };
  const look = async (seq: number) => {
    asked.count += 1;
    const one = stored[seq - 1];
    if (!one) return undefined;
    const { subject, headers } = one;
    const message: StreamMessage | undefined = headers && {
      ...{ seq, subject, headers, body: Buffer.from('states'), at: 0 },
    };
    return { message, bytes: 6 };
  };
  const stream = {
    look,
    lastOf: (subject: string) => look(stored.findLastIndex((one) => one.subject === subject) + 1),
    async *read(from: number, to = stored.length) {
      for (let seq = from; seq <= to; seq += 1) {
        const message = (await look(seq))?.message;
        if (message) yield message;
      }
    },
  };
  return { stream, asked };
}

const long = [
  ...Array.from({ length: 5_000 }, (_, i) => records(i + 1)),
  ...states(5_000, 3),
  records(5_001),
];

test('[C13] the newest states of a stream are found without reading it, all their parts', async (t) => {
  const { stream, asked } = streamOf(long);
  t.like(await newestStates(stream, STATES, 5_005), { kind: 'states', to: 5_000, streamSeq: 5_003 });
  t.is(asked.count, 4);
  t.is(await newestStates(streamOf([records(1)]).stream, STATES, 2), undefined);
});

test('[C13] forged states, and states behind a fence, are not taken, nor is the stream searched for others', async (t) => {
  const { stream, asked } = streamOf([...long, FORGED]);
  t.is(await newestStates(stream, STATES, 5_006), undefined);
  t.is(asked.count, 1);
  t.is(await newestStates(streamOf(long).stream, STATES, 5_003), undefined);
});

test('[C13] states are taken where their host says that they stand, whatever anybody put behind them', async (t) => {
  const { stream, asked } = streamOf([...long, FORGED]);
  t.like(await statesAt(stream, 5_003), { kind: 'states', to: 5_000, streamSeq: 5_003 });
  t.is(asked.count, 4);
  for (const seq of [5_001, 5_004, 5_005, 9_999]) t.is(await statesAt(stream, seq), undefined);
});

test('[C13] states of which a part is missing do not count', async (t) => {
  const [, , last] = states(1, 3);
  const { stream } = streamOf([records(1), FORGED, ...states(1, 3).slice(1, 2), last ?? FORGED]);
  t.is(await statesAt(stream, 4), undefined);
});
