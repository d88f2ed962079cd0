import test from 'ava';
import { ByteBuffer, whole } from '../../../src/plugins/gateway/upstream/body.ts';
import { EventBlocks } from '../../../src/plugins/gateway/upstream/events.ts';

const MIB = 1024 * 1024;

/** @returns the chunks of some bytes, all of one length but the last */
function* cut(bytes: Buffer, length: number): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}

test('[G23] an event of many small parts costs what it weighs, and comes out as it was written', (t) => {
  const event = `data: ${'x'.repeat(7 * MIB)}\n\n`;
  const blocks = new EventBlocks();
  const found = [...cut(Buffer.from(event.repeat(2)), 64)].flatMap((chunk) => blocks.push(chunk));
  t.true(found.length === 2 && found.every((block) => block === event));
});

test('[G23] an event beyond 8 MiB is refused, however it comes', (t) => {
  const blocks = new EventBlocks();
  const chunk = Buffer.alloc(1_000, 'x');
  t.throws(
    () => {
      for (let sent = 0; sent < 9 * MIB; sent += chunk.length) blocks.push(chunk);
    },
    { instanceOf: RangeError },
  );
});

test('a body that comes byte by byte is held as one buffer', async (t) => {
  const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index % 251));
  const parts = async function* () {
    yield* cut(bytes, 1);
  };
  t.true((await whole(parts(), bytes.length)).equals(bytes));
  await t.throwsAsync(whole(parts(), bytes.length - 1), { instanceOf: RangeError });
  const gathered = new ByteBuffer();
  const first = Buffer.from('first');
  gathered.push(first);
  t.is(gathered.bytes().buffer, first.buffer, 'a body in one part is not copied');
  gathered.push(Buffer.from(' second'));
  t.is(gathered.bytes().toString(), 'first second');
  t.is(first.toString(), 'first');
});
