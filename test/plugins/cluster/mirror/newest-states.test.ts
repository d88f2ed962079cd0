import test from 'ava';
import { newestStates } from '../../../../src/plugins/cluster/mirror/newest-states.ts';
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

const many = (count: number, one: (i: number) => Stored) => Array.from({ length: count }, (_, i) => one(i));
const forged = (count: number) => many(count, () => ({ subject: STATES, headers: undefined }));

/** A stream that holds these, and how many of them were asked for. */
function streamOf(stored: readonly Stored[], firstSeq = 1) {
  const asked = { count: 0 };
  const at = (seq: number): { message: StreamMessage | undefined; bytes: number } | undefined => {
    const one = stored[seq - 1];
    if (!one || seq < firstSeq) return undefined;
    const { subject, headers } = one;
    return { message: headers && { seq, subject, headers, body: Buffer.from('states'), at: 0 }, bytes: 6 };
  };
  const look = async (seq: number) => {
    asked.count += 1;
    return at(seq);
  };
  const stream = {
    look,
    last: async () => ({ seq: stored.length, firstSeq, bytes: 0, maxBytes: -1 }),
    lastOf: async (subject: string) => at(stored.findLastIndex((one) => one.subject === subject) + 1),
    async *read(from: number, to = stored.length) {
      for (let seq = from; seq <= to; seq += 1) {
        const message = (await look(seq))?.message;
        if (message) yield message;
      }
    },
  };
  return { stream, asked };
}

const long = [...many(5_000, (i) => records(i + 1)), ...states(5_000, 3), records(5_001)];

test('[C13] forged states on a stream hide those of its host from nobody, and the stream is not read from its begin', async (t) => {
  const stored = [...long, ...forged(1), records(5_002), ...forged(100)];
  const { stream, asked } = streamOf(stored);
  t.like(await newestStates(stream, STATES, stored.length + 1), {
    kind: 'states',
    to: 5_000,
    streamSeq: 5_003,
  });
  t.log(`${asked.count} messages were asked for`);
  t.true(asked.count < 300, `${asked.count}`);
});

test('[C13] forged messages between records and the states after them do not make those count for nothing', async (t) => {
  const { stream } = streamOf([records(1), ...forged(100), ...states(1), records(2)]);
  t.like(await newestStates(stream, STATES, 104), { to: 1, streamSeq: 102 });
});

test('[C13] states behind a fence do not count, whoever wrote them, and those before it do', async (t) => {
  const behind = [...long, ...states(5_001), ...forged(1)];
  t.like(await newestStates(streamOf(behind).stream, STATES, long.length + 1), { to: 5_000 });
  t.like(await newestStates(streamOf(behind.slice(0, -1)).stream, STATES, long.length + 1), { to: 5_000 });
});

test('[C13] a stream without states of its host is looked through down to its oldest message, once', async (t) => {
  const { stream, asked } = streamOf([...many(90, (i) => records(i + 1)), ...forged(10)], 51);
  t.is(await newestStates(stream, STATES, 101), undefined);
  t.is(asked.count, 50);
  const none = streamOf(many(90, (i) => records(i + 1)));
  t.is(await newestStates(none.stream, STATES, 91), undefined);
  t.is(none.asked.count, 0);
});

test('[C13] states that do not stand behind their records do not count', async (t) => {
  const { stream } = streamOf([records(1), records(2), ...states(1), records(3)]);
  t.is(await newestStates(stream, STATES, 5), undefined);
});
