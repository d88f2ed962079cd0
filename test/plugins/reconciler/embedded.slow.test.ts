import { setTimeout as delay } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { request } from 'undici';
import { router } from '../../../src/plugins/router/index.ts';
import { PATIENCE_MS } from '../../support/until.ts';
import { type Rig, rig, until } from './rig.ts';

/** Writers of a test write as fast as they can. */
const UNBOUNDED = { burst: 100_000, perSecond: 1_000 };
const LISTED = ['eth1.10', 'eth1.20', 'eth1.40', 'eth1.50', 'eth1.70'];
const addressOf = (intf: string) => `fd5e:21aa:90c4:${intf.slice('eth1.'.length)}::1/64`;

/** The embedded router, and an app that talks to it over HTTP. */
async function startRouter(t: ExecutionContext, routerOptions: Parameters<typeof router>[0] = {}) {
  const started: Rig = await rig(t, {}, router({ port: 0, writeBudget: UNBOUNDED, ...routerOptions }));
  const { url } = started.runtime.surfaces.router!;
  const active = async (): Promise<any> => (await request(`${url}/v1/config/active`)).body.json();
  const post = async (body: unknown): Promise<{ status: number; body: any }> => {
    const answer = await request(`${url}/v1/config/set`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return { status: answer.statusCode, body: await answer.body.json() };
  };
  /** The app posts its own model: what it does not know is gone. */
  const save = async (change: (config: any) => void) => {
    const config = await active();
    change(config);
    return post(config);
  };
  const legs = async () => (await active()).interface.vlan;
  const holds = async (intf: string) => {
    const end = performance.now() + PATIENCE_MS;
    while (!(await legs())[intf].ipv6?.includes(addressOf(intf))) {
      if (performance.now() > end) throw new Error(`${intf} did not get its address back`);
      await delay(2);
    }
  };
  await started.quiet();
  return { ...started, url, active, post, save, legs, holds };
}

test('[R26] a save without Main’s ipv6 is healed within seconds, and the kernel has the address', async (t) => {
  const { save, holds, quiet, url, divergence, health } = await startRouter(t);
  const began = performance.now();
  t.is((await save((config) => delete config.interface.vlan['eth1.10'].ipv6)).status, 200);
  await holds('eth1.10');
  t.log(`${Math.round(performance.now() - began)} ms from the app's post to the persisted field`);
  const state: any = await (await request(`${url}/v1/config/interfaces/eth1.10`)).body.json();
  t.true(JSON.stringify(state.state).includes('fd5e:21aa:90c4:10::1'), JSON.stringify(state.state));
  await quiet();
  t.like(health(), { whole: 5, of: 5 });
  t.is(divergence(), undefined);
});

test('[R26] the address survives a rename, the rename back and a reapply', async (t) => {
  const { save, holds, quiet, legs, url } = await startRouter(t);
  for (const name of ['Parlour', 'Main']) {
    // The app's model of the network has no ipv6: a rename posts the whole config without it.
    const answer = await save((config) => {
      config.interface.vlan['eth1.10'].meta.name = name;
      delete config.interface.vlan['eth1.10'].ipv6;
    });
    t.is(answer.status, 200);
    await holds('eth1.10');
    await quiet();
    t.is((await legs())['eth1.10'].meta.name, name);
  }
  await request(`${url}/v1/config/apply_current_config`, { method: 'POST' }).then(({ body }) => body.dump());
  await quiet();
  t.deepEqual((await legs())['eth1.10'].ipv6, [addressOf('eth1.10')]);
});

test('[R24] a save that drops every ipv6 is one post for all legs; Guest and Telework stay as the app left them', async (t) => {
  const { save, holds, quiet, legs, runtime } = await startRouter(t);
  await save((config) => {
    for (const leg of Object.values<any>(config.interface.vlan)) delete leg.ipv6;
  });
  const guests = await legs().then((all) => [all['eth1.30'], all['eth1.60']]);
  for (const intf of LISTED) await holds(intf);
  await quiet();
  const all = await legs();
  for (const intf of LISTED) t.deepEqual(all[intf].ipv6, [addressOf(intf)]);
  t.deepEqual([all['eth1.30'], all['eth1.60']], guests);
  const config = await Array.fromAsync(runtime.services.log.read({ actor: 'router.config/default' }));
  const ours = config.filter(({ event }) => event.type === 'SET' && event.who === 'holdfast');
  t.log(`${ours.length} posts`);
  t.true(ours.length <= 2, 'one, or two when a commit came between the legs');
});

test('[R24] the save, the heal and everything between bear one correlation', async (t) => {
  const { save, holds, quiet, runtime } = await startRouter(t);
  await save((config) => delete config.interface.vlan['eth1.20'].ipv6);
  await holds('eth1.20');
  await quiet();
  const { log } = runtime.services;
  await log.whenDurable(log.lastSeq());
  const configRecords = await Array.fromAsync(log.read({ actor: 'router.config/default' }));
  const saved = configRecords.find(({ event }) => event.type === 'SET' && event.who !== 'holdfast')!;
  const healed = configRecords.find(({ event }) => event.type === 'SET' && event.who === 'holdfast')!;
  t.is(healed.correlation, saved.correlation);
  const story = await Array.fromAsync(
    log.read({ correlation: saved.correlation, actor: 'reconciler.leg/eth1.20' }),
  );
  const types = story.map(({ event }) => event.type);
  for (const type of ['CHANGED', 'LEG_READ', 'ADDED']) t.true(types.includes(type), type);
  t.is(story[0]?.event.ncid, configRecords.find(({ event }) => event.type === 'APPLIED')?.event.ncid);
});

test('[R25] a pending transaction is waited for, and its end is found out', async (t) => {
  const { save, active, post, holds, quiet, leg } = await startRouter(t);
  const change = await active();
  delete change.interface.vlan['eth1.10'].ipv6;
  t.is((await post({ ...change, transactionOp: 'append', transID: 'app-1' })).status, 200);
  await until('Main waits', () => leg('eth1.10').state === 'waiting');
  t.is((await post({ transactionOp: 'commit', transID: 'app-1' })).status, 200);
  await holds('eth1.10');
  await quiet();
  t.is((await save(() => {})).status, 200);
});

test('[R25] four writers race for 50 saves each over HTTP: every save that was accepted stands, and the legs are whole', async (t) => {
  const { active, post, holds, quiet, legs, divergence, alerts, leg } = await startRouter(t);
  const guests = await legs().then((all) => [all['eth1.30'], all['eth1.60']]);
  let refused = 0;
  /** Saves fifty times; like the app it reads anew when somebody else was faster. */
  const writer = async (name: number) => {
    for (let round = 0; round < 50; ) {
      const config = await active();
      config.dns[`writer-${name}`] = { useNameserversFromWAN: true, nameservers: [`10.77.${name}.${round}`] };
      if (round % 4 === name) delete config.interface.vlan['eth1.10'].ipv6;
      if (round % 5 === name) delete config.interface.vlan['eth1.70'].ipv6;
      const { status, body } = await post(config);
      if (status === 200) round += 1;
      else if (body.errors.includes('ncid not match')) refused += 1;
      else t.fail(JSON.stringify(body));
      await delay((name + round) % 7);
    }
  };
  await Promise.all([0, 1, 2, 3].map(writer));
  await holds('eth1.10');
  await holds('eth1.70');
  await quiet();
  const config = await active();
  for (const name of [0, 1, 2, 3]) {
    t.deepEqual(config.dns[`writer-${name}`].nameservers, [`10.77.${name}.49`]);
  }
  const all = config.interface.vlan;
  for (const intf of LISTED) t.deepEqual(all[intf].ipv6, [addressOf(intf)]);
  t.deepEqual([all['eth1.30'], all['eth1.60']], guests);
  t.is(divergence(), undefined);
  t.log(
    `200 saves accepted, ${refused} lost their race; Main healed ${leg('eth1.10').context.healed} times, ` +
      `${leg('eth1.10').context.conflicts} conflicts, ${alerts.length} alerts`,
  );
});
