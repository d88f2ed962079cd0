import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { routerChannels } from '../../../../src/core/contracts/router.ts';
import { tempDir } from '../../../support/temp.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { exampleConfig, Rig, type RigOptions, withCircle } from '../rig.ts';

const MAIN = 'eth1.10';
const LAB = 'eth1.40';
const LEGS = ['eth1.10', 'eth1.20', 'eth1.30', 'eth1.50', 'eth1.70'];
const conf = (rig: Rig, name = '') => join(rig.dataDir, 'router/dhcp/conf', name);
const v6Files = (rig: Rig) => readdirSync(conf(rig)).sort();
const lines = (rig: Rig, intf: string) => readFileSync(conf(rig, `${intf}_v6.conf`), 'utf8');

async function startVirtual(t: ExecutionContext, options: RigOptions = {}) {
  const clock = new VirtualClock();
  const rig = await Rig.start(t, { clock, ...options });
  await rig.settled();
  const context = (ref: string): any => rig.runtime.services.actors.snapshot(ref as never)?.context;
  return {
    rig,
    clock,
    dhcp: () => context('router.dhcp/default'),
    sets: () => context('router.address_sets/default'),
  };
}

test.serial(
  '[R19] the files follow every write, exist exactly for legs with dhcp6, and are no store',
  async (t) => {
    const rig = await Rig.start(t);
    t.deepEqual(
      v6Files(rig),
      LEGS.map((leg) => `${leg}_v6.conf`),
    );
    t.regex(lines(rig, MAIN), /option6:dns-server,\[fd5e:21aa:90c4:50::53\]/);

    const config = await rig.active();
    config.dhcp6[MAIN].nameservers = ['fd00::53'];
    config.dhcp6[LAB] = { type: 'stateless' };
    delete config.dhcp6['eth1.20'];
    t.is((await rig.set(config)).status, 200);
    t.regex(lines(rig, MAIN), /option6:dns-server,\[fd00::53\]/);
    t.false(existsSync(conf(rig, 'eth1.20_v6.conf')));
    t.true(existsSync(conf(rig, `${LAB}_v6.conf`)));

    // Somebody's editor: neither served nor kept.
    writeFileSync(conf(rig, `${MAIN}_v6.conf`), 'enable-tftp\n');
    t.deepEqual((await rig.active()).dhcp6[MAIN].nameservers, ['fd00::53']);
    t.is((await rig.call('POST', '/v1/config/apply_current_config')).status, 200);
    t.regex(lines(rig, MAIN), /option6:dns-server,\[fd00::53\]/);
  },
);

test.serial(
  '[R7] an apply that the kernel refuses leaves files, kernel and store as they were',
  async (t) => {
    const rig = await Rig.start(t);
    const before = { lines: lines(rig, MAIN), active: await rig.active(), state: await rig.state(MAIN) };
    const config = await rig.active();
    config.dhcp6[MAIN].nameservers = ['fd00::53'];
    config.interface.vlan[MAIN].ipv6 = [];
    withCircle(config);
    const { status, body } = await rig.set(config);
    t.is(status, 500);
    t.is(body.code, 'HF_ROUTER_APPLY_FAILED');
    t.deepEqual(
      { lines: lines(rig, MAIN), active: await rig.active(), state: await rig.state(MAIN) },
      before,
    );
    t.is(v6Files(rig).length, LEGS.length, 'and nothing half-written lies about');
  },
);

test.serial(
  '[R7] a disk that is full while files are made is a coded refusal, and nothing is applied',
  async (t) => {
    const generatedDir = tempDir(t);
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', generatedDir], {
      encoding: 'utf8',
    });
    if (mounted.status !== 0)
      t.log(`no small disk on this machine (${mounted.stderr?.trim()}): names stand in for it`);
    else t.teardown(() => spawnSync('umount', [generatedDir]));
    const rig = await Rig.start(t, { options: { generatedDir } });
    const before = { active: await rig.active(), state: await rig.state(MAIN) };
    if (mounted.status === 0) {
      t.throws(() => writeFileSync(join(generatedDir, 'filler'), 'x'.repeat(1_000_000)), { code: 'ENOSPC' });
    }
    const config = await rig.active();
    config.interface.vlan[MAIN].ipv6 = [];
    config.dhcp6[MAIN].nameservers = Array.from(
      { length: 1_000 },
      (_, at) => `fd00::${(at + 1).toString(16)}`,
    );
    if (mounted.status !== 0) config.dns['a,b'] = {};
    const { status, body } = await rig.set(config);
    t.is(status, 500);
    t.is(body.code, 'HF_ROUTER_GENERATE');
    if (mounted.status === 0) t.regex(body.errors[0], /disk is full/);
    t.deepEqual({ active: await rig.active(), state: await rig.state(MAIN) }, before);
    t.is(rig.divergence(), undefined);
  },
);

