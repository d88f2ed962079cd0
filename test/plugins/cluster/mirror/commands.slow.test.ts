import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { Inheritance } from '../../../../src/core/kernel/actors/adoption.ts';
import { recover } from '../../../../src/core/kernel/actors/recover.ts';
import { openReader } from '../../../../src/core/kernel/log/portable/open-reader.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { openHostLogs } from '../../../../src/plugins/cluster/host-logs.ts';
import { openHostLog } from '../../../../src/plugins/cluster/mirror/host-log.ts';
import { placeFence } from '../../../../src/plugins/cluster/mirror/inheritance.ts';
import type { NatsLink } from '../../../../src/plugins/cluster/nats/link.ts';
import { openBench } from '../../../support/actors.ts';
import { makeCertificate } from '../../../support/certificate.ts';
import { call, root, spawnHoldfast } from '../../../support/cli.ts';
import { openLink } from '../../../support/cluster.ts';
import { door } from '../../../support/door.ts';
import { doorsConfig } from '../../../support/doors-config.ts';
import { CLUSTER, MirroredHost, streamsOf } from '../../../support/mirrored-host.ts';
import { startNats } from '../../../support/nats.ts';
import { onTerminal } from '../../../support/on-terminal.ts';
import { tempDir } from '../../../support/temp.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const FRONT = 'test.door/front';

/** The attic opens a door, which the cellar takes over. @param change of what it takes over */
async function twoHosts(
  t: ExecutionContext,
  link: NatsLink,
  change: (left: Inheritance) => Inheritance = (left) => left,
): Promise<{ readonly attic: string; readonly cellar: string }> {
  const [attic, cellar] = [tempDir(t), tempDir(t)];
  const bench = await openBench(attic, [door]);
  bench.actors.deliver(FRONT, { type: 'OPEN', by: 'ann' });
  await bench.log.whenDurable(bench.log.lastSeq());
  await bench.close();
  const reader = new SqliteReader(attic);
  const seq = reader.lastSeq();
  const states = [...recover(reader).states.values()];
  const left = { host: 'attic', incarnation: '1', seq, hash: reader.hashOf(seq) ?? '', states };
  reader.close();
  const next = await openBench(cellar, [door], [], new VirtualClock(5_000), ['test.door']);
  await next.actors.takeUp(['test.door'], change(left));
  next.actors.deliver(FRONT, { type: 'KNOCK' });
  await next.log.whenDurable(next.log.lastSeq());
  await next.close();
  for (const [host, dataDir] of Object.entries({ attic, cellar })) {
    const mirrored = new MirroredHost(t, link, { host, dataDir });
    await mirrored.outbox.mirrored(mirrored.log.lastSeq());
    await mirrored.stop();
  }
  return { attic, cellar };
}

/** Calls commands that read the streams of a server. @param isPrivate the server's authority is one that the system does not know */
async function setUp(t: ExecutionContext, isPrivate = false) {
  const tls = isPrivate ? makeCertificate(tempDir(t)) : undefined;
  const nats = await startNats(t, tls && { tls });
  const link = await openLink(t, nats.url(), tls && { tls: { caFile: tls.certFile } });
  const cwd = tempDir(t);
  doorsConfig(cwd);
  const keyFile = join(tempDir(t), 'key');
  writeFileSync(keyFile, Buffer.alloc(32, 'the key of a cluster of tests'), { mode: 0o600 });
  const env = {
    HOLDFAST_NATS_URL: nats.url(),
    HOLDFAST_CLUSTER_KEY_FILE: keyFile,
    HOLDFAST_CLUSTER_NAME: CLUSTER,
    HOLDFAST_CLUSTER_HOST: 'attic',
    ...(tls && { HOLDFAST_NATS_CA_FILE: tls.certFile }),
  };
  const logFeatures = {
    words: new Map(),
    stoppedReports: new Map(),
    exportForms: new Map(),
    hostLogs: new Map([['cluster', async () => openHostLogs]]),
  };
  const holdfast = (argv: readonly string[], more: Partial<Parameters<typeof call>[1]> = {}) =>
    call(argv, { cwd, env, logFeatures, ...more });
  return { link, env, holdfast };
}

