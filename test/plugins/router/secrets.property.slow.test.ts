import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import { countSecrets } from '../../../src/plugins/router/config/secrets.ts';
import { call } from '../../support/cli.ts';
import { type Config, Rig } from './rig.ts';

/** Names such as `constructor`, of which fast-check is fond: they and parts of them turn up in a file by chance. */
const names = Object.getOwnPropertyNames(Object.prototype);

/** Eight characters at least: shorter ones turn up by chance, too. */
const secret = fc
  .oneof(
    fc.stringMatching(/^[A-Za-z0-9!#$%&*+./=?@^_~-]{8,40}$/),
    fc.string({ minLength: 8, maxLength: 24, unit: 'grapheme' }).filter((text) => text.trim().length >= 8),
    fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString('base64')),
  )
  .filter((text) => !names.some((name) => name.includes(text.trim())));

const step = fc.record({
  op: fc.constantFrom('post', 'append', 'revert', 'commit', 'stale', 'broken', 'garbled', 'apply'),
  secrets: fc.array(secret, { minLength: 12, maxLength: 12 }),
});

/** Puts them where the config has its own. */
function withSecrets(config: Config, secrets: readonly string[]): Config {
  const copy = structuredClone(config);
  for (const [place, path] of countSecrets(config).paths.entries()) {
    const keys = path
      .split('/')
      .slice(1)
      .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
    const last = keys.pop() as string;
    const parent = keys.reduce((value, key) => value[key], copy);
    parent[last] = secrets[place % secrets.length];
  }
  return copy;
}

/** As it may be written down: as it is, in JSON, in a URL, as base64 or hex. */
function disguises(text: string): string[] {
  const bytes = Buffer.from(text);
  const all = [
    text,
    JSON.stringify(text).slice(1, -1),
    encodeURIComponent(text),
    bytes.toString('base64').replace(/=+$/, ''),
    bytes.toString('hex'),
  ];
  return [...new Set(all)];
}

test('[R32,C6] whatever secrets a config holds, no record, file, export, log line or error bears one', async (t) => {
  t.timeout(240_000);
  const lines: string[] = [];
  const rig = await Rig.start(t, { lines });
  const cwd = rig.dataDir;
  const original = await rig.active();
  const told: string[] = [];
  const used = new Set<string>();
  const say = async (body: Config | string, control: Config = {}) => {
    const answer =
      typeof body === 'string'
        ? await rig.call('POST', '/v1/config/set', body)
        : await rig.set(body, control);
    told.push(JSON.stringify(answer.body));
  };
  let transID = 't0';
  await fc.assert(
    fc.asyncProperty(step, async ({ op, secrets }) => {
      for (const one of secrets) used.add(one);
      const { ncid } = await rig.active();
      const config = { ...withSecrets(original, secrets), ncid };
      if (op === 'post') await say(config);
      if (op === 'append') {
        transID = `t${told.length}`;
        await say(config, { transactionOp: 'append', transID });
      }
      if (op === 'revert' || op === 'commit') await say({}, { transactionOp: op, transID });
      if (op === 'stale') await say({ ...config, ncid: 'stale' });
      if (op === 'broken') {
        config.interface.vlan['eth9.1'] = { intf: 'eth9', vid: secrets[0], note: secrets[1] };
        await say(config);
      }
      if (op === 'garbled') await say(JSON.stringify(config).slice(0, -1));
      if (op === 'apply')
        told.push(JSON.stringify((await rig.call('POST', '/v1/config/apply_current_config')).body));
      await rig.settled();
    }),
    { numRuns: 25 },
  );
  told.push(JSON.stringify((await rig.call('GET', '/v1/config/history')).body));

  for (const words of [
    ['log', 'list', '--all', '--limit', '0', '--json'],
    ['log', 'export', '--out', join(cwd, 'carried.jsonl')],
    ['replay', 'at', '1'],
    ['replay', 'verify'],
    ['log', 'prune', '--older-than', '0s', '--dry-run'],
    ['log', 'shred', 'fp_none'],
  ]) {
    const { out, err } = await call([...words, '--data-dir', rig.dataDir], { cwd });
    told.push(out, err);
  }
  await rig.runtime.stop('test');
  t.true(lines.length > 25 && told.length > 25 && used.size > 100);

  const files = readdirSync(rig.dataDir, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && !entry.name.startsWith('lock.'))
    .map((entry) => join(entry.parentPath, entry.name));
  t.true(files.some((file) => file.endsWith('carried.jsonl')));
  const places: [string, string][] = [
    ...files.map((file): [string, string] => [file, readFileSync(file, 'utf8')]),
    ['log lines', lines.join('\n')],
    ['answers and commands', told.join('\n')],
  ];
  for (const [name, text] of places) {
    const found = [...used].flatMap(disguises).filter((one) => text.includes(one));
    t.deepEqual(found, [], name);
  }
});
