import test from 'ava';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { call, writeConfig } from '../../support/cli.ts';
import { startUpstream } from '../../support/mcp-upstream.ts';
import { tempDir } from '../../support/temp.ts';
import { Rig } from './rig.ts';

const PLUGIN = new URL('../../../src/plugins/gateway/index.ts', import.meta.url).pathname;

test('[C8,G16] what-if with another scope, limit or budget of a key lists what would have been refused', async (t) => {
  const upstream = await startUpstream(t);
  const routes = ['columnar_ro', 'columnar_rw'].map((name) =>
    credentialFree({ name, url: upstream.url, costs: { '*': 0.5 }, writes: name === 'columnar_rw' }),
  );
  const rig = await Rig.start(t, { routes });
  const key = await rig.mint({ alias: 'reports', owner: 'ann', servers: ['columnar_ro', 'columnar_rw'] });
  const calls = async (server: string, count: number) => {
    const client = await rig.connect(t, server, key);
    for (let n = 0; n < count; n += 1) {
      t.falsy((await client.callTool({ name: `${server}-echo`, arguments: { text: 'hi' } })).isError);
    }
    await client.close();
  };
  await calls('columnar_ro', 2);
  await calls('columnar_rw', 1);
  await rig.runtime.stop('test');
  const cwd = tempDir(t);
  writeConfig(cwd, 'export default defineConfig({ plugins: [gateway()] });', [
    `import { gateway } from ${JSON.stringify(PLUGIN)};`,
  ]);
  const holdfast = (...argv: string[]) => call([...argv, '--data-dir', rig.dataDir], { cwd });
  t.is((await holdfast('replay', 'verify')).code, 0);
  const listed = (await holdfast('log', 'list', '--type', 'KEY_CREATED', '--json')).out;
  const [{ seq }] = JSON.parse(listed);

  /** Rules by which calls would have been refused that were not. */
  const refused = async (patch: object): Promise<string[]> => {
    const answer = await holdfast('replay', 'what-if', '--set', String(seq), JSON.stringify(patch), '--json');
    t.is(answer.code, 0, answer.err);
    const { differences } = JSON.parse(answer.out) as { differences: any[] };
    return differences
      .filter(({ event, got }) => event.type === 'CALL' && got?.effects?.[0]?.type === 'gateway.answer')
      .map(({ event, got }) => `${event.routes} ${event.method}: ${got.effects[0].params.rule}`);
  };
  const ofCalls = (rules: string[]) => rules.filter((rule) => rule.includes('tools/call'));
  t.deepEqual(ofCalls(await refused({ terms: { servers: ['columnar_ro'] } })), [
    'columnar_rw tools/call: not_entitled',
  ]);
  t.deepEqual(await refused({ terms: { rpmLimit: 1 } }), [
    'columnar_ro tools/call: rate_limited',
    'columnar_rw tools/call: rate_limited',
  ]);
  t.deepEqual(await refused({ terms: { maxBudget: 1 } }), ['columnar_rw tools/call: over_budget']);
  t.deepEqual(await refused({ terms: { tools: ['columnar_ro-echo'] } }), [
    'columnar_rw tools/call: tool_not_allowed',
  ]);

  const misspelt = ['replay', 'what-if', '--set', String(seq), '{"terms":{"rpmlimit":1,"alias":"x"}}'];
  const told = JSON.parse((await holdfast(...misspelt, '--json')).out) as { absent: object[] };
  t.deepEqual(told.absent, [{ seq, field: 'terms.rpmlimit' }]);
  t.regex((await holdfast(...misspelt)).out, /Record \d+ has no field terms\.rpmlimit: the patch adds it/);

  const shown = await holdfast(
    'replay',
    'what-if',
    '--set',
    String(seq),
    '{"terms":{"servers":["columnar_ro"]}}',
  );
  t.regex(
    shown.out,
    /- reports of ann: columnar_rw tools\/call columnar_rw-echo: admitted, charged 0\.5\n +\+ reports of ann: columnar_rw tools\/call columnar_rw-echo: refused, not_entitled/,
  );
  // The second call is refused, which the third and each outcome are counted by: one line, behind what is decided.
  const limited = ['replay', 'what-if', '--set', String(seq), '{"terms":{"rpmLimit":1}}'];
  const { differences, remembered } = JSON.parse((await holdfast(...limited, '--json')).out);
  t.deepEqual(
    differences.map(({ event }: { event: { type: string } }) => event.type),
    ['CALL', 'CALL'],
  );
  t.true(remembered.length > 2);
  const { out } = await holdfast(...limited);
  t.regex(out, /\d+ records were decided again; 2 decisions differ\. The first:/);
  t.is(
    out.match(/^ {2}record \d+/gm)?.length,
    2 + JSON.parse((await holdfast(...limited, '--json')).out).untrusted.length,
  );
  t.regex(out, /\nIn \d+ decisions only the context differs: calls, terms\.\n/);
  const none = (await holdfast('replay', 'what-if', '--set', String(seq), '{"terms":{"alias":"another"}}'))
    .out;
  t.regex(none, /decisions differ/, 'whose call it was stands in each decision');
  const same = (await holdfast('replay', 'what-if', '--set', String(seq), '{"terms":{"rpmLimit":99}}')).out;
  t.regex(
    same,
    /\n\d+ records were decided again, all with the same result\.\nIn 1 decision only the context differs: terms\.\n/,
  );
});
