import { resolve } from 'node:path';
import type { CommandRun } from '../../../core/host/plugin/command.ts';
import { createSecretFile } from '../../../core/kernel/secret-file.ts';
import { ClusterError } from '../errors.ts';

/** `holdfast cluster nkey`: a user of NATS whose secret never leaves this host. */
export const makeNkey: CommandRun = async ([path = ''], _flags, { json, print, note }) => {
  const file = resolve(path);
  const { nkeys } = await import('@nats-io/transport-node');
  const pair = nkeys.createUser();
  if (!createSecretFile(file, pair.getSeed())) throw new ClusterError('HF_CLUSTER_NKEY_EXISTS', { file });
  const publicKey = pair.getPublicKey();
  pair.clear();
  if (json) return print(JSON.stringify({ file, publicKey }));
  print(publicKey);
  note(
    'In accounts.conf of the servers: { nkey: "<this line>", permissions: … }. On this host: HOLDFAST_NATS_CREDENTIALS_FILE.',
  );
};
