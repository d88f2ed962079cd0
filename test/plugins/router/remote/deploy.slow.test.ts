/** What deploy/ holds for a machine beside a real router (R38). */
import { cpSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { loadConfig } from '../../../../src/core/host/config/load.ts';
import { PluginHost } from '../../../../src/core/host/plugin/host.ts';
import { call, root, spawnHoldfast } from '../../../support/cli.ts';
import { RedisServer, until } from '../../../support/redis.ts';
import { tempDir } from '../../../support/temp.ts';
import { Daemon } from './daemon.ts';
import { startRemote } from './instance.ts';

const deploy = fileURLToPath(new URL('../../../../deploy/', import.meta.url));
const file = join(deploy, 'ula-reconcile.config.ts');
const unit = join(deploy, 'ula-reconcile.service');

test.serial(
  '[R38] the configuration of the unit is the reconciler beside a router elsewhere, its signals, and a console',
  async (t) => {
    const { plugins } = await loadConfig({ file, env: { HOLDFAST_ROUTER_URL: 'http://192.168.1.1:8837' } });
    const { surfaces, plugins: known } = new PluginHost(plugins).register();
    const names = ['alerts', 'console', 'reconciler', 'router-remote', 'telemetry', 'uptime'];
    t.deepEqual(known.map(({ name }) => name).toSorted(), names);
    t.deepEqual(
      surfaces.map(({ options }) => options.name),
      ['console'],
      'nobody can write a config through it',
    );
    const { options } = plugins.find(({ definition }) => definition.name === 'reconciler')!;
    t.is((options.router_ula_reconciler_addresses as unknown[]).length, 5);
  },
);

test.serial(
  '[R38] without the URL of a router it does not start, and says which option is missing',
  async (t) => {
    const error = await t.throwsAsync(loadConfig({ file, env: {} }), { code: 'HF_CONFIG_OPTION' });
    t.regex(error!.message, /router-remote, option url: it is required: set HOLDFAST_ROUTER_URL/);
  },
);

test.serial(
  '[R29,R38] beside a daemon and its Redis it heals a leg, in one process without children',
  async (t) => {
    const daemon = await Daemon.start(t);
    const redis = await RedisServer.start(t);
    const publisher = redis.client(t);
    daemon.publish = (channel, payload) => publisher.publish(channel, payload);
    // As installed: outside of the checkout.
    const config = join(tempDir(t), 'ula-reconcile.config.ts');
    cpSync(file, config);
    const dataDir = tempDir(t);
    await daemon.appSaves((saved) => {
      delete saved.interface.vlan['eth1.20'].ipv6;
    });
    const { child, console } = await startRemote(t, dataDir, config, {
      HOLDFAST_ROUTER_URL: daemon.url,
      HOLDFAST_REDIS_URL: redis.url,
      HOLDFAST_ROUTER_CHANNEL_PREFIX: 'firerouter.',
    });
    const health = async (): Promise<any> => (await fetch(`${console}/healthz`)).json();
    await until('it hears the router', async () => {
      const { router, reconciler } = await health();
      return router.events.subscribed && reconciler.whole === 4;
    });
    const would = /would add fd5e:21aa:90c4:20::1\/64 to eth1\.20 \(IoT\)/;
    t.regex((await health()).reconciler.reason, would);
    t.true(
      child.errors.concat(child.lines).some((line) => line.includes('leg.would_add')),
      'the log says so',
    );
    const holdfast = (...argv: string[]) =>
      call([...argv, '--data-dir', dataDir, '--config', config], {
        cwd: dataDir,
        env: { HOLDFAST_ROUTER_URL: daemon.url },
      });
    t.regex((await holdfast('status')).out, would);
    t.regex((await holdfast('status')).out, /4 of 5 legs whole; IoT \(eth1\.20\) not adopted/);
    const legs = (await holdfast('router', 'legs')).out;
    t.regex(legs, would);
    t.regex(legs, /eth1\.10 .*fd5e:21aa:90c4:10::1\/64 is kept: whole\)/);
    t.regex(legs, /eth1\.20 .*fd5e:21aa:90c4:20::1\/64 is kept: not adopted\)/);
    t.notRegex(legs, /eth1\.30 .*is kept/);
    t.is(daemon.posts.length, 0);
    t.is((await holdfast('router', 'adopt', '--yes')).code, 0);
    await until('IoT has its address', () => daemon.leg('eth1.20').ipv6 !== undefined);
    t.notRegex((await holdfast('router', 'legs')).out, /would add/);
    // The router stops saying what its links have, so nobody says that they have it.
    daemon.servesInterfaces = false;
    t.is((await holdfast('router', 'resync')).code, 0);
    const unknown = /configured, its link is unknown: the router does not serve the state of this interface/;
    await until('it says so', async () => unknown.test((await holdfast('status')).out));
    const listed = JSON.parse((await holdfast('router', 'legs', '--json')).out).legs;
    t.like(listed[0].keeps, { address: 'fd5e:21aa:90c4:10::1/64', state: 'configured' });
    t.regex(listed[0].keeps.text, unknown);
    await daemon.appSaves((saved) => {
      delete saved.interface.vlan['eth1.10'].ipv6;
    });
    await until('Main has its address', () => daemon.leg('eth1.10').ipv6 !== undefined);
    const lasting = childrenOf(child.process.pid ?? 0).filter((line) => !/integrity\/checker/.test(line));
    t.deepEqual(lasting, [], 'the check of the data folder comes and goes');
    await child.kill('SIGTERM');
    t.is(child.process.exitCode, 0);
  },
);

test.serial('[R38] the unit is hardened', (t) => {
  const text = readFileSync(unit, 'utf8');
  const settings = new Map(text.split('\n').map((line) => line.split(/=(.*)/s, 2) as [string, string]));
  for (const [name, value] of Object.entries({
    User: 'ula-reconcile',
    NoNewPrivileges: 'yes',
    CapabilityBoundingSet: '',
    ProtectSystem: 'strict',
    StateDirectoryMode: '0700',
    RestrictAddressFamilies: 'AF_INET AF_INET6 AF_UNIX',
  }))
    t.is(settings.get(name), value, name);
  t.false(settings.has('LoadCredential'), 'it would copy a secret once, and an agent rewrites it');
  t.regex(
    readFileSync(join(deploy, 'ula-reconcile.sysusers.conf'), 'utf8'),
    /^u ula-reconcile - "[^"]+" \/var\/lib\/ula-reconcile -$/m,
    'the user is made before the agent writes files for it',
  );
  t.notRegex(settings.get('ExecStart') ?? '', /token|password|redis:/i, 'no secret is in the arguments');
});

test.serial(
  '[R38] the shipped configuration takes the router that a variable names, else our own',
  async (t) => {
    for (const [url, router] of [
      ['http://192.168.1.1:8837', 'router-remote'],
      ['', 'router'],
    ] as const) {
      const argv = ['doctor', 'host', '--json', '--data-dir', tempDir(t)];
      const { ended } = spawnHoldfast(t, argv, { cwd: root, env: { HOLDFAST_ROUTER_URL: url } });
      const { checks } = JSON.parse((await ended).out);
      const { found } = checks.find(({ name }: { name: string }) => name === 'host.config');
      t.regex(found, new RegExp(`^it loads: ${router}, .*\\breconciler\\b`));
    }
  },
);

/** What the processes run that this one has started, by any of its threads. */
function childrenOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`)
    .flatMap((task) => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean))
    .map((child) => readFileSync(`/proc/${child}/cmdline`, 'utf8').replaceAll('\0', ' '));
}
