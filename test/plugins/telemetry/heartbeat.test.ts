import { writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { standaloneCommands } from '../../../src/main.ts';
import { documentedRules } from '../../../src/plugins/alerts/rules/documented.ts';
import { HEARTBEAT } from '../../../src/plugins/telemetry/heartbeat.ts';
import { call } from '../../support/cli.ts';
import type { Scope } from '../../support/scope.ts';
import { tempDir } from '../../support/temp.ts';
import { status, webhook } from '../../support/webhook.ts';

async function host(t: Scope) {
  const cwd = tempDir(t);
  const receiver = await webhook(t);
  const key = join(cwd, 'key');
  writeFileSync(key, 'key-canary-4711\n', { mode: 0o600 });
  const run = (...more: string[]) =>
    call(['heartbeat', '--endpoint', new URL(receiver.url).origin, '--token-file', key, ...more], {
      cwd,
      standaloneCommands,
    });
  return { cwd, receiver, run };
}

test('[R28] a heartbeat is one sample with host and sender as the rule looks for them, without instance and configuration', async (t) => {
  const { receiver, run } = await host(t);
  const before = Date.now();
  const { code, out } = await run();
  t.is(code, 0);
  t.regex(out, new RegExp(`^http://127\\.0\\.0\\.1:\\d+ has the heartbeat of ${hostname()}\\n$`));
  const [post] = receiver.received;
  t.is(receiver.received.length, 1);
  t.is(post?.headers.authorization, 'key-canary-4711');
  const [{ resource, scopeMetrics }] = receiver.json()[0].resourceMetrics;
  const named = Object.fromEntries(
    resource.attributes.map(({ key, value }: any) => [key, value.stringValue]),
  );
  const { explain } = documentedRules.find(({ name }) => name === 'router-ula-reconcile')!;
  t.like(named, { 'host.name': hostname(), ...explain!.sender });
  t.is(explain!.measure.metric, HEARTBEAT);
  const [{ name, gauge }] = scopeMetrics[0].metrics;
  t.is(name, HEARTBEAT);
  const at = Number(gauge.dataPoints[0].timeUnixNano) / 1e6;
  t.true(at >= before && at <= Date.now() + 1);
  t.is(gauge.dataPoints[0].asDouble, 1);
});

test('[R28] a heartbeat that is refused, rejected or not taken at all is none, after three tries', async (t) => {
  const { receiver, run } = await host(t);
  receiver.behave(status(401, 'no'));
  const refused = await run();
  t.is(refused.code, 1);
  t.regex(refused.err, /HF_TELEMETRY_HEARTBEAT[\s\S]*it answered 401/);
  t.is(receiver.received.length, 3);
  receiver.behave(status(200, '{"partialSuccess":{"rejectedDataPoints":"1","errorMessage":"too old"}}'));
  const rejected = await run();
  t.is(rejected.code, 1);
  t.regex(rejected.err, /it rejected the sample: too old/);
  const own = await run('--endpoint', 'own');
  t.is(own.code, 2);
  t.regex(own.err, /the process that a heartbeat must outlive/);
  const none = await run('--endpoint', 'ftp://x');
  t.is(none.code, 2);
  t.notRegex(refused.err + rejected.err + own.err + none.err, /canary/);
});
