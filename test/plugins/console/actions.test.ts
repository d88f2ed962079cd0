import test from 'ava';
import { request } from 'undici';
import { alerts } from '../../../src/plugins/alerts/index.ts';
import { gateway } from '../../../src/plugins/gateway/index.ts';
import { reconciler } from '../../../src/plugins/reconciler/index.ts';
import { router } from '../../../src/plugins/router/index.ts';
import { ConsoleRig } from './console-rig.ts';

test('[C15] the actions of the plugins reach the operations of their commands, and their pages show any moment', async (t) => {
  const rig = await ConsoleRig.start(t, {
    others: [router({ port: 0 }), reconciler(), alerts(), gateway({ port: 0, probeEveryMs: 0, routes: [] })],
  });
  const { actions } = await rig.ask('/api/actions');
  const act = (name: string, fields: object = {}) =>
    rig.send(`/api/actions/${name}`, { method: 'POST', body: { fields } });
  // What each is refused with here says that its operation took the body.
  const expected: Readonly<Record<string, readonly [fields: object, code: string | undefined]>> = {
    'router-commit': [{}, 'HF_ROUTER_TRANSACTION_NONE'],
    'router-revert': [{}, 'HF_ROUTER_TRANSACTION_NONE'],
    'reconciler-resync': [{}, undefined],
    'alert-acknowledge': [{ alert: 'none', for: '2h' }, 'HF_ALERTS_UNKNOWN'],
    'alert-silence': [{ pattern: 'none.*', for: '2h', note: 'a test' }, undefined],
    'gateway-approve': [{ id: 'none', why: 'a test' }, 'HF_GATEWAY_APPROVAL_UNKNOWN'],
    'gateway-deny': [{ id: 'none', why: 'a test' }, 'HF_GATEWAY_APPROVAL_UNKNOWN'],
    'gateway-rollback': [{ route: 'none' }, 'HF_GATEWAY_ROLLBACK'],
  };
  t.deepEqual(actions.map(({ name }: any) => name).sort(), Object.keys(expected).sort());
  for (const [name, [fields, code]] of Object.entries(expected)) {
    const { status, body } = await act(name, fields);
    t.is(body.error?.code, code, `${name} ${status} ${JSON.stringify(body)}`);
  }

  const { pages } = await rig.ask('/api/pages');
  t.deepEqual(pages.map(({ name }: any) => name).sort(), [
    'alerts',
    'gateway-calls',
    'gateway-keys',
    'legs',
    'router',
    'router-versions',
    'routes',
  ]);
  for (const { name, area } of actions)
    t.true(
      pages.some((page: any) => page.area === area),
      `${name} stands on a page of its area`,
    );
  await rig.durable();
  const shown = async (name: string) => (await rig.ask(`/api/pages/${name}`)).sections;
  t.like((await shown('alerts'))[2].rows[0], { cells: { pattern: 'none.*', by: 'ada', note: 'a test' } });
  t.true((await shown('legs'))[1].rows.length > 0);
  t.is((await shown('routes'))[0].facts[0].label, 'revision');
  const { sections } = await rig.ask('/api/pages/alerts?at=2');
  t.deepEqual(sections[2].rows, [], 'there was no silence at that time');
  const { items, status } = await rig.ask(`/api/overview?at=${await rig.durable()}`);
  t.true(
    items.some(({ kind, page }: any) => kind === 'page' && page === 'legs'),
    'pages sum up the past',
  );
  t.not(status, 'ok', 'of the past not everything is known');

  const { url = '' } = rig.runtime.surfaces.router ?? {};
  const active = async () => (await (await request(`${url}/v1/config/active`)).body.json()) as any;
  const set = async (body: object) =>
    (
      await request(`${url}/v1/config/set`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    ).statusCode;
  const config = await active();
  t.is(await set({ ...config, transactionOp: 'append', transID: 'change-1' }), 200);
  t.is((await act('router-revert')).status, 200);
  t.is((await act('router-commit')).body.error?.code, 'HF_ROUTER_TRANSACTION_NONE');
  t.is(await set({ ...(await active()), transactionOp: 'append', transID: 'change-2' }), 200);
  t.is((await act('router-commit')).status, 200);
  await rig.durable();
  const { records } = await rig.ask('/api/records?text=in%20the%20console&limit=20');
  t.true(records.some(({ actor }: any) => actor.startsWith('router.config/')));
});