test('[C13] records that do not count stand in the story as such', async (t) => {
  const { link, holdfast } = await setUp(t);
  const attic = new MirroredHost(t, link, { host: 'attic' });
  await attic.mirror(2);
  const orphaned = { type: 'ORPHANED', at: 1, by: 'cellar', types: ['test.door'], from: 3, to: 4, count: 2 };
  await placeFence(streamsOf(link), 'attic', { singleton: 'doors', token: 'i:2', by: 'cellar' });
  await attic.mirror(2);
  await attic.mirror(1, { actor: 'cluster.singleton/doors', event: orphaned });
  await attic.stop();
  const list = await holdfast(['log', 'list', '--host', 'all', '--all']);
  t.regex(
    list.out,
    /attic +2 (?:.|\n)*── the next 2 records do not count: cellar had taken doors over from attic ──(?:.|\n)*attic +3 /,
  );
  const json = await holdfast(['log', 'list', '--host', 'all', '--limit', '0', '--json']);
  t.deepEqual(
    (JSON.parse(json.out) as { seq: number; orphanedBy?: string }[]).map(({ seq, orphanedBy }) => [
      seq,
      orphanedBy,
    ]),
    [
      [1, undefined],
      [2, undefined],
      [3, 'cellar'],
      [4, 'cellar'],
      [5, undefined],
    ],
  );
});

test('[C13] the logs of all hosts are listed as one story, shown, exported, and replayed with what was taken over', async (t) => {
  const { link, holdfast } = await setUp(t);
  const { attic } = await twoHosts(t, link);

  const list = await holdfast(['log', 'list', '--host', 'all', '--all']);
  t.is(list.code, 0, list.err);
  const lines = list.out.split('\n').filter((line) => /^\d\d:/.test(line));
  t.deepEqual(
    lines.map((line) => line.split(/\s+/).slice(1, 3).join(' ')),
    ['attic 1', 'attic 2', 'attic 3', 'cellar 1', 'cellar 2'],
  );
  const whole = await holdfast(['log', 'list', '--host', 'all', '--limit', '0', '--json']);
  t.deepEqual(
    (JSON.parse(whole.out) as { host: string; seq: number }[]).map(({ host, seq }) => `${host} ${seq}`),
    ['attic 1', 'attic 2', 'attic 3', 'cellar 1', 'cellar 2'],
  );
  t.notRegex(list.err, /left out/);
  const few = await holdfast(['log', 'list', '--host', 'all', '--all', '--limit', '4']);
  t.regex(few.err, /older records are left out/);
  // Only one of them has more than are shown.
  const [{ correlation = '' } = {}] = JSON.parse(whole.out) as { correlation?: string }[];
  const ofOne = ['log', 'list', '--host', 'all', '--all', '--correlation', correlation];
  t.regex((await holdfast([...ofOne, '--limit', '2'])).err, /older records are left out/);
  t.notRegex((await holdfast([...ofOne, '--limit', '3'])).err, /left out/);
  const none = await holdfast(['log', 'list', '--host', 'all', '--correlation', 'nobody-s']);
  t.regex(none.err, /no record of attic, cellar matches/);
  const one = await holdfast(['log', 'list', '--host', 'attic', '--all', '--json']);
  t.is((JSON.parse(one.out) as unknown[]).length, 3);
  const show = await holdfast(['log', 'show', '1', '--host', 'cellar', '--json']);
  t.like(JSON.parse(show.out).record, { event: { type: 'adopt' }, origin: { host: 'attic', seq: 3 } });

  const folder = tempDir(t);
  const exported = await holdfast(['log', 'export', '--host', 'all', '--out', folder]);
  t.is(exported.code, 0, exported.err);
  t.deepEqual(readdirSync(folder), ['attic.jsonl.gz', 'cellar.jsonl.gz']);
  const [read, local] = [await openReader(join(folder, 'attic.jsonl.gz')), new SqliteReader(attic)];
  t.deepEqual([...read.pages()].flat(), [...local.pages()].flat());
  read.close();
  local.close();

  const verified = await holdfast(['replay', 'verify', '--host', 'all', '--json', '--strict']);
  t.is(verified.code, 0, verified.out + verified.err);
  t.like(JSON.parse(verified.out), { ok: true, adoptions: { adoptions: 1, wrong: [], unknown: 0 } });
  const alone = await holdfast(['replay', 'verify', '--host', 'cellar']);
  t.regex(alone.out, /1 could not be compared/);

  const chain = await holdfast(['log', 'verify', '--host', 'all']);
  t.is(chain.code, 0, chain.err);
  t.regex(chain.out, /attic: 3 records, 1 to 3, /);

  for (const argv of [
    ['log', 'show', '1', '--host', 'all'],
    ['log', 'list', 'some.jsonl', '--host', 'all'],
    ['log', 'export', '--host', 'all'],
  ])
    t.regex((await holdfast(argv)).err, /HF_CLI_USAGE/);
  t.regex((await holdfast(['log', 'list', '--host', 'roof'])).err, /HF_CLUSTER_NO_LOG/);
  t.regex((await holdfast(['log', 'list', '--host', 'all'], { env: {} })).err, /HF_CLUSTER_UNSET/);
});

