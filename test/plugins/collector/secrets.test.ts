import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test from 'ava';
import { rejectedByUi } from '../../../src/plugins/alerts/rules/ui-limits.ts';
import { collectorChecks, uiCheck } from '../../../src/plugins/collector/checks.ts';
import { collectorOptions } from '../../../src/plugins/collector/options.ts';
import type { SecretRow } from '../../../src/plugins/collector/secrets.ts';
import { isPlaceholder } from '../../../src/plugins/collector/secrets.ts';
import { tempDir } from '../../support/temp.ts';
import { effectiveYaml } from './effective.ts';
import { startRig } from './rig.ts';

const { signal } = new AbortController();

test('[O25] the nine keys are listed with purpose, place, age and consequence, and without a value', async (t) => {
  const dir = tempDir(t);
  const folder = join(dir, 'secrets', 'store', 'observability');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(join(folder, 'admin_password'), 'canary-admin', { mode: 0o600 });
  writeFileSync(join(folder, 'ui_oidc_client_secret'), 'placeholder', { mode: 0o600 });
  writeFileSync(join(folder, 'otel_ingest_token'), 'canary-legacy', { mode: 0o600 });
  writeFileSync(join(folder, 'ui_bootstrap_secret'), 'canary-open', { mode: 0o644 });
  const before = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
  const rig = await startRig(t, dir);
  const { code, out } = await rig.holdfast('stack', 'secrets', '--json');
  t.is(code, 1);
  const { secrets } = JSON.parse(out) as { secrets: SecretRow[] };
  t.deepEqual(
    secrets.map(({ name, state }) => `${name} ${state}`),
    [
      'admin_password present',
      'docdb_admin_password missing',
      'docdb_replicaset_keyfile missing',
      'ui_bootstrap_secret unreadable',
      'ui_oidc_client_secret placeholder',
      'otel_ingest_api_key present',
      'otel_ingest_token present',
      'master_key missing',
      'claude_code_api_key missing',
    ],
  );
  t.is(secrets[0]?.ageDays, 0);
  const said = (name: string) => secrets.find((row) => row.name === name);
  const follows: Record<string, RegExp> = {
    admin_password: /whoever logs in with it is refused until it has the new one/,
    docdb_admin_password: /the UI answers 5xx until it has the new one/,
    docdb_replicaset_keyfile: /members with different keys refuse one another: rotate all at once/,
    ui_bootstrap_secret: /signs everyone out of the UI once/,
    ui_oidc_client_secret: /nobody can log in to the UI until the identity provider has the same/,
    otel_ingest_api_key: /producers with the old key are refused.*cannot be planted beforehand/,
    otel_ingest_token: /never rotate, empty or delete/,
    master_key: /scripts that mint or revoke keys are refused until they have it; virtual keys go on/,
    claude_code_api_key: /the workstation is refused until its clients have the new one/,
  };
  t.deepEqual(
    secrets.map(({ name }) => name),
    Object.keys(follows),
  );
  const lines = await rig.holdfast('stack', 'secrets');
  for (const [name, words] of Object.entries(follows)) {
    t.regex(said(name)?.rotation ?? '', words);
    t.regex(lines.out, words, 'people read it too');
  }
  t.false(/canary/.test(out + lines.out + lines.err));
  t.false((out + lines.out).includes(await rig.keys.current()));
  t.deepEqual(
    readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8')),
    before,
  );
});

test('[O25] a placeholder is told from a secret', (t) => {
  for (const value of [
    'placeholder',
    'PLACEHOLDER-set-by-terraform',
    'changeme',
    'CHANGE_ME',
    '<secret>',
    'xxxx',
    'todo',
  ]) {
    t.true(isPlaceholder(value), value);
  }
  for (const value of ['9fK2-hq81-Zm', 'examples-are-fine-3f', 'nonesuch82'])
    t.false(isPlaceholder(value), value);
});

const checkOf = async (name: string, options: object, running?: object) => {
  const check = collectorChecks(collectorOptions.parse(options)).find((one) => one.name === name);
  return check?.run({ dataDir: '/', signal, ...(running && { running }) } as never);
};

test('[O8,O26] doctor says whether the config is effective, enforced, and what leaves in plaintext', async (t) => {
  const file = join(tempDir(t), 'effective.yaml');
  const tokens = ['0f8fad5b-d9cb-469f-a165-70867728950e'];
  const look = async (text: string) => {
    writeFileSync(file, text, { mode: 0o600 });
    return checkOf('stack.collector_config', { effectiveConfig: file });
  };
  t.like(await look(effectiveYaml({ tokens })), { state: 'ok' });
  t.like(await look('service: {pipelines: {traces: {exporters: [debug]}}}'), { state: 'fail' });
  t.like(await look(effectiveYaml({ tokens, isEnforced: false })), { state: 'fail' });
  const plain = { 'otlphttp/away': { endpoint: 'http://10.0.0.9:4318' } };
  const found = await look(effectiveYaml({ tokens, exporters: plain }));
  t.is(found?.state, 'warn');
  t.regex(found?.remedy ?? '', /OTLP gateway, port 443/);
  t.like(await checkOf('stack.collector_config', { effectiveConfig: `${file}.gone` }), { state: 'fail' });
  t.like(await checkOf('stack.collector_config', {}), { state: 'ok' });
});

test('[O27] doctor tells whether a probe has shown the pipeline wired', async (t) => {
  t.like(await checkOf('stack.collector_probe', {}, { facts: {} }), {
    state: 'warn',
    found: 'none was made',
  });
  const arrived = { probe: { end: 'arrived', at: 'now', arrivedMs: 5, isOld: false } };
  t.like(await checkOf('stack.collector_probe', {}, { facts: arrived }), { state: 'ok' });
  t.like(await checkOf('stack.collector_probe', {}, { facts: { probe: { end: 'lost' } } }), {
    state: 'fail',
  });
});

test('[O29] a UI that answers 5xx points at the document database and its three members', async (t) => {
  let status = 502;
  const ui = createServer((_request, response) => response.writeHead(status).end());
  await new Promise<void>((done) => ui.listen(0, '127.0.0.1', done));
  t.teardown(() => ui.close());
  const url = `http://127.0.0.1:${(ui.address() as AddressInfo).port}`;
  const sick = await uiCheck(url, signal);
  t.is(sick.state, 'fail');
  t.regex(`${sick.found} ${sick.remedy}`, /document database.*three members two must be up/);
  status = 302;
  t.is((await uiCheck(url, signal)).state, 'ok');
  t.is((await uiCheck('http://127.0.0.1:9', signal)).state, 'fail');
});

test('[O29] a raw-SQL alert on a sum is known to be rejected before it is upserted', (t) => {
  const alert = { name: 'NAS backup STALE', query: 'sql', source: 'sum' } as const;
  t.regex(rejectedByUi(alert) ?? '', /multi select or string select on metrics not supported/);
  t.is(rejectedByUi({ ...alert, query: 'builder' }), undefined);
  t.is(rejectedByUi({ ...alert, source: 'gauge' }), undefined);
});
