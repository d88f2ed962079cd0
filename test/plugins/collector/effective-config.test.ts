import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import { readConfigFile, readEffectiveConfig } from '../../../src/plugins/collector/effective-config.ts';
import { runs } from '../../support/runs.ts';
import { tempDir } from '../../support/temp.ts';
import { effectiveYaml } from './effective.ts';

const key = randomUUID();
const codes = (text: string) => readEffectiveConfig(text).findings.map(({ code }) => code);

test('[O8] the ingest key is the first token of its shape', (t) => {
  const later = randomUUID();
  const tokens = ['abc', key.toUpperCase().replace(/\d/, 'A'), `${key}0`, key, later];
  const config = readEffectiveConfig(effectiveYaml({ tokens }));
  t.is(config.ingestKey, key);
  t.deepEqual(config.tokens, tokens);
  t.deepEqual(config.findings, []);
});

test('[O8] a config with only a debug exporter is the bootstrap, whatever else it says', (t) => {
  const bootstrap = `
receivers: {otlp/hyperdx: {protocols: {grpc: {endpoint: 0.0.0.0:4317}}}}
exporters: {debug: {verbosity: detailed}, clickhouse: {endpoint: unused}}
service: {pipelines: {traces: {receivers: [otlp/hyperdx], exporters: [debug]}}}`;
  t.deepEqual(codes(bootstrap), ['bootstrap_only']);
  t.deepEqual(codes(''), ['unreadable']);
  t.deepEqual(codes('{}'), ['bootstrap_only']);
});

test('[O8] a missing key and an authentication that nobody enforces are found', (t) => {
  t.deepEqual(codes(effectiveYaml({ tokens: [] })), ['no_token']);
  t.deepEqual(codes(effectiveYaml({ tokens: [`$\{env:KEY}`, 'static'] })), ['no_token']);
  const open = readEffectiveConfig(effectiveYaml({ tokens: [key], isEnforced: false }));
  t.deepEqual(
    open.findings.map(({ code }) => code),
    ['auth_not_enforced'],
  );
  t.regex(open.findings[0]?.text ?? '', /otlp\/hyperdx grpc, otlp\/hyperdx http/);
  const notRunning = effectiveYaml({ tokens: [key] }).replace(/ {4}- bearertokenauth\/hyperdx\n/, '');
  t.deepEqual(codes(notRunning), ['auth_not_enforced']);
});

test('[O26] plaintext that leaves the host is found, TLS and loopback are not', (t) => {
  const exporters = {
    'otlp/away': { endpoint: 'user:pass@edge.example:4317', tls: { insecure: true } },
    'otlphttp/away': { endpoint: 'http://10.0.0.7:4318' },
    'otlp/tls': { endpoint: 'gateway.example:443' },
    'otlphttp/tls': { endpoint: 'https://gateway.example' },
    'otlp/near': { endpoint: 'localhost:4317', tls: { insecure: true } },
    'otlphttp/near': { endpoint: 'http://[::1]:4318' },
  };
  const [finding, ...rest] = readEffectiveConfig(effectiveYaml({ tokens: [key], exporters })).findings;
  t.is(finding?.code, 'plaintext_off_host');
  t.is(
    finding?.text,
    'OTLP leaves the host in plaintext: otlp/away to edge.example:4317, otlphttp/away to 10.0.0.7:4318.',
  );
  t.deepEqual(rest, []);
});

test('[O8] aliases, endless nesting and other forms are findings that quote nothing', (t) => {
  const bomb = `a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\nextensions: {k: *c}\n`;
  const texts = [
    bomb,
    '['.repeat(50_000),
    `extensions: [${key}]`,
    `extensions:\n  "bearertokenauth/hyperdx: ${key}`,
    `service: {pipelines: {traces: {exporters: ${key}}}}`,
  ];
  for (const text of texts) {
    const { tokens, findings } = readEffectiveConfig(text);
    t.deepEqual(tokens, []);
    t.deepEqual(
      findings.map(({ code }) => code),
      ['unreadable'],
      text.slice(0, 60),
    );
    t.false(JSON.stringify(findings).includes(key));
  }
});

test('[O8] whatever the file holds, reading it ends with a finding or a config', (t) => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      const { tokens, findings } = readEffectiveConfig(text);
      return tokens.length > 0 || findings.length > 0;
    }),
    { numRuns: runs(500) },
  );
  t.pass();
});

test('[O8] a pipe in the place of the config is a finding, and is not waited for', (t) => {
  const pipe = join(tempDir(t), 'effective.yaml');
  execFileSync('mkfifo', [pipe]);
  t.regex(readConfigFile(pipe).findings[0]?.text ?? '', /not a regular file/);
});
