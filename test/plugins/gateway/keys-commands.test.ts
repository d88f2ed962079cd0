import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { operatorName } from '../../../src/core/host/operations/control-client.ts';
import { credentialFree, relay } from '../../../src/plugins/gateway/index.ts';
import { call, writeConfig } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';
import { Rig } from './rig.ts';

const PLUGIN = new URL('../../../src/plugins/gateway/index.ts', import.meta.url).pathname;
const url = 'http://127.0.0.1:9/mcp/of/an/upstream/with/a/long/path';

async function setUp(t: ExecutionContext) {
  const cwd = tempDir(t);
  writeConfig(cwd, 'export default defineConfig({ plugins: [gateway()] });', [
    `import { gateway } from ${JSON.stringify(PLUGIN)};`,
  ]);
  const rig = await Rig.start(t, {
    routes: [relay({ name: 'memory', url }), credentialFree({ name: 'repo_wiki', url })],
  });
  const keys = (...argv: string[]) => call(['gateway', 'keys', ...argv, '--data-dir', rig.dataDir], { cwd });
  const file = (name: string, value: string) => {
    writeFileSync(join(cwd, name), `${value}\n`, { mode: 0o600 });
    return join(cwd, name);
  };
  return { rig, keys, file, cwd };
}

test('[G14] a minted key stands alone on standard output, once', async (t) => {
  const { rig, keys } = await setUp(t);
  const minted = await keys(
    'mint',
    '--alias',
    'laptop',
    '--user',
    'ann',
    '--server',
    'memory',
    '--server',
    'repo_wiki',
    '--tool',
    'memory-find',
    '--rpm-limit',
    '60',
    '--max-budget',
    '2.5',
    '--expires',
    '30d',
  );
  t.is(minted.code, 0, minted.err);
  const value = minted.out.trim();
  t.regex(minted.out, /^sk-[\w-]{43}\n$/);
  t.regex(
    minted.err,
    /k_[0-9a-f]{32} \(laptop\), for memory, repo_wiki\.\nThe value is shown only this once/,
  );
  t.is((await rig.rest('GET', '/key/info', { authorization: `Bearer ${value}` })).status, 200);

  const shown = [
    await keys('list'),
    await keys('info', 'laptop'),
    await keys('list', '--json'),
    await keys('info', 'laptop', '--json'),
  ];
  for (const { code, out, err } of shown) {
    t.is(code, 0, err);
    t.regex(out, /laptop/);
    t.false(out.includes(value));
  }
  t.like(JSON.parse(shown[3]?.out ?? ''), {
    key_alias: 'laptop',
    user_id: 'ann',
    rpm_limit: 60,
    max_budget: 2.5,
    status: 'active',
  });
  t.regex((await keys('list', '--user', 'nobody')).out, /no keys/);
  t.deepEqual(await rig.traces(value), []);
});

test('[G14] a key is updated, rotated and revoked by its alias, its id or a file with its value', async (t) => {
  const { rig, keys, file, cwd } = await setUp(t);
  const mine = file('mine', 'a-value-that-two-replicas-hold');
  const made = JSON.parse(
    (
      await keys(
        'mint',
        '--alias',
        'ci',
        '--server',
        'memory',
        '--rpm-limit',
        '5',
        '--key-file',
        mine,
        '--json',
      )
    ).out,
  );
  t.is(made.key, 'a-value-that-two-replicas-hold');
  t.regex(
    (await keys('update', 'ci', '--server', 'repo_wiki', '--clear', 'rpm-limit')).out,
    /\(ci\) was changed, revision 2/,
  );
  t.like(JSON.parse((await keys('info', made.key_id, '--json')).out), { rpm_limit: null, revision: 2 });
  const rotated = await keys('rotate', '--key-file', mine, '--overlap', '1h');
  t.regex(rotated.out, /^sk-[\w-]{43}\n$/);
  t.regex((await keys('info', 'ci')).out, /rotated +k_[0-9a-f]{32} good until/);
  t.regex(
    (await keys('revoke', '--key-file', file('next', rotated.out.trim()))).out,
    new RegExp(`revoked ${made.key_id}`),
  );
  t.regex((await keys('info', 'ci')).out, /state +revoked/);
  const again = await keys('revoke', 'ci');
  t.is(again.code, 1);
  t.regex(again.err, /HF_GATEWAY_KEY_REVOKED/);
  const { out } = await call(['log', 'list', '--data-dir', rig.dataDir], { cwd, columns: 200 });
  for (const told of [
    `made by ${operatorName()}: ci, for memory, 5 calls a minute`,
    `changed by ${operatorName()}: for repo_wiki, no limit any more`,
    `rotated by ${operatorName()}: the value before is good for 3600 s more`,
    `revoked by ${operatorName()}, its open calls included`,
  ]) {
    t.true(out.includes(told), told);
  }
});

