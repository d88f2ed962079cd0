import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import test from 'ava';
import type { CheckResult } from '../../../../src/core/host/plugin/diagnosis.ts';
import { systemClock } from '../../../../src/core/kernel/clock.ts';
import { ClusterKey } from '../../../../src/plugins/cluster/keys.ts';
import { proofStream } from '../../../../src/plugins/cluster/nats/quorum-proof.ts';
import { LinearStream } from '../../../../src/plugins/cluster/nats/stream.ts';
import type { StreamSettings } from '../../../../src/plugins/cluster/nats/stream-settings.ts';
import { clockResult, raceOf } from '../../../../src/plugins/cluster/operate/checks.ts';
import { clusterChecks } from '../../../../src/plugins/cluster/operate/diagnosis.ts';
import { type ClusterOptions, clusterOptions } from '../../../../src/plugins/cluster/options.ts';
import { type LinkWish, openLink, silent } from '../../../support/cluster.ts';
import {
  type DeployedNats,
  makeCertificateAuthority,
  type NatsUser,
  natsUser,
  startDeployedNats,
} from '../../../support/deployed-nats.ts';
import type { Scope } from '../../../support/scope.ts';
import { tempDir } from '../../../support/temp.ts';
import { read, until } from '../../../support/until.ts';

const ends: (() => unknown)[] = [];
const scope: Scope = { teardown: (end) => ends.unshift(end), log: () => {} };
let nats: DeployedNats;
let users: Record<'home' | 'other' | 'few' | 'unknown', NatsUser>;

const dependencies = { clock: systemClock, logger: silent };
const ledger: StreamSettings = {
  name: 'HF_home_LEDGER',
  subjects: ['hf.home.ledger'],
  maxBytes: 1024 * 1024,
  discard: 'old',
  replicas: 3,
};

/** Accounts of two more clusters: one whose user may do anything in it, one whose user may make no stream. */
function threeClusters(text: string): string {
  const all = text.replace('UA…', users.home.publicKey);
  const account = (name: string, user: NatsUser, permissions: string) =>
    `  ${name}: { jetstream: { max_file: 1GB, max_mem: 64MB }, users: [ { nkey: "${user.publicKey}"${permissions} } ] }\n`;
  const few =
    ', permissions: { publish: { allow: ["hf.few.>", "$JS.API.STREAM.INFO.*"] }, subscribe: ["hf.few.>", "_INBOX.>"] }';
  const more = account('OTHER', users.other, '') + account('FEW', users.few, few);
  return all.replace('  # Looks at', `${more}  # Looks at`);
}

test.before(async () => {
  const dir = tempDir(scope);
  users = {
    home: natsUser(dir, 'home'),
    other: natsUser(dir, 'other'),
    few: natsUser(dir, 'few'),
    unknown: natsUser(dir, 'unknown'),
  };
  nats = await startDeployedNats(scope, threeClusters);
});

test.after.always(async () => {
  for (const end of ends) await end();
});

const open = (t: Scope, user: NatsUser, wish: LinkWish = {}) =>
  openLink(t, nats.urls, {
    name: 'home',
    credentialsFile: user.file,
    tls: { caFile: nats.caFile },
    ...wish,
  });

test.serial(
  '[C13] with the files of deploy/nats a host may do all that it needs: streams of each kind, questions, answers',
  async (t) => {
    const [one, two] = [await open(t, users.home), await open(t, users.home, { host: 'two' })];
    const made = await LinearStream.open(one, ledger, dependencies);
    const there = await LinearStream.open(two, ledger, dependencies);
    const { seq } = await made.append('a beat', { id: 'one.1', expectedLast: 0 });
    t.is((await there.get(seq))?.body.toString(), 'a beat');
    t.is((await there.last()).seq, 1);
    t.is((await there.lastOf('hf.home.ledger'))?.message?.seq, 1);
    t.deepEqual(await LinearStream.names(two, 'hf.home.>'), ['HF_home_LEDGER']);

    const log = await LinearStream.open(
      one,
      {
        ...ledger,
        name: 'HF_home_LOG_one_1',
        subjects: ['hf.home.log.one.1.records', 'hf.home.log.one.1.states'],
        discard: 'new',
        isTrimmed: true,
      },
      dependencies,
    );
    for (const body of ['1', '2', '3']) await log.append(body);
    await log.removeBefore(2);
    t.is((await log.last()).firstSeq, 2);
    const proofs = await LinearStream.open(two, proofStream('home', 1, ledger.replicas), dependencies);
    await proofs.append('', { subject: 'hf.home.quorum.1.first' });
    t.is((await proofs.firstOf('hf.home.quorum.1.first'))?.seq, 1);

    const followed: string[] = [];
    const follower = there.follow(1, ({ body }) => void followed.push(body.toString()));
    await made.append('another beat', { expectedLast: 1 });
    await until('both beats have come', () => followed.length === 2);
    await follower.end();
    two.subscribe('hf.home.ask.how', (message) => message.respond('well'));
    await two.connected().flush();
    t.is((await one.request('hf.home.ask.how', '?', 10_000)).body.toString(), 'well');
  },
);

