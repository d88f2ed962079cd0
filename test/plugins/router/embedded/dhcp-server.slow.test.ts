import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { alertRaised } from '../../../../src/core/contracts/alerts.ts';
import { namespace } from '../../../support/netns.ts';
import { tempDir } from '../../../support/temp.ts';
import { testInNamespace } from '../../../support/test-in-namespace.ts';
import type { RigOptions } from '../rig.ts';
import { Rig } from '../rig.ts';
import { children, eventually, LEG, realRig } from './real-rig.ts';

const RESTART_MS = 400;
const servers = () => children().filter((line) => line.includes('dnsmasq '));
const facts = (rig: Rig): any => rig.runtime.health();

/** A running router with its DHCP service, and a client on the leg. */
async function setUp(t: ExecutionContext, given: RigOptions = {}) {
  const real = await realRig(t, { ...given, options: { dhcpRestartMs: RESTART_MS, ...given.options } });
  const { space, rig } = real;
  const restarts = (): any =>
    (rig.runtime.services.actors.snapshot('router.dhcp/default' as never) as any)?.context;
  await eventually(() => restarts()?.restarts === 1 && facts(rig).dhcp?.serving === true);
  const client = space.hasVlans ? 'client' : 'eth1x10p';
  if (space.hasVlans) space.ip(`link add link eth1p name ${client} type vlan id 10`);
  /** Switches the client off and on, so that it asks for an advertisement. @returns its addresses once it has one */
  const advertised = async (pattern: RegExp): Promise<string> => {
    space.ip(`link set ${client} down`);
    space.ip(`link set ${client} up`);
    const now = () => space.ip(`-6 -oneline address show dev ${client}`);
    await eventually(() => pattern.test(now()), now);
    return now();
  };
  return { ...real, restarts, advertised };
}

testInNamespace(
  '[R23][R19] a real dnsmasq advertises what the generated files say, and reads them again once after a burst',
  async (t) => {
    const { rig, config, restarts, advertised } = await setUp(t);
    t.regex(await advertised(/inet6 fd5e:21aa:90c4:10:\S+ scope global dynamic/), /valid_lft 86[34]\d\dsec/);
    const [first] = servers();
    for (const lease of [7000, 7100, 7200]) {
      config.dhcp6[LEG] = { lease };
      const { status, body } = await rig.set(config);
      t.is(status, 200);
      config.ncid = body.ncid;
    }
    await eventually(() => restarts().restarts === 2);
    t.regex(await advertised(/valid_lft 7[12]\d\dsec/), /inet6 fd5e:21aa:90c4:10:/);
    await sleep(RESTART_MS * 2);
    t.is(restarts().restarts, 2, 'one restart for three saves');
    t.is(servers().length, 1);
    t.not(servers()[0], first);
    await rig.runtime.stop('test');
    t.deepEqual(servers(), [], 'it ends with the router');
    t.is(rig.divergence(), undefined);
  },
);

testInNamespace(
  '[R23] a staged file is adopted; one that dnsmasq cannot read is reported, and the running one goes on',
  async (t) => {
    const { rig, config, restarts } = await setUp(t);
    const alerts: string[] = [];
    rig.runtime.services.bus
      .stream(alertRaised, 'test')
      .subscribe(({ payload }: any) => alerts.push(`${payload.name}: ${payload.labels.reason}`));
    const [first] = servers();
    const staged = join(rig.dataDir, 'router/dhcp/conf/by-hand.conf');
    writeFileSync(staged, 'dhcp-rangeless=1\n');
    config.dhcp6[LEG] = { lease: 7200 };
    t.is((await rig.set(config)).status, 200);
    await eventually(() => alerts.some((line) => line.startsWith('router.dhcp_restart_failed')));
    t.regex(alerts.join(), /dnsmasq did not do its work.*bad option at line 1 of .*by-hand\.conf/);
    t.deepEqual(servers(), [first]);
    t.true(facts(rig).dhcp.serving);
    writeFileSync(staged, `dhcp-option=tag:${LEG},option6:domain-search,example.test\n`);
    await eventually(() => restarts().restarts === 2);
    t.deepEqual(restarts().last.adopted, ['by-hand.conf']);
    t.not(servers()[0], first);
  },
);

testInNamespace('[R23] a dnsmasq that crashes is started again, and health says so meanwhile', async (t) => {
  const { rig } = await setUp(t);
  const [first = ''] = servers();
  process.kill(Number.parseInt(first, 10), 'SIGKILL');
  await eventually(() => facts(rig).dhcp.ok === false);
  t.regex(facts(rig).dhcp.reason, /does not serve \(it ended with SIGKILL/);
  await eventually(() => facts(rig).dhcp.serving === true);
  t.is(servers().length, 1);
});

testInNamespace('[R23] what a killed router left running is ended before a new one starts', async (t) => {
  const dataDir = tempDir(t);
  const space = namespace(t);
  mkdirSync(join(dataDir, 'router/dhcp'), { recursive: true });
  const pidFile = `--pid-file=${join(dataDir, 'router/dhcp/dnsmasq.pid')}`;
  const argv = ['netns', 'exec', space.name, 'dnsmasq', '-k', '-p0', '-C', '/dev/null', pidFile];
  const left = spawn('ip', argv, { stdio: 'ignore' });
  t.teardown(() => left.kill('SIGKILL'));
  const ended = once(left, 'exit');
  await eventually(() => servers().length === 1);
  await sleep(200); // it writes its pid when it has read its options
  const rig = await Rig.start(t, { dataDir, options: { kernel: 'linux', namespace: space.name } });
  await ended;
  await eventually(() => facts(rig).dhcp.serving === true);
  t.is(servers().length, 1);
});
