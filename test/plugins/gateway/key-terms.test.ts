import test, { type ExecutionContext } from 'ava';
import { given } from '../../../src/core/host/testing/index.ts';
import { virtualKey } from '../../../src/machines/gateway/key.ts';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { startUpstream } from '../../support/mcp-upstream.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { initialize, Rig } from './rig.ts';

const DAY = 86_400_000;

async function open(t: ExecutionContext, fields: object, clock?: VirtualClock) {
  const upstream = await startUpstream(t);
  const entry = (name: string) => credentialFree({ name, url: upstream.url, costs: { '*': 1 } });
  const rig = await Rig.start(t, { routes: [entry('docs'), entry('wiki')] }, undefined, clock);
  const made = await rig.admin('POST', '/key/generate', {
    key_alias: 'script',
    object_permission: { mcp_servers: ['docs', 'wiki'] },
    ...fields,
  });
  const key: string = made.body.key;
  const client = async (server: string) => {
    const connected = await rig.connect(t, server, key);
    return async (tool: string) => {
      const { content, isError } = await connected.callTool({
        name: `${server}-${tool}`,
        arguments: tool === 'echo' ? { text: 'ok' } : {},
      });
      return isError ? (content as { text: string }[])[0]?.text : 'ok';
    };
  };
  return { rig, made, key, client };
}

test('[G14,G16] a budget with a duration begins anew when it is over, and not before', async (t) => {
  const clock = new VirtualClock();
  const { rig, made, client } = await open(t, { max_budget: 2, budget_duration: '30d' }, clock);
  t.is(made.body.budget_duration, `${30 * 86_400}s`);
  const docs = await client('docs');
  t.deepEqual([await docs('echo'), await docs('echo')], ['ok', 'ok']);
  t.regex((await docs('echo')) ?? '', /Budget of this key exceeded/);
  await clock.advance(29 * DAY);
  t.regex((await docs('echo')) ?? '', /Budget of this key exceeded/);
  await clock.advance(DAY);
  const [budget] = (await rig.admin('GET', '/budget/list')).body.budgets;
  t.like(budget, { spend: 0, remaining: 2 });
  t.is(await docs('echo'), 'ok');
  t.is((await rig.admin('GET', '/budget/list')).body.budgets[0].spend, 1);
});

test('[G14,G16] a key has limits of single servers and tools beside its own', async (t) => {
  const clock = new VirtualClock();
  const limits = { docs: 2, 'wiki-echo': 1 };
  const { rig, made, client } = await open(t, { mcp_rpm_limits: limits }, clock);
  t.deepEqual(made.body.mcp_rpm_limits, limits);
  const [docs, wiki] = [await client('docs'), await client('wiki')];
  t.deepEqual([await docs('echo'), await docs('echo')], ['ok', 'ok']);
  t.regex((await docs('echo')) ?? '', /Rate limit of this key exceeded/);
  t.is(await wiki('echo'), 'ok');
  t.regex((await wiki('echo')) ?? '', /Rate limit of this key exceeded/);
  t.is(await wiki('fail'), 'it went wrong', 'another tool of that server has no limit');
  await clock.advance(60_000);
  t.deepEqual([await docs('echo'), await wiki('echo')], ['ok', 'ok']);
  const bad = { key: made.body.key_id, mcp_rpm_limits: { nowhere: 1 } };
  t.is((await rig.admin('POST', '/key/update', bad)).status, 400);
});

test('[G14] a key is blocked and unblocked, and what it has open ends', async (t) => {
  const { rig, key, client, made } = await open(t, {});
  const docs = await client('docs');
  t.is(await docs('echo'), 'ok');
  t.like((await rig.admin('POST', '/key/block', { key })).body, { blocked: true });
  await t.throwsAsync(docs('echo'), { message: /it is blocked for now/ });
  const [listed] = (await rig.admin('GET', '/key/list')).body.keys;
  t.is(listed.status, 'blocked');
  t.like((await rig.admin('POST', '/key/unblock', { key: made.body.key_id })).body, { blocked: false });
  t.is(await (await client('docs'))('echo'), 'ok');
});

test('[G14] scripts for other gateways run unchanged: metadata are kept, models are ignored with a warning, regenerate rotates', async (t) => {
  const metadata = { team: 'ops', tags: ['a'] };
  const { rig, made, key } = await open(t, { metadata, models: ['gpt'] });
  t.deepEqual(made.body.metadata, metadata);
  t.regex(made.body.warnings[0], /^models is ignored/);
  const again = await rig.admin('POST', '/key/regenerate', { key });
  t.is(again.status, 200);
  t.not(again.body.key, key);
  t.is((await rig.post('/docs/mcp', initialize, { 'x-gateway-api-key': `Bearer ${key}` })).status, 401);
  const secret = await rig.admin('POST', '/key/generate', { metadata: { note: 'sk-0123456789abcdef' } });
  const hidden = await rig.admin('POST', '/key/generate', { metadata: { note: 'key_sk-0123456789abcdef' } });
  t.is(hidden.status, 400);
  t.is(secret.status, 400);
  t.is((await rig.admin('POST', '/key/generate', { metadata: { note: 'x'.repeat(5_000) } })).status, 400);
});

test('[C2,G16] the renewal of a budget is decided by the machine, so that a replay decides the same', (t) => {
  t.plan(0);
  const terms = { alias: 'a', servers: ['docs'], maxBudget: 1, budgetMs: 1_000 };
  const call = (at: number) => ({
    type: 'CALL' as const,
    at,
    presented: 'v',
    routes: ['docs'],
    table: 1,
    method: 'tools/call',
    tool: 'docs-echo',
    cost: 1,
  });
  given(virtualKey, { events: [{ type: 'KEY_CREATED', at: 1, terms, presented: 'v' }, call(2)] })
    .when(call(999))
    .then({
      state: 'active',
      effects: [{ type: 'gateway.answer', params: { rule: 'over_budget', revision: 1, alias: 'a' } }],
      context: { spend: 1, refused: 1 },
    });
});
