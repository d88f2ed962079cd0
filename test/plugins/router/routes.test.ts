import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import test from 'ava';
import { routerChannels } from '../../../src/core/contracts/router.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { exampleConfig, Rig, withCircle } from './rig.ts';

test.serial('[R2] an empty store is seeded with the example config, which is served as it is', async (t) => {
  const rig = await Rig.start(t);
  t.deepEqual(await rig.active(), exampleConfig());
  t.deepEqual(await rig.history(), []);
});

test.serial('[R8, R5] a plain set is applied and persisted at once, whole, under a fresh ncid', async (t) => {
  const rig = await Rig.start(t);
  const config = await rig.active();
  config.interface.vlan['eth1.30'].ipv4 = '10.77.31.1/24';
  const { status, body } = await rig.set(config);
  t.is(status, 200);
  t.deepEqual(body.errors, []);
  t.regex(body.ncid, /^[0-9a-f]{19}\d{13}$/);
  t.not(body.ncid, config.ncid);
  t.deepEqual(await rig.active(), { ...config, ncid: body.ncid });
});

test.serial('[R1] a key that is absent from the posted config is gone, and nobody complains', async (t) => {
  const rig = await Rig.start(t);
  const { mdns_reflector: _, ...config } = await rig.active();
  t.is((await rig.set(config)).status, 200);
  t.false('mdns_reflector' in (await rig.active()));
});

test.serial('[R3] a stale ncid is refused with the documents text, and nothing changes', async (t) => {
  const rig = await Rig.start(t);
  const first = await rig.active();
  await rig.set(first);
  const before = await rig.active();
  t.deepEqual(await rig.set(first), {
    status: 400,
    body: { errors: ['ncid not match'], code: 'HF_ROUTER_NCID_MISMATCH' },
  });
  t.deepEqual(await rig.active(), before);
});

test.serial('[R4] control fields are never persisted nor served', async (t) => {
  const rig = await Rig.start(t);
  const config = await rig.active();
  const { status } = await rig.set(config, {
    transactionOp: 'append',
    transID: 't1',
    ignoreNcid: false,
    reqId: 'x',
  });
  t.is(status, 200);
  const { ncid: _, ...served } = await rig.active();
  const { ncid: __, ...posted } = config;
  t.deepEqual(served, posted);
});

test.serial('[R4] ignoreNcid writes over a stale ncid and raises an alert', async (t) => {
  const lines: string[] = [];
  const rig = await Rig.start(t, { lines });
  const config = exampleConfig();
  config.ncid = 'stale';
  t.is((await rig.set(config, { ignoreNcid: true })).status, 200);
  await rig.settled();
  t.true(lines.some((line) => line.includes('router.ncid_bypassed')));
});

test.serial(
  '[R12] one interface is read with its config and state; there is no other way to touch it',
  async (t) => {
    const rig = await Rig.start(t);
    for (const path of ['/v1/config/interfaces/eth1.10', '/v1/interface/eth1.10']) {
      const { status, body } = await rig.call('GET', path);
      t.is(status, 200);
      t.deepEqual(body.config, exampleConfig().interface.vlan['eth1.10']);
      t.true(body.state.ip6.includes('fd5e:21aa:90c4:10::1/64'));
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'] as const)
        t.is((await rig.call(method, path, {})).body.code, 'HF_HTTP_METHOD');
    }
    t.deepEqual(await rig.call('GET', '/v1/config/interfaces/eth9'), {
      status: 404,
      body: { errors: ['There is no interface eth9.'], code: 'HF_ROUTER_INTERFACE_UNKNOWN' },
    });
    t.is((await rig.call('PATCH', '/v1/config/set', {})).status, 405);
  },
);

test.serial(
  '[R13] history lists accepted writes only, newest first, with changed paths and no values',
  async (t) => {
    const clock = new VirtualClock();
    const rig = await Rig.start(t, { clock });
    const config = await rig.active();
    config.wireguard = undefined;
    config.interface.wireguard.wg0.privateKey = 'CANARY-private-key';
    config.dns['eth1.10'].nameservers = ['10.77.50.54'];
    const { body } = await rig.set(config);
    await rig.set({ ...config, ncid: 'stale' });
    const history = await rig.history();
    t.like(history, [
      {
        score: Math.floor(clock.now() / 1000),
        ncid: body.ncid,
        op: 'save',
        changed: ['interface.wireguard.wg0.privateKey', 'dns.eth1.10.nameservers'],
      },
    ]);
    t.is(history.length, 1);
    t.false(JSON.stringify(history).includes('CANARY'));
  },
);

