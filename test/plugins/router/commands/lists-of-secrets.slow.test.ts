import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { call, writeConfig } from '../../../support/cli.ts';
import { runs } from '../../../support/runs.ts';
import { tempDir } from '../../../support/temp.ts';
import { exampleConfig } from '../rig.ts';
import { setUpDesk } from './setup.ts';

const PLUGIN = new URL('../../../../src/plugins/router/index.ts', import.meta.url).pathname;

/** One in every place and shape that the fields of a config take. */
function withLists(config: any): any {
  config.hostapd.wlan1.params.psks = ['CANARY-psks-0', 'CANARY-psks-1'];
  config.hostapd.wlan1.keys = ['CANARY-keys-0'];
  config.apc.globalSysConfig.passwords = ['CANARY-passwords-0', { of: ['CANARY-nested-0'], on: true }];
  config.interface.vlan['eth1.20'].presharedKeys = [['CANARY-deep-0'], 12_345_678];
  config.interface.vlan['eth1.20'].wepKey1s = ['CANARY-wep-0'];
  config.keys = [{ note: 'CANARY-object-0' }];
  return config;
}
const PLACES = 9;

test.serial('[R32] lists under the name of a secret are masked by router get and router diff', async (t) => {
  const { rig, holdfast, cwd } = await setUpDesk(t);
  const { status, body } = await rig.set(withLists(await rig.active()));
  t.is(status, 200, JSON.stringify(body));
  for (const argv of [
    ['router', 'get'],
    ['router', 'get', '--json'],
    ['router', 'diff', 'seed', 'active'],
    ['router', 'diff', 'seed', 'active', '--json'],
    ['router', 'secrets'],
  ]) {
    const { code, out, err } = await holdfast(argv);
    t.is(code, 0, err);
    t.notRegex(out + err, /CANARY|12345678/, argv.join(' '));
  }
  const before = 7;
  t.is(JSON.parse((await holdfast(['router', 'secrets', '--json'])).out).count, before + PLACES);
  const file = join(cwd, 'copy.json');
  t.is((await holdfast(['router', 'get', '--out', file])).code, 0);
  t.notRegex(readFileSync(file, 'utf8'), /CANARY|12345678/);
  t.regex((await holdfast(['router', 'apply', file, '--yes'])).out, /Nothing would change/);
});

/** A router that serves whatever config it is given. */
async function routerOf(t: ExecutionContext, config: () => unknown): Promise<string> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(config()));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const name = fc.constantFrom(
  ...['psks', 'psk', 'keys', 'passwords', 'apc', 'wpaSupplicant', 'hostapd', 'name', 'ssid', 'key', 'note'],
);
const text = fc.constantFrom('', 'plain', '{{secret /x}}', 'psk=abcdefgh', '{"psk": "abcdefgh"}', 'a b');
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null)),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(name, tie('value'), { maxKeys: 4 }),
  ),
}));

test('[R32,R35] the count that get --out prints is the number of placeholders in the file', async (t) => {
  let served: unknown;
  const url = await routerOf(t, () => served);
  const cwd = tempDir(t);
  writeConfig(cwd, 'export default defineConfig({ plugins: [router()] });', [
    `import { router } from ${JSON.stringify(PLUGIN)};`,
  ]);
  const written = async (config: unknown, file: string) => {
    served = config;
    const argv = ['router', 'get', '--out', file, '--json', '--url', url, '--data-dir', cwd];
    const { code, out, err } = await call(argv, { cwd });
    t.is(code, 0, err);
    const placeholders = readFileSync(file, 'utf8').match(/"\{\{secret \//g) ?? [];
    t.is(JSON.parse(out).secrets, placeholders.length);
    return placeholders.length;
  };
  let files = 0;
  await fc.assert(
    fc.asyncProperty(fc.dictionary(name, value as fc.Arbitrary<unknown>), async (config) => {
      files += 1;
      await written(config, join(cwd, `copy-${files}.json`));
    }),
    { numRuns: runs(40) },
  );
  t.is(
    await written(withLists(exampleConfig()), join(cwd, 'example.json')),
    7 + PLACES + 2,
    'ssid and key_mgmt are held back too',
  );
});