test.serial(
  '[R23] the DHCP service restarts once a burst, 22 s later, and adopts a staged file',
  async (t) => {
    const { rig, dhcp } = await startVirtual(t);
    t.is(dhcp(), undefined, 'nothing was rewritten yet');
    writeFileSync(conf(rig, 'staged.conf'), 'dhcp-option=option:ntp-server,10.0.0.1\n');
    for (const server of ['fd00::53', 'fd00::54', 'fd00::55']) {
      const config = await rig.active();
      config.dhcp6[MAIN].nameservers = [server];
      t.is((await rig.set(config)).status, 200);
      await rig.pass(2_000);
    }
    await rig.pass(19_000);
    t.is(dhcp().restarts, 0);
    await rig.pass(2_000);
    t.is(dhcp().restarts, 1);
    t.deepEqual(dhcp().last.adopted, ['staged.conf']);
    t.is(dhcp().last.files.length, LEGS.length + 1);
    await rig.pass(300_000);
    t.is(dhcp().restarts, 1);
    t.is(rig.divergence(), undefined);
  },
);

test.serial('[R23] a write that rewrites no DHCP file restarts nothing', async (t) => {
  const { rig, dhcp } = await startVirtual(t);
  const config = await rig.active();
  config.interface.vlan[MAIN].meta.name = 'Parlour';
  config.interface.vlan[LAB].ipv6 = [];
  t.is((await rig.set(config)).status, 200);
  await rig.pass(60_000);
  t.is(dhcp(), undefined);
});

test.serial(
  '[R23] a restart that is due survives a restart of the runtime, and what a kill left is healed',
  async (t) => {
    const { rig, clock } = await startVirtual(t);
    const config = await rig.active();
    config.dhcp6[MAIN].nameservers = ['fd00::53'];
    await rig.set(config);
    await rig.settled();
    await rig.runtime.stop('test');
    writeFileSync(conf(rig, 'eth1.20_v6.conf'), 'half');
    mkdirSync(conf(rig), { recursive: true });
    writeFileSync(conf(rig, '.eth1.10_v6.conf.new'), 'left by a kill');

    const again = await startVirtual(t, { clock, dataDir: rig.dataDir });
    t.deepEqual(again.dhcp().waiting.toSorted(), ['eth1.10', 'eth1.20']);
    t.deepEqual(
      v6Files(rig),
      LEGS.map((leg) => `${leg}_v6.conf`),
    );
    t.regex(lines(rig, 'eth1.20'), /^dhcp-option=/);
    await again.rig.pass(22_000);
    t.is(again.dhcp().restarts, 1);
    t.is(again.rig.divergence(), undefined);
  },
);

test.serial('[R21] the address sets follow within a minute of an address being added', async (t) => {
  const { rig, sets } = await startVirtual(t);
  const set = 'c_net_df62a84c-ed88_set6';
  const guest = 'c_net_c60ed79e-e1c4_set6';
  t.deepEqual(sets().populated, {});
  await rig.pass(60_000);
  t.true(sets().populated[set].includes('fd5e:21aa:90c4:10::/64'));
  t.regex(sets().populated[set].join(' '), /2001:db8:/, 'the delegated one, too');

  const config = await rig.active();
  config.interface.vlan['eth1.30'].ipv6 = ['fd5e:21aa:90c4:30::1/64'];
  await rig.set(config);
  await rig.pass(1_000);
  t.false(sets().populated[guest].includes('fd5e:21aa:90c4:30::/64'));
  t.true(sets().wanted[guest].includes('fd5e:21aa:90c4:30::/64'));
  await rig.pass(59_000);
  t.true(sets().populated[guest].includes('fd5e:21aa:90c4:30::/64'));
  t.true(sets().since[guest] > sets().since[set]);
  t.is(rig.divergence(), undefined);
});

test.serial(
  '[R18] a write that changes the access-point controller publishes its channel, others do not',
  async (t) => {
    const rig = await Rig.start(t);
    const heard: unknown[] = [];
    rig.runtime.services.bus
      .stream(routerChannels.apcChangeApplied, 'test')
      .subscribe(({ payload }) => heard.push(payload));
    const config = exampleConfig();
    config.interface.vlan[MAIN].ipv6 = [];
    const { ncid } = (await rig.set(config)).body;
    await rig.settled();
    t.deepEqual(heard, []);
    config.ncid = ncid;
    config.apc.globalSysConfig.country = 'DE';
    const second = await rig.set(config);
    await rig.settled();
    t.like(heard, { 0: { ncid: second.body.ncid }, length: 1 });
  },
);
