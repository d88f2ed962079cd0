import { randomBytes } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { ClusterError } from '../../../src/plugins/cluster/errors.ts';
import { ClusterKey, type Sealed } from '../../../src/plugins/cluster/keys.ts';
import { tempDir } from '../../support/temp.ts';

const message: Sealed = {
  subject: 'hf.home.ledger',
  headers: { 'Hf-From': '1', 'Nats-Msg-Id': 'a' },
  body: Buffer.from('body'),
  place: 'HF_home_LEDGER',
};

test('[C13] a key of a cluster is read from a file of 32 bytes or more, mode 0600', (t) => {
  const file = join(tempDir(t), 'cluster-key');
  writeFileSync(file, randomBytes(31), { mode: 0o600 });
  t.throws(() => ClusterKey.open(file), { code: 'HF_CONFIG_SECRET_INVALID' });
  writeFileSync(file, Buffer.alloc(32, 1));
  t.is(ClusterKey.open(file).derive('a').length, 32);
  chmodSync(file, 0o640);
  t.throws(() => ClusterKey.open(file), { code: 'HF_CONFIG_SECRET_MODE' });
});

test('[C13] a key of a cluster that is missing is named with the variable that says where it is', (t) => {
  const file = join(tempDir(t), 'cluster-key');
  const error = t.throws(() => ClusterKey.open(file), { code: 'HF_CLUSTER_KEY' });
  t.true(error?.message.includes(`key of the cluster in ${file} cannot be read (ENOENT)`), error?.message);
  t.regex(error instanceof ClusterError ? error.remedy : '', /HOLDFAST_CLUSTER_KEY_FILE/);
});

test('[C13] keys that are derived differ by purpose and by cluster, and are the same on every host', (t) => {
  const [one, same, other] = [Buffer.alloc(32, 1), Buffer.alloc(32, 1), Buffer.alloc(32, 2)].map(
    (key) => new ClusterKey(key),
  );
  t.deepEqual(one?.derive('gateway session'), same?.derive('gateway session'));
  t.notDeepEqual(one?.derive('gateway session'), one?.derive('gateway'));
  t.notDeepEqual(one?.derive('gateway session'), other?.derive('gateway session'));
});

test('[C13] the code of a message vouches for its subject, headers, body and place, and for no other', (t) => {
  const key = new ClusterKey(Buffer.alloc(32, 1));
  const code = key.mac(message);
  t.true(key.vouches(message, code));
  t.true(key.vouches({ ...message, headers: { 'Nats-Msg-Id': 'a', 'Hf-From': '1' } }, code));
  const changed: Sealed[] = [
    { ...message, subject: 'hf.home.ledger2' },
    { ...message, headers: { 'Hf-From': '2', 'Nats-Msg-Id': 'a' } },
    { ...message, headers: { 'Hf-From': '1' } },
    { ...message, headers: { 'Hf-From': '1Nats-Msg-Id', '': 'a' } },
    { ...message, body: Buffer.from('bodY') },
    { ...message, place: 'HF_other_LEDGER' },
    { ...message, subject: 'edger', place: 'HF_home_LEDGERhf.home.l' },
  ];
  for (const wrong of changed) t.false(key.vouches(wrong, code), JSON.stringify(wrong));
  t.false(key.vouches(message, ''));
  t.false(key.vouches(message, `${code}x`));
  t.false(new ClusterKey(Buffer.alloc(32, 2)).vouches(message, code));
});
