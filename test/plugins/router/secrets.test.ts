import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { countSecrets } from '../../../src/plugins/router/config/secrets.ts';
import { type Config, Rig, withCircle } from './rig.ts';

let canaries = 0;
const CANARY = /CANARY\w+/;

/** Puts a canary in place of every secret of a config (JSON pointers name them). */
function withCanaries(config: Config): Config {
  const copy = structuredClone(config);
  for (const path of countSecrets(config).paths) {
    const keys = path
      .split('/')
      .slice(1)
      .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
    const last = keys.pop()!;
    const parent = keys.reduce((value, key) => value[key], copy);
    canaries += 1;
    parent[last] = `CANARY${canaries}x${'q'.repeat(24)}`;
  }
  return copy;
}

test('[R32] secrets of posted configs reach no record, blob, store file, log line or page but /active', async (t) => {
  const lines: string[] = [];
  const rig = await Rig.start(t, { lines });
  const pages: string[] = [];
  const post = async (config: Config, control: Config = {}) => {
    const { body } = await rig.set(config, control);
    pages.push(JSON.stringify(body));
    return body;
  };

  const first = withCanaries(await rig.active());
  t.true(canaries >= 7);
  first.ncid = (await post(first)).ncid;
  const second = withCanaries(first);
  await post(second, { transactionOp: 'append', transID: 't1' });
  await post({}, { transactionOp: 'revert', transID: 't1' });
  await post(withCanaries(first), { ignoreNcid: true });
  await post(first);
  const broken = withCanaries(await rig.active());
  withCircle(broken);
  await post(broken);
  broken.interface.vlan['eth9.1'] = { intf: 'eth9', vid: 'CANARYvid' };
  await post(broken);
  await rig.call('POST', '/v1/config/set', `{"privateKey":"CANARYbroken`).then(({ body }) => {
    pages.push(JSON.stringify(body));
  });
  await rig.call('POST', '/v1/config/apply_current_config');
  t.true(CANARY.test(JSON.stringify(await rig.active())), 'the config itself is served whole');

  const names = Object.values(first.interface).flatMap((map: any) => Object.keys(map));
  for (const path of ['config/history', ...names.map((name) => `interface/${name}`)])
    pages.push(JSON.stringify((await rig.call('GET', `/v1/${path}`)).body));
  // What a router's main daemon reads has the config's entries whole, like the config itself; the log lines below do not.
  for (const path of ['interfaces', 'wans', 'lans', ...names.map((name) => `interfaces/${name}`)])
    t.is((await rig.call('GET', `/v1/config/${path}`)).status, 200);
  await rig.settled();

  for (const page of pages) t.notRegex(page, CANARY);
  for (const line of lines) t.notRegex(line, CANARY);
  t.true(lines.length > 5);
  t.notRegex(JSON.stringify(await rig.records()), CANARY);
  const files = () =>
    readdirSync(rig.dataDir, { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile() && !entry.name.startsWith('lock.db'))
      .map((entry) => join(entry.parentPath, entry.name));
  await rig.runtime.stop('test');
  t.true(files().length >= 2);
  for (const file of files()) t.notRegex(readFileSync(file, 'latin1'), CANARY, file);
});