test('[G19,G27] what a command line has wrong is told, and no value is ever an argument', async (t) => {
  const { rig, keys, file } = await setUp(t);
  await keys('mint', '--alias', 'twin');
  await keys('mint', '--alias', 'other');
  // Two of one name may be in a log from before names were kept apart.
  for (const alias of ['old', 'old']) await rig.mint({ alias });
  const open = file('open', 'readable-by-everybody-here');
  chmodSync(open, 0o644);
  const wrong: [string[], RegExp][] = [
    [['mint', '--server', 'repo-wiki'], /--server: repo-wiki: server names have no hyphen; write repo_wiki/],
    [
      ['mint', '--server', 'memory,repo_wiki'],
      /--server takes one name; give it several times: --server memory --server repo_wiki\./,
    ],
    [['mint', '--server', 'nowhere'], /--server: nowhere is no server here; there are memory, repo_wiki\./],
    [['update', 'twin', '--tool', 'none-x'], /--tool: none-x is no prefixed name of a tool/],
    [['mint', '--alias', ' '], /--alias: /],
    [['mint', '--max-streams', '0'], /--max-streams: /],
    [['rotate', 'twin', '--overlap', 'long'], /--overlap: a duration is a number/],
    [['mint', '--rpm-limit', 'many'], /--rpm-limit takes a number/],
    [['mint', '--expires', 'soon'], /--expires: /],
    [['mint', '--key-file', open], /HF_CONFIG_SECRET_MODE/],
    [['info', 'sk-abcdefghijklmnopqrstuvwxyz'], /does not belong in an argument/],
    [['info'], /Name one key/],
    [['info', 'nobody'], /No key is known by nobody/],
    [['info', 'old'], /More than one key has the alias old/],
    [['update', 'twin', '--clear', 'alias'], /--clear takes one of/],
  ];
  for (const [argv, text] of wrong) {
    const { code, out, err } = await keys(...argv);
    t.is(code, 2, argv.join(' '));
    t.is(out, '');
    t.regex(err, text);
    t.false(err.includes('sk-abc'));
    t.notRegex(err, /mcp_servers|mcp_tools|key_alias|max_streams/);
  }
  for (const argv of [
    ['mint', '--alias', 'twin'],
    ['update', 'other', '--alias', 'twin'],
  ]) {
    const { code, err } = await keys(...argv);
    t.is(code, 1);
    t.regex(err, /alias twin is taken by the key k_[0-9a-f]{32}[\s\S]*keys revoke k_/);
  }
  for (const verb of ['mint', 'list', 'info', 'update', 'revoke', 'rotate']) {
    t.regex((await keys(verb, '--help')).out, new RegExp(`holdfast gateway keys ${verb}`));
  }
  await rig.runtime.stop('test');
  const { code, err } = await keys('list');
  t.is(code, 1);
  t.regex(err, /HF_CONTROL_UNREACHABLE/);
});

test('[G14] the lists of routes and keys fit a terminal of 80 characters, and are a line each where a program reads', async (t) => {
  const { rig, keys, cwd } = await setUp(t);
  await keys('mint', '--alias', 'a-laptop-with-a-name', '--user', 'ann@example.net', '--server', 'memory');
  const ask = (argv: string[], interactive: boolean) =>
    call([...argv, '--data-dir', rig.dataDir], { cwd, columns: 80, interactive });
  for (const argv of [
    ['gateway', 'routes'],
    ['gateway', 'keys', 'list'],
  ]) {
    const { out: shown } = await ask(argv, true);
    for (const line of shown.split('\n')) t.true(line.length <= 80, line);
    t.regex(shown, /memory/);
    t.regex(shown, /\n {4}\S/, 'what does not fit stands below');
    const { out: read } = await ask(argv, false);
    t.notRegex(read, /\n {4}\S/);
    t.true(read.split('\n').some((line) => line.length > 80));
    t.deepEqual(
      JSON.parse((await ask([...argv, '--json'], true)).out),
      JSON.parse((await ask([...argv, '--json'], false)).out),
    );
  }
});
