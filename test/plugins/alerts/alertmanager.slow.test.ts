import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { createRuntime } from '../../../src/core/host/runtime/runtime.ts';
import type { Notice } from '../../../src/machines/alerts/notice.ts';
import { formats } from '../../../src/plugins/alerts/payloads.ts';
import { uptimeMonitor } from '../../../src/plugins/uptime-monitor/index.ts';
import { tempDir } from '../../support/temp.ts';

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  return port;
}

/** Debian's Alertmanager, alone. @param webhook where it tells of its own alerts */
async function alertmanager(t: ExecutionContext, webhook: string): Promise<string> {
  const dir = tempDir(t);
  const file = join(dir, 'alertmanager.yml');
  const receivers = [{ name: 'holdfast', webhook_configs: [{ url: webhook }] }];
  const route = { receiver: 'holdfast', group_wait: '1ms', group_interval: '1s' };
  writeFileSync(file, JSON.stringify({ route, receivers })); // JSON is YAML
  const address = `127.0.0.1:${await freePort()}`;
  const child = spawn(
    'prometheus-alertmanager',
    [
      `--config.file=${file}`,
      `--storage.path=${join(dir, 'data')}`,
      `--web.listen-address=${address}`,
      '--cluster.listen-address=',
    ],
    { stdio: 'ignore' },
  );
  const ended = once(child, 'exit');
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const url = `http://${address}`;
  const isReady = async () => (await fetch(`${url}/-/ready`).catch(() => undefined))?.ok === true;
  while (child.exitCode === null && !(await isReady())) await pause();
  return url;
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 50));

test('[O17,O16] a real Alertmanager takes our alerts and their ends, and its own webhook is a beat of our monitor', async (t) => {
  const dataDir = tempDir(t);
  const entries = [uptimeMonitor({ port: 0, monitors: [{ name: 'alertmanager', interval: 60 }] })];
  const { plugins } = resolveConfig({ plugins: entries }, { env: {} });
  const runtime = createRuntime({ plugins, dataDir, logger: createLogger({ level: 'silent' }) });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  const token = readFileSync(join(dataDir, 'secrets/push/alertmanager'), 'utf8').trim();
  const url = await alertmanager(t, `${runtime.surfaces.uptime!.url}/api/push/${token}`);

  const since = Date.now() - 5_000;
  const notice: Notice = {
    state: 'firing',
    name: 'uptime-monitor.down',
    severity: 'critical',
    title: 'Watchdog is DOWN',
    text: 'Watchdog is DOWN: no beat for 10 min.',
    labels: { monitor: 'clickstack-watchdog', state: 'firing' },
    since,
  };
  const tell = async (more: Partial<Notice>) => {
    const items = [{ id: '1', at: Date.now(), notice: { ...notice, ...more } }];
    const { headers, body } = formats['alertmanager-api'](items, 'k1');
    const answer = await fetch(`${url}/api/v2/alerts`, { method: 'POST', headers, body });
    t.is(answer.status, 200, await answer.text());
  };
  const alerts = async (): Promise<any[]> => (await (await fetch(`${url}/api/v2/alerts`)).json()) as any[];

  await tell({});
  await tell({ state: 'reminder', labels: { ...notice.labels, reminder: '1' } });
  const [first, ...more] = await alerts();
  t.deepEqual(more, [], 'a reminder is the same alert');
  t.like(first, {
    labels: { alertname: 'uptime-monitor.down', monitor: 'clickstack-watchdog' },
    annotations: { summary: 'Watchdog is DOWN', severity: 'critical' },
    status: { state: 'active' },
  });
  t.true(Date.parse(first.endsAt) - Date.now() > 86_400_000, 'it is not forgotten after minutes');

  const monitor = () => runtime.services.actors.snapshot('uptime-monitor.monitor/alertmanager');
  while (monitor()?.value !== 'up') await pause();
  t.like(monitor()!.context, { lastMsg: 'OK' }, 'whatever its body says, it lives');

  await tell({ state: 'resolved', severity: 'info', labels: { ...notice.labels, state: 'resolved' } });
  while ((await alerts()).length > 0) await pause();
});
