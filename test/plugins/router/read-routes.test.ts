import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { request } from 'undici';
import { namespace } from '../../support/netns.ts';
import { tempDir } from '../../support/temp.ts';
import { testInNamespace } from '../../support/test-in-namespace.ts';
import { exampleConfig, Rig } from './rig.ts';

/** The fields of a state, as a real daemon answers them. */
const FIELDS = [
  ...['mac', 'mtu', 'carrier', 'duplex', 'speed', 'operstate', 'txBytes', 'rxBytes', 'ip4', 'ip4s'],
  ...['routableSubnets', 'ip6', 'gateway', 'gateway6', 'dns', 'origDns', 'dns6', 'origDns6', 'pds', 'rtid'],
  ...['wanConnState', 'wanTestResult', 'present', 'subIntfs'],
];
const UP = { ready: true, pendingTest: false, active: true, inUse: true };
const read = async (rig: Rig, path: string) => (await rig.call('GET', `/v1/config/${path}`)).body;

test.serial('[R12] an interface has the 24 fields of a daemon: a LAN, a WAN, one that is off', async (t) => {
  const rig = await Rig.start(t);
  const config = await rig.active();
  config.interface.vlan['eth1.30'].enabled = false;
  await rig.set(config);
  const { config: entry, state } = await read(rig, 'interfaces/eth1.10');
  t.deepEqual(entry, config.interface.vlan['eth1.10']);
  t.deepEqual(Object.keys(state), FIELDS);
  t.regex(state.mac, /^02(:[0-9a-f]{2}){5}$/);
  t.like(state, {
    ...{ mtu: '1500', carrier: '1', operstate: 'up', txBytes: '0', rxBytes: '0' },
    ...{ ip4: '10.77.10.1/24', ip4s: { 0: '10.77.10.1/24', length: 1 }, gateway: null, gateway6: null },
    ...{ rtid: null, pds: null, wanConnState: null, wanTestResult: null, present: true },
    ...{ dns: { length: 0 }, subIntfs: { 0: 'eth1', length: 1 } },
  });
  t.true(state.ip6.includes('fd5e:21aa:90c4:10::1/64'));
  t.true(state.ip6.some((address: string) => address.startsWith('fe80:')));

  const wan = (await read(rig, 'interfaces/eth0')).state;
  t.deepEqual(Object.keys(wan), FIELDS);
  t.like(wan, { rtid: 254, wanConnState: UP, wanTestResult: {}, gateway: '192.0.2.1', subIntfs: null });

  const off = (await read(rig, 'interfaces/eth1.30')).state;
  t.like(off, { ip4: null, ip4s: null, ip6: null, carrier: null, operstate: 'down', present: true });
});

test.serial('[R12] wans, lans and interfaces are maps by name; the hardware is a list', async (t) => {
  const rig = await Rig.start(t);
  const { interface: maps } = exampleConfig();
  const all = await read(rig, 'interfaces');
  t.deepEqual(
    Object.keys(all).toSorted(),
    Object.values(maps)
      .flatMap((map: any) => Object.keys(map))
      .toSorted(),
  );
  for (const one of Object.values<any>(all)) t.deepEqual(Object.keys(one.state), FIELDS);
  t.deepEqual(await read(rig, 'interfaces/br0'), all.br0);
  const [wans, lans] = [await read(rig, 'wans'), await read(rig, 'lans')];
  const typed = (type: string) => Object.keys(all).filter((name) => all[name].config.meta?.type === type);
  t.deepEqual(Object.keys(wans), typed('wan'));
  t.deepEqual(wans.eth0, all.eth0);
  t.true('eth1.10' in lans && !('eth0' in lans));
  for (const name of typed('lan')) t.deepEqual(lans[name], all[name]);

  const { intfs } = await read(rig, 'phy_interfaces');
  t.deepEqual(intfs.toSorted(), [...Object.keys(maps.phy), ...Object.keys(maps.wlan)].toSorted());
  const simple = await read(rig, 'phy_interfaces/state/simple');
  t.deepEqual(Object.keys(simple), intfs);
  t.deepEqual(simple.eth0, { carrier: 1 });
  t.is((await rig.call('GET', '/v1/config/interfaces/eth9')).status, 404);
  for (const path of ['wans', 'lans', 'interfaces', 'phy_interfaces', 'wan/connectivity'])
    t.is((await rig.call('POST', `/v1/config/${path}`, {})).status, 405);
});

