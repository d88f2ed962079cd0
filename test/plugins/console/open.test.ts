import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { HOST } from '../../../src/core/host/lifecycle/records.ts';
import { standaloneCommands } from '../../../src/main.ts';
import { call } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';
import { ConsoleRig } from './console-rig.ts';
import { open } from './opened.ts';

test('[C15] an exported log and a stopped folder open as the running instance showed them, and nothing is written', async (t) => {
  const dataDir = tempDir(t);
  const rig = await ConsoleRig.start(t, { dataDir });
  await rig.login();
  const last = await rig.durable();
  const paths = [
    `/api/records?at=${last}`,
    `/api/records/${last - 1}`,
    `/api/actors?at=${last}`,
    `/api/actors/console.access%2Fhost?at=${last}`,
    `/api/stories?at=${last}`,
    `/api/density?to=${last}`,
    `/api/compare?from=1&to=${last}`,
  ];
  const live = await Promise.all(paths.map((path) => rig.ask(path)));
  await rig.runtime.stop('SIGTERM');
  const file = join(tempDir(t), 'incident.jsonl.zst');
  const exported = await call(['log', 'export', '--out', file, '--data-dir', dataDir], { cwd: tempDir(t) });
  t.is(exported.code, 0, exported.err);
  const digest = () =>
    createHash('sha256')
      .update(readFileSync(join(dataDir, 'log.db')))
      .digest('hex');
  const before = digest();
  for (const [source, mode] of [
    [file, 'file'],
    [dataDir, 'folder'],
  ] as const) {
    const client = await open(t, source);
    t.like(await client.ask('/api/log'), { mode, instance: source, first: 1, state: 'stopped' });
    const shown = await Promise.all(paths.map((path) => client.ask(path)));
    t.deepEqual(shown, live, mode);
    const { pages } = await client.ask('/api/pages');
    t.true(
      pages.some(({ name }: any) => name === 'alerts'),
      'pages that are folds need no instance',
    );
    t.like(await client.ask(`/api/pages/alerts?at=${last}`), { at: last, title: 'Alerts' });
    t.is((await client.ask(`/api/overview?at=${last}`)).status, 'unknown');
    t.is((await client.send('/api/events')).body.error.code, 'HF_CONSOLE_NOT_LIVE');
    const acted = await client.send('/api/actions/knock', { method: 'POST', body: {} });
    t.is(acted.body.error.code, 'HF_CONSOLE_NOT_LIVE');
    t.is((await client.send('/')).status, 200);
    client.cookie = '';
    t.is((await client.send('/api/log')).status, 401);
  }
  t.is(digest(), before);
});

test('[C15] an export of some actors alone opens, too: its gaps are no fault', async (t) => {
  const dataDir = tempDir(t);
  const rig = await ConsoleRig.start(t, { dataDir });
  await rig.login();
  await rig.send('/api/logout', { method: 'POST' });
  const { actors } = rig.runtime.services;
  actors.deliver(HOST, { type: 'CHECKPOINT', seq: 1, digest: 'x', count: 1 }); // of another actor
  await rig.login();
  await rig.durable();
  await rig.runtime.stop('SIGTERM');
  const file = join(tempDir(t), 'part.jsonl');
  const actor = 'console.access/host';
  const argv = ['log', 'export', '--actor', actor, '--out', file, '--data-dir', dataDir];
  const exported = await call(argv, { cwd: tempDir(t) });
  t.is(exported.code, 0, exported.err);
  const client = await open(t, file);
  const { records } = await client.ask('/api/records');
  t.is(records.length, 4, 'its begin, two logins and a logout');
  const [last, first] = [records[0].seq, records.at(-1).seq];
  t.true(last - first > 3, 'there is a gap');
  for (let seq = first; seq <= last; seq += 1) {
    const state = await client.ask(`/api/actors/${encodeURIComponent(actor)}?at=${seq}`);
    t.true(state.last.seq <= seq);
    t.is((await client.ask(`/api/actors?at=${seq}`)).actors.length, 1);
    const { buckets } = await client.ask(`/api/density?from=${seq}&buckets=3`);
    const counted = buckets.reduce((sum: number, one: any) => sum + one.records, 0);
    t.is(counted, records.filter((one: any) => one.seq >= seq).length);
  }
});

test('[C15] what is no log is named, and nothing is served', async (t) => {
  const dir = tempDir(t);
  const { code, err, out } = await call(['open', join(dir, 'none')], { cwd: dir, standaloneCommands });
  t.not(code, 0);
  t.regex(err, /HF_LOG_MISSING/);
  t.is(out, '');
});