test('[C13,C7,C8] the past of another host is looked at, explained and changed as that of its exported log is', async (t) => {
  const { link, holdfast } = await setUp(t);
  await twoHosts(t, link);
  const file = join(tempDir(t), 'attic.jsonl');
  await holdfast(['log', 'export', '--host', 'attic', '--out', file]);
  for (const argv of [
    ['replay', 'at', '2'],
    ['replay', 'at', '2', '--json'],
    ['replay', 'diff', '1', '2'],
    ['replay', 'explain', '2'],
    ['replay', 'what-if', '--drop', '2', '--json'],
  ]) {
    const [there, here] = [await holdfast([...argv, '--host', 'attic']), await holdfast([...argv, file])];
    t.is(there.code, 0, there.err);
    t.is(there.out, here.out, argv.join(' '));
  }
  for (const argv of [
    ['log', 'show', '1'],
    ['replay', 'explain', '2'],
    ['replay', 'what-if', '--drop', '2'],
  ])
    t.regex(
      (await holdfast([...argv, '--host', 'all'])).err,
      /^HF_CLI_USAGE\n.*name one host/,
      argv.join(' '),
    );
  t.regex(
    (await holdfast(['replay', 'at', '2', file, '--host', 'attic'])).err,
    /^HF_CLI_USAGE\n.*name no other log/,
  );
});

test('[C13,C7] all hosts are looked at as of one time, however their clocks are set', async (t) => {
  const { link, holdfast } = await setUp(t);
  await twoHosts(t, link);
  // Both clocks stand years before the servers', and not at the same time.
  const endOf = async (host: string) => {
    const { reader, clockBehindMs } = await openHostLog(streamsOf(link), host);
    const { at } = reader.record(reader.lastSeq());
    reader.close();
    return new Date(at + clockBehindMs).toISOString();
  };
  const [atticEnds, cellarEnds] = [await endOf('attic'), await endOf('cellar')];
  const first = await holdfast(['replay', 'at', atticEnds, '--host', 'all', '--json']);
  t.is(first.code, 0, first.err);
  t.regex(first.err, /cellar: its log begins later/);
  const seen = ({ out }: { readonly out: string }) =>
    (JSON.parse(out) as { hosts: { host: string; seq: number; actors: { ref: string }[] }[] }).hosts.map(
      ({ host, seq, actors }) => [host, seq, ...actors.map(({ ref }) => ref)],
    );
  t.deepEqual(seen(first), [['attic', 3, FRONT]]);
  const both = await holdfast(['replay', 'at', cellarEnds, '--host', 'all', '--json']);
  t.deepEqual(seen(both), [
    ['attic', 3, FRONT],
    ['cellar', 2, FRONT],
  ]);
  const text = await holdfast(['replay', 'at', '0s', '--host', 'all']);
  t.regex(text.out, /^attic\nAfter record 3, [\s\S]*\n\ncellar\nAfter record 2, /);
  const change = await holdfast(['replay', 'diff', cellarEnds, '0s', '--host', 'all', '--json']);
  t.like(JSON.parse(change.out), {
    hosts: [
      { host: 'attic', from: 3, to: 3 },
      { host: 'cellar', from: 2, to: 2 },
    ],
  });
  for (const argv of [
    ['replay', 'at', '2'],
    ['replay', 'diff', '1', '2'],
  ])
    t.regex((await holdfast([...argv, '--host', 'all'])).err, /^HF_CLI_USAGE\n.*name a time, or one host/);
  t.regex((await holdfast(['replay', 'at', '2025-01-01', '--host', 'all'])).err, /HF_LOG_RANGE/);
});