test.serial('[R12, R39] a WAN that goes down is not connected, and one that is up is', async (t) => {
  const rig = await Rig.start(t);
  const before = await read(rig, 'wan/connectivity');
  t.is(before.connected, true);
  const { failures, ...fine } = before.wans.eth0;
  t.deepEqual(fine, { active: true, carrier: true, ping: null, dns: null, wanConnState: UP });
  t.deepEqual(failures, []);
  const config = await rig.active();
  for (const wan of Object.keys(before.wans)) {
    const entry = config.interface.phy[wan] ?? config.interface.wlan?.[wan];
    entry.enabled = false;
  }
  t.is((await rig.set(config)).status, 200);
  const after = await read(rig, 'wan/connectivity');
  t.is(after.connected, false);
  t.like(after.wans.eth0, { active: false, carrier: false, failures: { 0: { type: 'carrier' } } });
  const { routing: _, ...without } = await rig.active();
  t.is((await rig.set(without)).status, 200);
  t.is(await read(rig, 'wan/connectivity'), null);
});

test.serial('[R32] what is read with secrets needs the token, as the config does', async (t) => {
  const dir = tempDir(t);
  const tokenFile = join(dir, 'token');
  writeFileSync(tokenFile, 'a-token-for-the-router\n', { mode: 0o600 });
  const rig = await Rig.start(t, { options: { host: '0.0.0.0', insecure: true, tokenFile } });
  const url = rig.url.replace('0.0.0.0', '127.0.0.1');
  for (const path of ['active', 'wans', 'lans', 'interfaces', 'Interfaces/wg0/', 'wan/connectivity']) {
    const refused = await request(`${url}/v1/config/${path}`);
    t.is(refused.statusCode, 401, path);
    await refused.body.dump();
    const headers = { authorization: 'Bearer a-token-for-the-router' };
    const read = await request(`${url}/v1/config/${path}`, { headers });
    t.is(read.statusCode, 200, path);
    await read.body.dump();
  }
});

testInNamespace('[R12] with a real kernel the fields are what its devices have', async (t) => {
  const space = namespace(t);
  const ip = (...words: string[]) => space.ip(words.join(' '));
  ip('link', 'add', 'eth1', 'mtu', '1400', 'type', 'veth', 'peer', 'name', 'far');
  ip('link', 'set', 'far', 'up');
  const rig = await Rig.start(t, { options: { kernel: 'linux', namespace: space.name } });
  const entry = { ipv4: '10.7.7.1/24', ipv6: ['fd00:7::1/64'], meta: { type: 'lan' } };
  const { ncid } = await rig.active();
  const other = { enabled: false, meta: { type: 'wan' } };
  const answer = await rig.set({ ncid, interface: { phy: { eth1: entry, eth5: other } } });
  t.is(answer.status, 200, JSON.stringify(answer.body));
  const [link] = JSON.parse(ip('-json', 'link', 'show', 'eth1'));
  const { state } = await read(rig, 'interfaces/eth1');
  t.deepEqual(Object.keys(state), FIELDS);
  t.like(state, { mac: link.address, mtu: '1400', carrier: '1', operstate: 'up', ip4: '10.7.7.1/24' });
  t.true(state.ip6.includes('fd00:7::1/64'));
  t.true(Number(state.txBytes) > 0 && Number(state.rxBytes) >= 0);
  t.true(state.present);
  ip('link', 'set', 'far', 'down');
  t.is((await read(rig, 'interfaces/eth1')).state.carrier, '0');
  ip('-6', 'address', 'del', 'fd00:7::1/64', 'dev', 'eth1');
  const gone = await read(rig, 'interfaces/eth1');
  t.false(gone.state.ip6.includes('fd00:7::1/64'));
  t.deepEqual(gone.config.ipv6, ['fd00:7::1/64'], 'configured, and not on the link');
  t.like((await read(rig, 'interfaces/eth5')).state, { present: false, mac: null, ip6: null });
});

test('[R32] with secretsNeedToken every read with secrets in it needs the token, and R2 holds for who has it', async (t) => {
  const tokenFile = join(tempDir(t), 'token');
  writeFileSync(tokenFile, 'a-token-for-the-router\n', { mode: 0o600 });
  const rig = await Rig.start(t, { options: { secretsNeedToken: true, tokenFile } });
  const headers = { authorization: 'Bearer a-token-for-the-router' };
  const get = async (path: string, sent = {}) => {
    const answer = await fetch(rig.url + path, { headers: sent });
    return { status: answer.status, body: await answer.text() };
  };
  const whole = await get('/v1/config/active', headers);
  t.is(whole.status, 200);
  const secrets = ['active', 'wans', 'lans', 'interfaces', 'interfaces/eth1.10'].map(
    (name) => `/v1/config/${name}`,
  );
  for (const path of secrets) {
    const { status, body } = await get(path);
    t.is(status, 401, path);
    t.is(JSON.parse(body).code, 'HF_HTTP_SECRETS', path);
    t.not((await get(path, headers)).status, 401, path);
  }
  for (const path of ['/v1/config/history', '/v1/config/wan/connectivity', '/v1/config/phy_interfaces']) {
    t.is((await get(path)).status, 200, `${path} holds none`);
  }
});