test.serial('[C13] a user may not publish where it may not, by way of the place for an answer', async (t) => {
  const link = await open(t, users.home);
  const settings = { ...ledger, name: 'HF_home_NOTE', subjects: ['hf.home.note'] };
  await LinearStream.open(link, settings, dependencies);
  const connection = link.connected();
  const asked = Promise.withResolvers<void>();
  connection.subscribe('hf.home.question', {
    callback: (_, question) => {
      question.respond('');
      asked.resolve();
    },
  });
  connection.publish('hf.home.question', '', { reply: `$JS.API.STREAM.DELETE.${settings.name}` });
  await asked.promise;
  await connection.flush(); // the server has seen the answer
  t.true((await LinearStream.names(link, 'hf.home.note')).includes(settings.name));
});

test.serial(
  '[C13] a user of another cluster neither reads nor writes ours, and sees none of our messages',
  async (t) => {
    const [ours, theirs] = [await open(t, users.home), await open(t, users.other)];
    t.is(await LinearStream.existing(theirs, 'HF_home_LEDGER', dependencies), undefined);
    t.deepEqual(await LinearStream.names(theirs, 'hf.home.>'), []);
    const stream = await LinearStream.open(ours, ledger, dependencies);
    const before = await stream.last();
    const refused = await t.throwsAsync(theirs.jetstream().publish('hf.home.ledger', 'forged'));
    t.is(refused?.name, 'JetStreamNotEnabled', String(refused));
    const heard: string[] = [];
    theirs.listen('hf.home.>', ({ subject }) => void heard.push(subject));
    await theirs.connected().flush();
    const { seq } = await stream.append('seen by ours alone');
    t.is(seq, before.seq + 1, 'what they sent is not on it');
    theirs.connected().publish('hf.home.own', 'their own');
    await until('their own message has come', () => heard.length > 0);
    t.deepEqual(heard, ['hf.home.own'], 'and none of ours before it');
  },
);

for (const [what, subject] of [
  ['delete a stream', '$JS.API.STREAM.DELETE.HF_home_LEDGER'],
  ['change one', '$JS.API.STREAM.UPDATE.HF_home_LEDGER'],
  ['restore one', '$JS.API.STREAM.RESTORE.HF_home_LEDGER'],
  ['delete a message', '$JS.API.STREAM.MSG.DELETE.HF_home_LEDGER'],
  ['make a consumer', '$JS.API.CONSUMER.CREATE.HF_home_LEDGER'],
  ['read from any replica', '$JS.API.DIRECT.GET.HF_home_LEDGER'],
  ['write elsewhere', 'hf.other.ledger'],
  ['look at the servers', '$SYS.REQ.SERVER.PING'],
] as const) {
  test.serial(`[C13] a host of the cluster may not ${what}`, async (t) => {
    const link = await open(t, users.home);
    const problems: string[] = [];
    const watch = async () => {
      for await (const status of link.connected().status())
        if (status.type === 'error') problems.push(status.error.message);
    };
    void watch();
    link.connected().publish(subject, '{}');
    await until('the server has refused', () => problems.length > 0);
    t.regex(
      problems.join(),
      new RegExp(`permissions? violation for publish to "${subject.replaceAll('$', '\\$')}"`, 'i'),
    );
  });
}

test.serial(
  '[C13] who is not let in is told why, without a secret: unknown user, none, another authority',
  async (t) => {
    const dir = tempDir(t);
    const stranger = makeCertificateAuthority(dir);
    const wishes: readonly (readonly [string, LinkWish, RegExp])[] = [
      ['unknown user', { credentialsFile: users.unknown.file }, /Authorization Violation|authorization/i],
      ['no user', { credentialsFile: undefined }, /Authorization Violation|authorization/i],
      ['another authority', { tls: { caFile: stranger } }, /unable to verify|self.signed|certificate/i],
    ];
    for (const [what, wish, reason] of wishes) {
      const link = await openLink(t, nats.urls, {
        name: 'home',
        credentialsFile: users.home.file,
        tls: { caFile: nats.caFile },
        isAlone: true,
        ...wish,
      });
      const problem = await read(
        `${what} is refused`,
        () => link.problem ?? '',
        (text) => /localhost:\d+/.test(text),
      );
      t.log(what, problem);
      t.regex(problem, reason, what);
      for (const { seed } of Object.values(users)) t.false(problem.includes(seed.slice(4)), what);
      t.throws(() => link.connected(), { code: 'HF_CLUSTER_UNREACHABLE' });
      await link.close();
    }
  },
);

test.serial('[C13] a server of deploy/nats takes nothing in plaintext', async (t) => {
  const socket = connect(nats.ports[0] ?? 0, '127.0.0.1');
  t.teardown(() => socket.destroy());
  socket.on('error', () => {});
  let said = '';
  socket.on('data', (chunk) => {
    said += String(chunk);
  });
  await until('the server greets', () => /^INFO /.test(said));
  socket.write('CONNECT {"verbose":true}\r\nPING\r\n');
  await until('the server closes the connection', () => socket.closed || socket.readableEnded);
  t.true(JSON.parse(said.split('\r\n')[0]?.slice(5) ?? '').tls_required);
  t.false(said.includes('PONG'), said);
});