test('[C13,C7] a machine that only variables set up steps through the log of another host, by a private authority', async (t) => {
  const { link, env } = await setUp(t, true);
  await twoHosts(t, link);
  const command = `'${process.execPath}' '${join(root, 'bin/holdfast.js')}' replay step --host cellar`;
  const terminal = onTerminal(t, command, {
    cwd: tempDir(t),
    env: { ...env, TERM: 'xterm' },
    size: { columns: 80, rows: 24 },
  });
  await terminal.see(/cellar[\s\S]*record 1 of 2/);
  terminal.type('j');
  await terminal.see(/record 2 of 2/);
  terminal.type('q');
  t.is(await terminal.ended, 0);
});

test('[C13] a command whose servers do not answer says so', async (t) => {
  const cwd = tempDir(t);
  writeFileSync(join(cwd, 'key'), Buffer.alloc(32), { mode: 0o600 });
  const env = {
    HOLDFAST_NATS_URL: 'nats://127.0.0.1:1',
    HOLDFAST_CLUSTER_KEY_FILE: join(cwd, 'key'),
  };
  const { code, err } = await spawnHoldfast(t, ['log', 'list', '--host', 'all'], { cwd, env }).ended;
  t.is(code, 1);
  t.regex(err, /^HF_CLUSTER_UNREACHABLE/);
});

test('[C13] a state that is not what the other host left is found by the replay of all hosts', async (t) => {
  const { link, holdfast } = await setUp(t);
  await twoHosts(t, link, (left) => ({
    ...left,
    states: left.states.map((state) => ({ ...state, context: { ...(state.context as object), by: 'eve' } })),
  }));
  const verified = await holdfast(['replay', 'verify', '--host', 'all']);
  t.is(verified.code, 1);
  t.regex(verified.out, /cellar record 1 \(test\.door\/front\): its context differ/);
});

test('[C13] a host that burned down goes on elsewhere from its log in NATS, on the next stream', async (t) => {
  const { link, holdfast } = await setUp(t);
  const { attic } = await twoHosts(t, link);
  const dataDir = join(tempDir(t), 'data');
  const end = new AbortController();
  const start = (more: Partial<Parameters<typeof call>[1]> = {}, ...flags: string[]) =>
    holdfast(['start', '--adopt', 'attic', '--data-dir', dataDir, ...flags], {
      interrupted: end.signal,
      onOut: (text) => /is ready/.test(text) && end.abort('SIGTERM'),
      ...more,
    });
  const who = { host: 'attic', run: 'of-attic', version: '1.0.0', protocol: 1 };
  const silence = link.subscribe(`hf.${CLUSTER}.is.attic`, (asked) => asked.respond(JSON.stringify(who)));
  const refused = await start();
  silence();
  t.regex(refused.err, /HF_ADOPT_RUNNING/);
  const started = await start();
  t.is(started.code, 0, started.err);
  t.regex(started.err, /Took over 3 records of attic, 1 to 3, chain ok/);
  const [adopted, lost] = [new SqliteReader(dataDir), new SqliteReader(attic)];
  t.is(adopted.hashOf(3), lost.hashOf(3));
  t.true(adopted.lastSeq() > 3);
  adopted.close();
  lost.close();
  t.regex((await start()).err, /HF_LOG_EXISTS/);
  const again = new MirroredHost(t, link, { host: 'attic', dataDir });
  await again.outbox.mirrored(again.log.lastSeq());
  const log = await openHostLog(streamsOf(link), 'attic');
  t.is(log.incarnation, 2);
  t.is(log.end.seq, again.log.lastSeq());
  log.reader.close();
});
