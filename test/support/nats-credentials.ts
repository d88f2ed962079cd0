import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nkeys } from '@nats-io/transport-node';

type KeyPair = ReturnType<typeof nkeys.createOperator>;

/** An operator, an account with JetStream and a user of NATS, as `nsc` makes them. */
export interface NatsAccount {
  /** Lines of the servers' configuration. */
  readonly config: string;
  /** Credentials of the user: a file of mode 0600. */
  readonly credentialsFile: string;
}

/** Makes an account of NATS with one user who may do everything in it. */
export function makeNatsAccount(dir: string): NatsAccount {
  const [operator, account, user] = [nkeys.createOperator(), nkeys.createAccount(), nkeys.createUser()];
  const system = nkeys.createAccount();
  const unlimited = { subs: -1, data: -1, payload: -1 };
  const limits = {
    ...unlimited,
    ...{ imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 },
    ...{ mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 },
  };
  const all = { pub: {}, sub: {} };
  const operatorToken = tokenOf(operator, operator, { type: 'operator' });
  const accountToken = tokenOf(account, operator, { type: 'account', limits, default_permissions: all });
  const systemToken = tokenOf(system, operator, {
    type: 'account',
    limits: { ...limits, mem_storage: 0, disk_storage: 0 },
  });
  const userToken = tokenOf(user, account, { type: 'user', ...unlimited, ...all });
  const credentialsFile = join(dir, 'user.creds');
  const seed = Buffer.from(user.getSeed()).toString();
  writeFileSync(
    credentialsFile,
    [
      ...['-----BEGIN NATS USER JWT-----', userToken, '------END NATS USER JWT------', ''],
      ...['-----BEGIN USER NKEY SEED-----', seed, '------END USER NKEY SEED------', ''],
    ].join('\n'),
    { mode: 0o600 },
  );
  const lines = [
    `operator: "${operatorToken}"`,
    `system_account: ${system.getPublicKey()}`,
    'resolver: MEMORY',
    'resolver_preload {',
    `  ${account.getPublicKey()}: "${accountToken}"`,
    `  ${system.getPublicKey()}: "${systemToken}"`,
    '}',
  ];
  return { credentialsFile, config: lines.join('\n') };
}

/** A token of NATS: its own kind of JWT, signed with Ed25519. */
function tokenOf(subject: KeyPair, issuer: KeyPair, nats: object): string {
  const claims = {
    jti: subject.getPublicKey(),
    iat: Math.floor(Date.now() / 1_000),
    iss: issuer.getPublicKey(),
    sub: subject.getPublicKey(),
    name: 'tests',
    nats: { ...nats, version: 2 },
  };
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  const text = `${encode({ typ: 'JWT', alg: 'ed25519-nkey' })}.${encode(claims)}`;
  return `${text}.${Buffer.from(issuer.sign(Buffer.from(text))).toString('base64url')}`;
}
