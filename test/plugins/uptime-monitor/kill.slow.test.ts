import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { readRuntimeFile } from '../../../src/core/host/runtime/runtime-file.ts';
import type { LogRecord } from '../../../src/core/kernel/log/record.ts';
import { SqliteReader } from '../../../src/core/kernel/log/sqlite-reader.ts';
import { call, root, spawnHoldfast, writeConfig } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';

test('[O16] kill -9 in each state: nobody is DOWN for it, no alert is lost, and none is raised twice', async (t) => {
  const cwd = tempDir(t);
  const dataDir = join(cwd, 'data');
  const monitors = ['waiting', 'up', 'late', 'down', 'paused'].map((name) => ({
    name,
    slug: 'all',
    interval: name === 'late' ? 1 : 3_600,
    retries: 1,
    retryInterval: 3_600,
  }));
  const config = writeConfig(
    cwd,
    `export default defineConfig({ plugins: [uptimeMonitor({ port: 0, monitors: ${JSON.stringify(monitors)} })] });`,
    [`import { uptimeMonitor } from '${root}src/plugins/uptime-monitor/index.ts';`],
  );
  const start = async () => {
    const { child, ended } = spawnHoldfast(t, ['start', '--data-dir', dataDir, '--config', config], { cwd });
    let url: string | undefined;
    while (url === undefined) {
      if (child.exitCode !== null) throw new Error((await ended).err);
      const file = readRuntimeFile(dataDir);
      if (file?.pid === child.pid) url = file?.surfaces.uptime?.url;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const states = async (): Promise<Record<string, string>> => {
      const { monitors: all } = (await (await fetch(`${url}/status/all.json`)).json()) as any;
      return Object.fromEntries(all.map(({ name, state }: any) => [name, state]));
    };
    const push = async (name: string, query = '') => {
      const token = readFileSync(join(dataDir, 'secrets/push', name), 'utf8').trim();
      t.is((await fetch(`${url}/api/push/${token}?${query}`)).status, 200, name);
    };
    const kill = async () => {
      child.kill('SIGKILL');
      t.is((await ended).signal, 'SIGKILL');
    };
    /** The pages and badges; a badge changes with time only if its monitor is down, and a page says when it was made. */
    const shown = async () => {
      const get = async (path: string) => (await fetch(`${url}${path}`)).text();
      const { heartbeatList } = JSON.parse(await get('/api/status-page/heartbeat/all'));
      const badges = await Promise.all(
        ['status', 'uptime', 'uptime/720', 'ping', 'response'].map((kind) => get(`/api/badge/up/${kind}`)),
      );
      const { monitors: all } = JSON.parse(await get('/status/all.json'));
      const changes = all.map(({ name, state, since, beats, lastBeat, changes: list }: any) =>
        name === 'late' ? name : { name, state, since, beats, lastBeat, list },
      );
      const page = (await get('/status/all')).match(/<h1>.*<\/h1>|<strong.*?<\/strong>/g);
      // `late` goes on by its own timer.
      return { heartbeats: [1, 2, 4, 5].map((id) => heartbeatList[id]), badges, changes, page };
    };
    return { states, push, kill, shown };
  };
  const wanted = { waiting: 'waiting', up: 'up', late: 'late', down: 'down', paused: 'paused' };

  const first = await start();
  for (const name of ['up', 'late', 'paused']) await first.push(name);
  for (const ping of [10, 20.5, 30]) await first.push('up', `msg=fine&ping=${ping}`);
  t.is((await call(['uptime', 'pause', 'paused', '--data-dir', dataDir], { cwd })).code, 0);
  while ((await first.states()).late !== 'late') await new Promise((resolve) => setTimeout(resolve, 20));
  const shown = await first.shown();
  await first.push('down', 'status=down&msg=broken'); // killed at the very answer
  await first.kill();

  const second = await start();
  while ((await second.states()).late !== 'late') await new Promise((resolve) => setTimeout(resolve, 20));
  t.deepEqual(await second.states(), wanted);
  const again = await second.shown();
  const withoutDown = ({ heartbeats, badges, changes }: typeof shown) => ({
    heartbeats: heartbeats.toSpliced(2, 1),
    badges,
    changes: changes.filter((monitor: any) => monitor.name !== 'down'),
  });
  t.deepEqual(withoutDown(again), withoutDown(shown), 'beats, uptime and pages are as before the kill');
  t.regex(again.badges[3]!, /aria-label="Avg\. Ping \(24h\): 20ms"/);
  t.is(again.heartbeats[1].length, 4, 'every beat of up');
  await second.push('down');
  await second.kill();

  const third = await start();
  while ((await third.states()).late !== 'late') await new Promise((resolve) => setTimeout(resolve, 20));
  t.deepEqual(await third.states(), { ...wanted, down: 'up' });
  const isDone = ({ event }: LogRecord) => event.type === 'effect.done' && event.effect === 'alerts.raise';
  let records: LogRecord[] = [];
  // What the kill interrupted is carried out after the start, which waits for nobody.
  while (records.filter(isDone).length < 2) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    const reader = new SqliteReader(dataDir);
    records = await Array.fromAsync(reader.read());
    reader.close();
  }
  await third.kill();

  const raised = records.flatMap(({ effects }) =>
    effects.flatMap(({ type, params }) =>
      type === 'alerts.raise' ? [`${(params as any).labels.monitor} ${(params as any).labels.state}`] : [],
    ),
  );
  t.deepEqual(raised, ['down firing', 'down resolved']);
  t.is(records.filter(isDone).length, 2, 'each was carried out to its end, after the kill if not before');
});