const badRequests: [string, unknown, number, string][] = [
  ['invalid JSON', '{"ncid":', 400, 'HF_HTTP_BODY_INVALID'],
  ['a body that is a list', [], 400, 'HF_ROUTER_REQUEST_INVALID'],
  ['an unknown transactionOp', { transactionOp: 'merge', transID: 't' }, 400, 'HF_ROUTER_REQUEST_INVALID'],
  ['a numeric transID', { transactionOp: 'append', transID: 7 }, 400, 'HF_ROUTER_REQUEST_INVALID'],
  ['an empty transID', { transactionOp: 'commit', transID: '' }, 400, 'HF_ROUTER_REQUEST_INVALID'],
  ['a commit without transID', { transactionOp: 'commit' }, 400, 'HF_ROUTER_REQUEST_INVALID'],
  ['a numeric ncid', { ncid: 4 }, 400, 'HF_ROUTER_REQUEST_INVALID'],
  ['an ignoreNcid that is a text', { ignoreNcid: 'true' }, 400, 'HF_ROUTER_REQUEST_INVALID'],
  ['no interface at all', { interface: undefined }, 400, 'HF_ROUTER_CONFIG_INVALID'],
  ['no ncid', { ncid: undefined }, 400, 'HF_ROUTER_NCID_REQUIRED'],
  ['20 MB', { padding: 'x'.repeat(20_000_000) }, 413, 'HF_HTTP_BODY_TOO_LARGE'],
];
test.serial('[R36] bad input gets a clear coded answer and changes nothing', async (t) => {
  const rig = await Rig.start(t);
  const before = await rig.active();
  for (const [what, change, status, code] of badRequests) {
    const body = typeof change === 'object' && !Array.isArray(change) ? { ...before, ...change } : change;
    const answer = await rig.call('POST', '/v1/config/set', body).catch((error) => ({
      status: error.code,
      body: { code: error.message, errors: [''] },
    }));
    t.is(answer.body.code, code, what);
    t.is(answer.status, status, what);
    t.is(answer.body.errors.length, 1, what);
    t.deepEqual(await rig.active(), before, what);
  }
});

test.serial('[R36] a bad address is refused with the path of its field', async (t) => {
  const rig = await Rig.start(t);
  const config = await rig.active();
  config.interface.vlan['eth1.10'].ipv6 = ['fd5e:21aa:90c4:10::1/64', 'fd5e::xyz/64'];
  t.deepEqual(await rig.set(config), {
    status: 400,
    body: {
      errors: [
        'The config is not valid at interface.vlan.eth1.10.ipv6.1: an IPv6 address with prefix length is wanted.',
      ],
      code: 'HF_ROUTER_CONFIG_INVALID',
    },
  });
});

test.serial(
  '[R7] an apply that the kernel refuses leaves config, history and kernel as they were',
  async (t) => {
    const rig = await Rig.start(t);
    const before = await rig.active();
    const leg = await rig.state('eth1.10');
    const config = structuredClone(before);
    config.interface.vlan['eth1.10'].ipv6 = [];
    withCircle(config);
    t.deepEqual(await rig.set(config), {
      status: 500,
      body: { errors: ['Cannot find device "br8"'], code: 'HF_ROUTER_APPLY_FAILED' },
    });
    t.deepEqual(await rig.active(), before);
    t.deepEqual(await rig.history(), []);
    t.deepEqual(await rig.state('eth1.10'), leg);
  },
);

test.serial(
  '[R14] a rename reapplies nothing, is persisted and in the history, and publishes change_applied only',
  async (t) => {
    const rig = await Rig.start(t);
    const heard: string[] = [];
    for (const topic of Object.values(routerChannels))
      rig.runtime.services.bus.subscribe(topic, 'test', ({ payload }) => {
        heard.push(`${topic.name} ${payload.intf ?? ''}`);
      });
    const config = await rig.active();
    config.interface.vlan['eth1.10'].meta.name = 'Main renamed';
    const { body } = await rig.set(config);
    await rig.settled();
    t.deepEqual(heard, ['router.change_applied ']);
    t.is((await rig.active()).interface.vlan['eth1.10'].meta.name, 'Main renamed');
    t.deepEqual(
      (await rig.history()).map(({ ncid }) => ncid),
      [body.ncid],
    );
  },
);

test.serial(
  '[R18] a save that changes the access points alone publishes apc_change_applied alone',
  async (t) => {
    const rig = await Rig.start(t);
    const heard: string[] = [];
    for (const topic of Object.values(routerChannels))
      rig.runtime.services.bus.subscribe(topic, 'test', () => void heard.push(topic.name));
    const save = async (change: (config: any) => void): Promise<string[]> => {
      heard.length = 0;
      const config = await rig.active();
      change(config);
      t.is((await rig.set(config)).status, 200);
      await rig.settled();
      return [...heard];
    };
    t.deepEqual(await save((c) => (c.apc.globalSysConfig.country = 'DE')), ['router.apc_change_applied']);
    t.deepEqual(await save((c) => delete c.apc), ['router.apc_change_applied']);
    t.deepEqual(await save((c) => (c.apc = { a: 1 })), ['router.apc_change_applied']);
    const renamed = await save((c) => {
      c.apc = { a: 2 };
      c.interface.vlan['eth1.10'].meta.name = 'Main renamed';
    });
    t.deepEqual(renamed, ['router.change_applied', 'router.apc_change_applied']);
    t.deepEqual(await save(() => {}), ['router.change_applied']);
  },
);

