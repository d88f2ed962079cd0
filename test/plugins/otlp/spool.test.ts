import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { FromThread, Taken } from '../../../src/plugins/otlp/spool/protocol.ts';
import { Segments, SpoolFull } from '../../../src/plugins/otlp/spool/segments.ts';
import { FrameTexts, Spool } from '../../../src/plugins/otlp/spool/spool.ts';
import { tempDir } from '../../support/temp.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const LIMIT = 1024 * 1024;
const put = (segments: Segments, ids: readonly string[]) =>
  segments.append(
    ids.map((id) => ({
      frame: { id, table: 'otel_traces', rows: 1, at: 0, layout: '' },
      text: Buffer.from(`{"row":"${id}"}`),
    })),
  );

test('[O1] a frame that is damaged on disk costs itself alone', (t) => {
  const dir = tempDir(t);
  put(new Segments(dir, LIMIT), ['one', 'two', 'three', 'four']);
  const file = join(dir, readdirSync(dir)[0] ?? '');
  const content = readFileSync(file);
  for (const id of ['one', 'three']) content[content.indexOf(`{"id":"${id}`) + 20] = 0;
  writeFileSync(file, content);
  const again = new Segments(dir, LIMIT);
  t.deepEqual(
    again.frames.map(({ id }) => id),
    ['two', 'four'],
  );
  t.is(again.damaged, 2);
  t.is(again.read('four')?.toString(), '{"row":"four"}');
});

test('[O1] a last frame that was cut short is no damage, one whose bytes are others is', (t) => {
  const dir = tempDir(t);
  put(new Segments(dir, LIMIT), ['one', 'two']);
  const file = join(dir, readdirSync(dir)[0] ?? '');
  const content = readFileSync(file);
  writeFileSync(file, content.subarray(0, content.length - 1));
  t.is(new Segments(dir, LIMIT).damaged, 0);
  content[content.length - 1] = (content[content.length - 1] ?? 0) ^ 1;
  writeFileSync(file, content);
  t.is(new Segments(dir, LIMIT).damaged, 1);
});

test('what lies in the spool and is no file of it keeps nothing from being taken', (t) => {
  const dir = tempDir(t);
  put(new Segments(dir, LIMIT), ['one']);
  mkdirSync(join(dir, '000000000002.rows'));
  symlinkSync('/nonexistent', join(dir, '000000000004.rows'));
  writeFileSync(join(dir, '000000000003.rows'), 'no frame');
  const again = new Segments(dir, LIMIT);
  put(again, ['two']);
  t.deepEqual(
    again.frames.map(({ id }) => id),
    ['one', 'two'],
  );
});

test('the memory of rows is given back when they are inserted, but not under an insert that was given up', async (t) => {
  const texts = new FrameTexts(() => true);
  const frame = { id: 'one', table: 'otel_traces', rows: 1, at: 0, layout: 'SpanName' } as const;
  const [first, second] = [Buffer.alloc(9_000), Buffer.alloc(9_000)];
  texts.hold([frame], [first]);
  t.is(await texts.read(frame, frame.layout), first);
  const again = texts.read(frame, frame.layout);
  texts.received('one', second);
  t.is(await again, second);
  texts.release('one');
  t.deepEqual([first.length, second.length], [9_000, 0]);
});

test('a spool that would grow beyond its limit takes nothing, and what is in it stays', (t) => {
  const segments = new Segments(tempDir(t), 400);
  put(segments, ['one']);
  const { bytes } = segments;
  t.true(bytes > 0 && bytes < 400);
  t.throws(() => put(segments, ['two', 'three', 'four', 'five', 'six']), { instanceOf: SpoolFull });
  t.is(segments.bytes, bytes);
  t.deepEqual(
    segments.frames.map(({ id }) => id),
    ['one'],
  );
});

test('while two inserts are under way, rows of one body wait for those of the next', async (t) => {
  const written = Promise.withResolvers<readonly Taken[]>();
  const opened = Promise.withResolvers<void>();
  const onMessage = (message: FromThread) => {
    if (message.type === 'opened') opened.resolve();
    if (message.type === 'written') written.resolve(message.taken);
    if (message.type === 'failed') written.reject(new Error(JSON.stringify(message.failure)));
  };
  const spool = new Spool({
    ...{ clock: new VirtualClock(), dataDir: tempDir(t), bodyLimit: LIMIT, spoolLimit: LIMIT, lingerMs: 0 },
    ...{ onMessage, onEnd: (reason: string) => written.reject(new Error(reason)) },
  });
  const alive = setInterval(() => {}, 1_000); // the thread itself lets its process end
  t.teardown(async () => {
    await spool.close();
    clearInterval(alive);
  });
  for (const change of [1, 1] as const) spool.countInsert(change);
  const take = (id: number) => {
    const span = {
      traceId: '1'.repeat(32),
      spanId: '2'.repeat(16),
      name: `span ${id}`,
      startTimeUnixNano: '1',
    };
    const scopeSpans = [{ spans: [{ ...span, endTimeUnixNano: '2' }] }];
    const body = new Uint8Array(Buffer.from(JSON.stringify({ resourceSpans: [{ scopeSpans }] })));
    spool.post({ type: 'take', id, signal: 'traces', encoding: 'json', gzip: false, body, now: 1 });
  };
  take(1);
  await opened.promise;
  take(2);
  t.deepEqual(
    (await written.promise).map(({ id, rows }) => [id, rows]),
    [
      [1, 1],
      [2, 1],
    ],
  );
});
