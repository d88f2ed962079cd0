/** Writes of hosts that do the same work one after another: the router refuses those of an earlier one. */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { request } from 'undici';
import type { NetworkConfig, RouterApi } from '../../../../src/core/contracts/router.ts';
import { newCorrelation } from '../../../../src/core/kernel/clock.ts';
import { reconciler } from '../../../../src/plugins/reconciler/index.ts';
import { routerRemote } from '../../../../src/plugins/router/index.ts';
import { MemoryCluster, startHost } from '../../../support/two-hosts.ts';
import { until } from '../../../support/until.ts';
import { quick } from '../../reconciler/rig.ts';
import { Rig } from '../rig.ts';
import { Daemon } from './daemon.ts';
import { remote } from './rig.ts';

const HEADER = 'holdfast-fencing-token';
const LEG = { intf: 'eth1.10', label: 'Main', address: 'fd5e:21aa:90c4:10::1/64' };

/** A write as it went through. */
interface Passed {
  readonly token: string | undefined;
  readonly status: number;
  readonly code: string | undefined;
}

/** A way to a router on which writes can be held up. */
async function wayTo(t: ExecutionContext, url: string) {
  const passed: Passed[] = [];
  const held: (() => void)[] = [];
  const way = { url: '', isOpen: true, held, passed };
  const forward = async ({ method, url: path = '/', headers }: IncomingMessage, body: string) => {
    const isWrite = method === 'POST';
    if (isWrite && !way.isOpen) await new Promise<void>((resolve) => held.push(resolve));
    const token = headers[HEADER]?.toString();
    const kept = { 'content-type': 'application/json', ...(token !== undefined && { [HEADER]: token }) };
    const answer = await request(`${url}${path}`, {
      ...{ method: isWrite ? 'POST' : 'GET', headers: kept },
      ...(isWrite && { body }),
    });
    const answered = await answer.body.text();
    const { code } = JSON.parse(answered) as { code?: string };
    if (isWrite) passed.push({ token, status: answer.statusCode, code });
    return { status: answer.statusCode, answered };
  };
  const server = createServer((incoming, response) => {
    text(incoming)
      .then((body) => forward(incoming, body))
      .then(({ status, answered }) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(answered),
      )
      .catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  way.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return way;
}

/** Posts what the router serves at this moment, as somebody does who has read it just now. */
async function write(url: string, token?: string): Promise<Passed> {
  const config = await (await request(`${url}/v1/config/active`)).body.text();
  const headers = { 'content-type': 'application/json', ...(token !== undefined && { [HEADER]: token }) };
  const answer = await request(`${url}/v1/config/set`, { method: 'POST', headers, body: config });
  const { code } = (await answer.body.json()) as { code?: string };
  return { token, status: answer.statusCode, code };
}

test('[C13] a write of the host before reaches the router when the next one has written: it is refused, also after a restart', async (t) => {
  const router = await Rig.start(t);
  const cluster = new MemoryCluster();
  cluster.deals = false;
  const [wayOfA, wayOfB] = [await wayTo(t, router.url), await wayTo(t, router.url)];
  for (const [name, { url }] of [['a', wayOfA] as const, ['b', wayOfB] as const])
    await startHost(t, cluster, name, [
      routerRemote({ url }),
      reconciler({ ...quick, legs: [LEG], adopted: true }),
    ]);
  const config = await router.active();
  delete config.interface.vlan[LEG.intf].ipv6;
  t.is((await router.set(config)).status, 200);

  wayOfA.isOpen = false;
  await cluster.give('reconciler', 'a');
  await until('a writes', () => wayOfA.held.length > 0);
  await cluster.give('reconciler', 'b');
  await until('b has written', () => wayOfB.passed.length > 0);
  t.deepEqual(wayOfB.passed[0], { token: 'reconciler 1:2', status: 200, code: undefined });
  for (const goOn of wayOfA.held) goOn();
  await until('the write of a has come', () => wayOfA.passed.length > 0);
  t.deepEqual(wayOfA.passed[0], { token: 'reconciler 1:1', status: 409, code: 'HF_ROUTER_FENCED' });
  t.deepEqual((await router.active()).interface.vlan[LEG.intf].ipv6, [LEG.address]);

  t.like(await write(router.url, 'reconciler 1:1'), { status: 409, code: 'HF_ROUTER_FENCED' });
  await router.runtime.stop('restarted');
  const again = await Rig.start(t, { dataDir: router.dataDir });
  t.like(await write(again.url, 'reconciler 1:1'), { status: 409, code: 'HF_ROUTER_FENCED' });
  t.like(await write(again.url, 'reconciler 1:2'), { status: 200 });
  t.like(await write(again.url), { status: 200 });
  await again.settled();
  t.is(again.divergence(), undefined);
});

const under = (token: string, singleton = 'reconciler') => ({ fence: { singleton, token } });
const set = (api: RouterApi, config: NetworkConfig, token: string, singleton?: string) =>
  api.set(config, newCorrelation(), undefined, under(token, singleton));

test('[C13] the number decides, for each work by itself, and counts although the write that bore it was refused', async (t) => {
  const router = await Rig.start(t);
  const { api } = await remote(t, { url: router.url });
  const stale = await api.active();
  t.like(await set(api, stale, '100-x:105'), { kind: 'applied' });
  t.deepEqual(await set(api, stale, '100-x:107'), { kind: 'conflict' });
  t.like(await set(api, await api.active(), '100-x:106'), {
    kind: 'refused',
    errors: ['a later holder of reconciler has written here, so this write is refused'],
  });
  t.like(await api.reapply(newCorrelation(), undefined, under('100-x:106')), { kind: 'refused' });
  t.like(await api.reapply(newCorrelation(), undefined, under('100-x:107')), { kind: 'applied' });
  t.like(await set(api, await api.active(), '100-x:1', 'something-else'), { kind: 'applied' });
  // A ledger that was made anew begins with a later time.
  t.like(await set(api, await api.active(), '200-y:201'), { kind: 'applied' });
  t.like(await set(api, await api.active(), '100-x:107'), { kind: 'refused' });
  for (const wrong of ['reconciler', 'reconciler 1:', 'recon ciler 1:2', 'reconciler 1:-2'])
    t.like(await write(router.url, wrong), { status: 400, code: 'HF_ROUTER_REQUEST_INVALID' }, wrong);
  t.is(router.divergence(), undefined);
});

test('[C13] a host that lost its lease shares no answer of those who ask for the config to be applied at the same time', async (t) => {
  const router = await Rig.start(t);
  const { api } = await remote(t, { url: router.url });
  t.like(await set(api, await api.active(), '1:7'), { kind: 'applied' });
  const tokens = [undefined, '1:6', undefined, '1:7', '1:6', undefined];
  const answers = await Promise.all(
    tokens.map((token) =>
      api.reapply(newCorrelation(), undefined, token === undefined ? undefined : under(token)),
    ),
  );
  t.deepEqual(
    answers.map(({ kind }) => kind),
    tokens.map((token) => (token === '1:6' ? 'refused' : 'applied')),
  );
});

test('[C13] a daemon that knows no fencing token takes every write', async (t) => {
  const daemon = await Daemon.start(t);
  const { api } = await remote(t, { url: daemon.url });
  t.like(await set(api, await api.active(), '1:7'), { kind: 'applied' });
  t.like(await set(api, await api.active(), '1:5'), { kind: 'applied' });
});