test.serial(
  '[R18] every reapplied interface is published with the ncid that is served by then, then the change',
  async (t) => {
    const rig = await Rig.start(t);
    const heard: Promise<unknown>[] = [];
    for (const topic of [routerChannels.ifaceChangeApplied, routerChannels.changeApplied])
      rig.runtime.services.bus.subscribe(topic, 'test', ({ payload: { at: _, ...payload } }) => {
        heard.push(rig.active().then(({ ncid }) => ({ topic: topic.name, ...payload, served: ncid })));
      });
    const config = await rig.active();
    config.interface.vlan['eth1.10'].ipv6 = [];
    config.interface.vlan['eth1.20'].ipv6 = [];
    const { ncid } = (await rig.set(config)).body;
    await rig.settled();
    t.deepEqual(await Promise.all(heard), [
      { topic: 'router.iface_change_applied', ncid, intf: 'eth1.10', served: ncid },
      { topic: 'router.iface_change_applied', ncid, intf: 'eth1.20', served: ncid },
      { topic: 'router.change_applied', ncid, served: ncid },
    ]);
  },
);

test.serial(
  '[R11] apply_current_config reapplies every interface and keeps the ncid, whatever body it gets',
  async (t) => {
    const rig = await Rig.start(t);
    const heard: (string | undefined)[] = [];
    rig.runtime.services.bus.subscribe(routerChannels.ifaceChangeApplied, 'test', ({ payload }) => {
      heard.push(payload.intf);
    });
    const before = await rig.active();
    for (const body of [undefined, {}, { any: 1 }]) {
      heard.length = 0;
      const answer = await rig.call('POST', '/v1/config/apply_current_config', body);
      t.deepEqual(answer, { status: 200, body: { errors: [], ncid: before.ncid } });
      await rig.settled();
      const names = Object.values(exampleConfig().interface).flatMap((map: any) => Object.keys(map));
      t.deepEqual(heard.toSorted(), names.toSorted());
    }
    t.deepEqual(await rig.active(), before);
    t.deepEqual(await rig.history(), []);
  },
);

test.serial('[R36] a config of 1 MB is within the limits', async (t) => {
  const rig = await Rig.start(t);
  const config = await rig.active();
  let size = JSON.stringify(config).length;
  for (let n = 100; size < 1_040_000; n += 1) {
    const leg = { enabled: true, vid: (n % 4000) + 1, intf: 'eth1', ipv6: [`fd00:${n.toString(16)}::1/64`] };
    config.interface.vlan[`eth1.${n}`] = leg;
    size += JSON.stringify(leg).length + 14;
  }
  const { status, body } = await rig.set(config);
  t.is(status, 200, JSON.stringify(body));
  t.deepEqual(await rig.active(), { ...config, ncid: body.ncid });
});

test.serial('[R3,R32] the bodies of refused posts are not stored', async (t) => {
  const rig = await Rig.start(t);
  const config = await rig.active();
  const pad = (n: number) => ({ ...config, padding: `${n}`.repeat(500_000), ncid: 'stale' });
  for (let n = 0; n < 8; n += 1) t.is((await rig.set(pad(n))).status, 400);
  await rig.settled();
  const db = new DatabaseSync(join(rig.dataDir, 'log.db'), { readOnly: true });
  const { bytes } = db.prepare('SELECT sum(length(body)) AS bytes FROM blobs').get() as { bytes: number };
  db.close();
  t.true(bytes < 100_000, `${bytes} bytes: the active config alone`);
  t.is(rig.divergence(), undefined);
});

test.serial('[R36] a refused config leaves a line that says who posted it and what was wrong', async (t) => {
  const lines: string[] = [];
  const rig = await Rig.start(t, { lines });
  const config = await rig.active();
  config.interface.wireguard.wg0.privateKey = 'CANARY-key';
  config.interface.vlan['eth1.10'].ipv6 = ['CANARY-value'];
  t.is((await rig.set(config)).status, 400);
  const line = lines.find((text) => text.includes('router.post_refused')) ?? '';
  t.regex(line, /HF_ROUTER_CONFIG_INVALID.*interface\.vlan\.eth1\.10\.ipv6\.0/);
  t.notRegex(lines.join(''), /CANARY/);
});

test.serial('[R13] history tells a pending entry from the kept ones', async (t) => {
  const rig = await Rig.start(t);
  const config = await rig.active();
  const { body } = await rig.set(config);
  const pending = async () => (await rig.history()).map(({ op, pending }) => `${op}${pending ? '?' : ''}`);
  await rig.set({ ...config, ncid: body.ncid }, { transactionOp: 'append', transID: 't1' });
  t.deepEqual(await pending(), ['append?', 'save']);
  await rig.set({}, { transactionOp: 'commit', transID: 't1' });
  t.deepEqual(await pending(), ['append', 'save']);
});
