import * as transport from '@nats-io/transport-node';
import test from 'ava';
import { systemClock } from '../../../../src/core/kernel/clock.ts';
import {
  checkClient,
  headerBytes,
  storedHeaderBytes,
} from '../../../../src/plugins/cluster/nats/header-bytes.ts';
import { MOST_HEADER_BYTES } from '../../../../src/plugins/cluster/nats/seal.ts';
import { LinearStream } from '../../../../src/plugins/cluster/nats/stream.ts';
import { openLink, silent, streamSettings } from '../../../support/cluster.ts';
import { startNats } from '../../../support/nats.ts';

const BLOCK = 'NATS/1.0\r\na: b\r\nc: d\r\n\r\n';
const SUBJECT = 'hf.tests.headers';

test('[C13] the client of NATS tells how large headers are before it decodes them, of messages and of stored ones', async (t) => {
  const nats = await startNats(t);
  const link = await openLink(t, nats.url());
  const settings = streamSettings({ subjects: [SUBJECT] });
  await LinearStream.open(link, settings, { clock: systemClock, logger: silent });
  const heard = Promise.withResolvers<transport.Msg>();
  link.listen(SUBJECT, heard.resolve);
  const headers = Object.assign(transport.headers(), { encode: () => Buffer.from(BLOCK) });
  headers.set('a', 'b'); // without any the client sends none
  await link.jetstream().publish(SUBJECT, 'a body', { headers });
  const message = await heard.promise;
  t.is(headerBytes(message), SUBJECT.length + (message.reply ?? '').length + BLOCK.length);
  const { streams } = await link.manager();
  const stored = await streams.getMessage(settings.name, { seq: 1 });
  t.truthy(stored);
  // In base64 it is rounded up.
  if (stored) t.true(Math.abs(storedHeaderBytes(stored) - BLOCK.length) <= 2);
  await link.jetstream().publish(SUBJECT, 'none');
  const none = await streams.getMessage(settings.name, { seq: 2 });
  if (none) t.is(storedHeaderBytes(none), 0);
});

test('[C13] a client of NATS that does not tell the size of headers is refused at the start', (t) => {
  t.notThrows(() => checkClient(transport));
  class Other extends transport.MsgImpl {
    override size(): number {
      return 0;
    }
  }
  const lacks = { code: 'HF_CLUSTER_CLIENT' };
  t.throws(() => checkClient({ MsgImpl: Other }), lacks);
  const stored = { subject: 'a', seq: 1, data: Buffer.from('b') };
  t.throws(() => storedHeaderBytes(JSON.parse(JSON.stringify(stored))), lacks);
});

test('[C13] the headers that a message of the cluster may have are decoded in some milliseconds', (t) => {
  const letters = Array.from('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789');
  const names = [...letters, ...letters.flatMap((one) => letters.map((other) => one + other))];
  let block = 'NATS/1.0\r\n';
  for (const name of names) if (block.length + name.length + 5 <= MOST_HEADER_BYTES) block += `${name}:\r\n`;
  const bytes = Buffer.from(`${block}\r\n`);
  const timed = () => {
    const before = process.cpuUsage();
    transport.MsgHdrsImpl.decode(bytes);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  };
  const best = Math.min(...Array.from({ length: 20 }, timed));
  t.log(`${best.toFixed(1)} ms for ${bytes.length} bytes`);
  t.true(best < 40);
});
