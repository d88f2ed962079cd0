import test from 'ava';
import fc from 'fast-check';
import { CHAIN_START } from '../../../../src/core/kernel/log/chain-hash.ts';
import { openLines } from '../../../../src/core/kernel/log/portable/open-reader.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import {
  beginMessages,
  type ChainPlace,
  nextBatch,
  RecordsGone,
  type StreamHeader,
} from '../../../../src/plugins/cluster/mirror/batch.ts';
import {
  headersOf,
  type MirrorMessage,
  type StreamedMessage,
} from '../../../../src/plugins/cluster/mirror/message.ts';
import { entriesOf, linesOfEntries } from '../../../../src/plugins/cluster/mirror/stream-lines.ts';
import { appendRecords, doorRecord } from '../../../support/plain-log.ts';
import { runs } from '../../../support/runs.ts';
import { tempDir } from '../../../support/temp.ts';

const header: StreamHeader = {
  holdfast: 'log',
  format: 1,
  runtime: '0.2.0',
  exportedAt: 0,
  machines: {},
  chainStart: CHAIN_START,
  range: { from: 1, to: 1 },
  time: { from: 0, to: 0 },
  complete: true,
  host: 'one',
  incarnation: 1,
  key: `ed25519:${'A'.repeat(43)}`,
};

/** All records of a log as messages, in as many turns as it takes. */
function packed(reader: SqliteReader, largest: number): MirrorMessage[] {
  const messages = [...beginMessages(header, [], largest)];
  for (let after: ChainPlace = { seq: 0, hash: CHAIN_START }; ; ) {
    const batch = nextBatch(reader, after, reader.lastSeq(), largest);
    if (!batch) return messages;
    messages.push(...batch.messages);
    after = batch.end;
  }
}

async function* streamed(messages: readonly MirrorMessage[]): AsyncGenerator<StreamedMessage> {
  for (const [index, message] of messages.entries())
    yield { seq: index + 1, body: message.body, headers: headersOf(message), at: 0 };
}

test('[C13] records of any size come out of the messages of a stream as they went in, signatures included', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof({ weight: 4, arbitrary: fc.nat(40) }, { weight: 1, arbitrary: fc.nat(9_000) }), {
        minLength: 1,
        maxLength: 120,
      }),
      fc.integer({ min: 700, max: 3_000 }),
      fc.array(fc.nat(), { maxLength: 3 }),
      async (sizes, largest, interruptions) => {
        const dataDir = tempDir(t);
        const letters = (size: number, seq: number) => ({ type: 'KNOCK', text: `${'ü'.repeat(size)}${seq}` });
        await appendRecords(
          dataDir,
          sizes.map((size, index) => doorRecord(index + 1, { event: letters(size, index + 1) })),
          7,
        );
        const source = new SqliteReader(dataDir);
        const messages = packed(source, largest);
        t.true(messages.every(({ body }) => body.length <= largest));
        // A writer that was interrupted among the parts of a record begins with the first part again.
        const parts = messages.flatMap(({ part }, index) => (part && part.number > 1 ? [index] : []));
        for (const at of interruptions) {
          const place = parts[at % Math.max(1, parts.length)];
          const { part } = messages[place ?? 0] ?? {};
          if (place === undefined || !part || messages[place - 1]?.part?.number !== part.number - 1) continue;
          const begin = place - part.number + 1;
          messages.splice(place, 0, ...messages.slice(begin, place));
          break;
        }
        const {
          reader,
          end,
          header: read,
        } = await openLines({
          name: 'a stream',
          lines: linesOfEntries(entriesOf(streamed(messages))),
          isOpen: true,
        });
        const rows = (log: SqliteReader) => [...log.pages()].flat();
        t.is(read.host, 'one');
        t.deepEqual(rows(reader), rows(source));
        t.deepEqual(reader.signatures(), source.signatures());
        t.is(end.hash, source.hashOf(sizes.length) ?? '');
        reader.close();
        source.close();
      },
    ),
    { numRuns: runs(25) },
  );
});

test('[C13] small records share a message, hundreds at a time and at most 256 KiB', async (t) => {
  const dataDir = tempDir(t);
  await appendRecords(
    dataDir,
    Array.from({ length: 2_000 }, (_, index) => doorRecord(index + 1)),
  );
  const reader = new SqliteReader(dataDir);
  t.teardown(() => reader.close());
  const [, ...messages] = packed(reader, 1_000_000);
  t.is(messages.length, 4);
  t.true(messages.every(({ body, from, to }) => body.length <= 256 * 1024 && to - from + 1 === 500));
});

test('[C13] a record that was pruned before it was sent is not passed over', async (t) => {
  const dataDir = tempDir(t);
  await appendRecords(dataDir, [doorRecord(1), doorRecord(2), doorRecord(3)]);
  const reader = new SqliteReader(dataDir);
  t.teardown(() => reader.close());
  const pruned = {
    signatures: reader.signatures.bind(reader),
    *pages() {
      for (const page of reader.pages()) yield page.filter(({ seq }) => seq > 2);
    },
  };
  t.throws(() => nextBatch(pruned, { seq: 1, hash: '' }, 3, 1_000_000), { instanceOf: RecordsGone });
});