const optionsOf = (name: string, user: NatsUser, keyFile: string, more: object = {}): ClusterOptions =>
  clusterOptions.parse({
    ...{ servers: nats.urls, name, host: 'one', keyFile, credentialsFile: user.file },
    ...{ tls: { caFile: nats.caFile }, ...more },
  });

async function diagnose(
  t: Scope,
  options: ClusterOptions,
  facts?: Record<string, unknown>,
  only?: readonly string[],
) {
  const context = {
    dataDir: tempDir(t),
    signal: new AbortController().signal,
    ...(facts && { running: { surfaces: {}, facts } }),
  };
  const found = new Map<string, CheckResult>();
  for (const { name, run } of clusterChecks(options)) {
    if (only && !only.includes(name.replace('cluster.', ''))) continue;
    try {
      found.set(name.replace('cluster.', ''), await run(context));
    } catch (error) {
      found.set(name.replace('cluster.', ''), {
        ...{ state: 'fail', lookedAt: '', found: error instanceof Error ? error.message : '' },
      });
    }
  }
  return found;
}

test.serial('[C13] doctor cluster finds nothing wrong with the servers of deploy/nats', async (t) => {
  const keyFile = join(tempDir(t), 'cluster.key');
  writeFileSync(keyFile, 'the key of a cluster of the tests of doctor', { mode: 0o600 });
  const found = await diagnose(t, optionsOf('home', users.home, keyFile), {
    cluster: { text: 'one of home holds nothing' },
  });
  for (const [name, { state, found: text }] of found) {
    t.log(name, text);
    t.is(state, 'ok', `${name}: ${text}`);
  }
  t.is(found.size, 7);
  const [first = ''] = nats.urls.split(',');
  const one = await diagnose(t, optionsOf('home', users.home, keyFile, { servers: first }), undefined, [
    'replicas',
  ]);
  t.like(one.get('replicas'), { state: 'ok' }, 'also where one of the servers is named');
});

test.serial(
  '[C13] doctor cluster names what is wrong: servers, permissions, copies, settings, the instance',
  async (t) => {
    const keyFile = join(tempDir(t), 'cluster.key');
    writeFileSync(keyFile, 'the key of a cluster of the tests of doctor', { mode: 0o600 });
    const other = await open(t, users.other, { name: 'other', key: ClusterKey.open(keyFile) });
    const wrong: StreamSettings = {
      ...{ name: 'HF_other_LOG_one_1', subjects: ['hf.other.log.one.1.records'], discard: 'old' },
      ...{ maxBytes: 1024 * 1024, replicas: 1, storage: 'memory' },
    };
    await LinearStream.open(other, wrong, dependencies);
    const servers = `${nats.urls},tls://localhost:1`;
    const found = await diagnose(t, optionsOf('other', users.other, keyFile, { servers }), {
      cluster: { ok: false, reason: 'cut off from the others' },
    });
    const expected: readonly (readonly [string, CheckResult['state'], RegExp])[] = [
      ['reachable', 'warn', /tls:\/\/localhost:1: .*; the others answer \(version 2/],
      ['permissions', 'warn', /also delete streams/],
      ['replicas', 'warn', /HF_other_LOG_one_1 has 1 of 3 copies/],
      ['streams', 'fail', /HF_other_LOG_one_1 discards old records; HF_other_LOG_one_1 is kept in memory/],
      ['instance', 'fail', /cut off from the others/],
    ];
    for (const [name, state, text] of expected) {
      t.is(found.get(name)?.state, state, name);
      t.regex(found.get(name)?.found ?? '', text, name);
    }
    const few = await diagnose(t, optionsOf('few', users.few, keyFile), undefined, [
      'permissions',
      'instance',
    ]);
    t.log(few.get('permissions')?.found);
    t.is(few.get('permissions')?.state, 'fail');
    t.regex(few.get('permissions')?.found ?? '', /STREAM\.CREATE|permission/i);
    t.is(few.get('instance')?.state, 'unknown');
    const none = await diagnose(t, optionsOf('home', users.unknown, keyFile), undefined, [
      'reachable',
      'clock',
    ]);
    t.is(none.get('reachable')?.state, 'fail');
    t.regex(none.get('reachable')?.found ?? '', /Authorization Violation/);
    t.is(none.get('clock')?.state, 'unknown');
  },
);

test('[C13] doctor cluster fails servers that let two writers win at once, and tells a clock that differs', async (t) => {
  let seq = 0;
  const lenient = {
    last: async () => ({ seq, firstSeq: 1, bytes: 0, maxBytes: -1 }),
    append: async () => {
      seq += 1;
      return { seq, duplicate: false };
    },
  };
  t.is((await raceOf(lenient, lenient)).state, 'fail');
  const [close, ahead, slow] = [clockResult(-300, 5), clockResult(61_000, 5), clockResult(900, 400)];
  t.deepEqual([close.state, ahead.state, slow.state], ['ok', 'warn', 'unknown']);
  t.regex(ahead.found, /61 s ahead/);
});
