import { spawnSync } from 'node:child_process';
import test, { type ExecutionContext } from 'ava';
import { alertRaised } from '../../../../src/core/contracts/alerts.ts';
import {
  fillSets,
  heldPrefixes,
  readSets,
  type SetTool,
} from '../../../../src/plugins/router/host/set-tools.ts';
import { pathOf } from '../../../../src/plugins/router/host/tool.ts';
import { namespace } from '../../../support/netns.ts';
import { testInNamespace } from '../../../support/test-in-namespace.ts';
import { Rig } from '../rig.ts';
import { children, eventually, LEG, realRig, SET } from './real-rig.ts';

const MAIN = 'fd5e:21aa:90c4:10::/64';
const OTHER = 'fd00:77::/64';

/** The tool, or where the kernel here does not take it the other one, which is said. @throws neither works */
function workingTool(t: ExecutionContext, wanted: SetTool): SetTool {
  const space = namespace(t);
  const probes = { nft: ['add', 'table', 'inet', 'probe'], ipset: ['create', 'probe', 'hash:net'] };
  const refusal = (tool: SetTool): string | undefined => {
    const argv = ['netns', 'exec', space.name, pathOf(tool) ?? tool, ...probes[tool]];
    const { status, stderr, error } = spawnSync('ip', argv);
    return status === 0 ? undefined : String(error?.message ?? stderr);
  };
  const reason = refusal(wanted);
  if (reason === undefined) return wanted;
  const other = wanted === 'nft' ? 'ipset' : 'nft';
  t.log(`${wanted} does not work here (${reason.trim()}): ${other} is used in its place`);
  const also = refusal(other);
  if (also !== undefined) throw new Error(`neither nft nor ipset works here: ${reason}; ${also}`);
  return other;
}

const run = (space: string, tool: SetTool, ...args: string[]) => {
  const argv = ['netns', 'exec', space, pathOf(tool) ?? tool, ...args];
  const { status, stderr } = spawnSync('ip', argv, { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
};

for (const wanted of ['nft', 'ipset'] as const) {
  testInNamespace(
    `[R21] sets of ${wanted} follow the addresses of the networks, whoever added them`,
    async (t) => {
      const packetFilter = workingTool(t, wanted);
      const { space, rig, config } = await realRig(t, {
        options: { packetFilter, addressSetsMs: 100, dnsmasq: false },
      });
      const held = () => readSets(packetFilter, { namespace: space.name });
      const holds = (...prefixes: string[]) =>
        eventually(
          async () => JSON.stringify([...((await held())[SET] ?? [])].sort()) === JSON.stringify(prefixes),
        );
      await holds(MAIN);
      space.ip(`-6 address add fd00:77::1/64 dev ${LEG}`);
      await holds(OTHER, MAIN);
      space.ip('-6 route add unreachable 2001:db8:7::/56 dev lo proto dhcp metric 1024');
      await holds('2001:db8:7::/64', MAIN);
      config.interface.vlan[LEG].ipv6 = ['fd00:78::1/64'];
      delete config.interface.vlan[LEG].ipv6DelegateFrom;
      t.is((await rig.set(config)).status, 200);
      await holds('fd00:78::/64');
      await eventually(() => actor(rig).populated[SET]?.[0] === 'fd00:78::/64');

      await rig.runtime.stop('test');
      await fillSets(packetFilter, {}, { namespace: space.name });
      await holds();
      const options = { kernel: 'linux', namespace: space.name, packetFilter, dnsmasq: false } as const;
      const again = await Rig.start(t, { dataDir: rig.dataDir, options });
      await holds('fd00:78::/64');
      await again.settled();
      t.is(again.divergence(), undefined);
    },
  );

  testInNamespace(`[R21] what somebody does to sets of ${wanted} by hand is undone`, async (t) => {
    const packetFilter = workingTool(t, wanted);
    const { space, rig } = await realRig(t, {
      options: { packetFilter, addressSetsMs: 500, dnsmasq: false },
    });
    const held = async () => (await readSets(packetFilter, { namespace: space.name }))[SET] ?? [];
    const holdsMain = async () => JSON.stringify(await held()) === JSON.stringify([MAIN]);
    await eventually(holdsMain);
    const set = packetFilter === 'nft' ? ['inet', 'holdfast', SET] : [SET];
    // More than once: each time it is noticed anew.
    for (const times of [1, 2]) {
      run(space.name, packetFilter, 'flush', ...(packetFilter === 'nft' ? ['set'] : []), ...set);
      t.deepEqual(await held(), [], `flushed ${times}`);
      await eventually(holdsMain);
    }
    const more = packetFilter === 'nft' ? ['element', ...set, `{ ${OTHER} }`] : [...set, OTHER];
    run(space.name, packetFilter, 'add', ...more);
    await eventually(holdsMain);
    await rig.settled();
    t.is(rig.divergence(), undefined);
    const watching = () => children().filter((line) => line.includes('nft monitor'));
    t.is(watching().length, packetFilter === 'nft' ? 1 : 0);
    await rig.runtime.stop('test');
    t.deepEqual(watching(), []);
  });

  testInNamespace(
    `[R21] what ${wanted} refuses is alerted and on the health page until it takes the sets`,
    async (t) => {
      const packetFilter = workingTool(t, wanted);
      const { space, rig, config } = await realRig(t, {
        options: { packetFilter, addressSetsMs: 100, dnsmasq: false },
      });
      await eventually(
        async () => (await readSets(packetFilter, { namespace: space.name }))[SET] !== undefined,
      );
      const alerts: string[] = [];
      rig.runtime.services.bus
        .stream(alertRaised, 'test')
        .subscribe(({ payload: { name, labels } }: any) =>
          alerts.push([name, labels.state, labels.reason].join(' ')),
        );
      // Somebody else's set of that name, for addresses of the other family.
      if (packetFilter === 'nft') {
        run(space.name, 'nft', `delete set inet holdfast ${SET}`);
        run(space.name, 'nft', `add set inet holdfast ${SET} { type ipv4_addr; }`);
      } else {
        run(space.name, 'ipset', 'destroy', SET);
        run(space.name, 'ipset', 'create', SET, 'hash:ip');
      }
      config.interface.vlan[LEG].ipv6 = ['fd00:78::1/64'];
      t.is((await rig.set(config)).status, 200);
      await eventually(() => alerts.length > 0);
      t.regex(alerts[0] ?? '', new RegExp(`^router.sets_refused firing .*${packetFilter}`));
      const fact: any = rig.runtime.health().packetFilter;
      t.false(fact.ok);
      t.regex(fact.reason, new RegExp(`address sets are not filled: .*${packetFilter}`));
      t.not(actor(rig).populated[SET]?.[0], 'fd00:78::/64', 'nobody says that it is filled');
      run(space.name, packetFilter, ...(packetFilter === 'nft' ? ['flush ruleset'] : ['destroy', SET]));
      await eventually(() => alerts.some((line) => line.startsWith('router.sets_refused resolved')));
      t.deepEqual(rig.runtime.health().packetFilter, { tool: packetFilter });
      // The first sets that it takes may be those of before the change.
      let held: readonly string[] | undefined;
      await eventually(
        async () => {
          held = (await readSets(packetFilter, { namespace: space.name }))[SET];
          return JSON.stringify(held) === '["fd00:78::/64"]';
        },
        () => `the set holds ${held}`,
      );
      t.deepEqual(rig.runtime.health().packetFilter, { tool: packetFilter });
    },
  );
}

const actor = (rig: Rig): any =>
  (rig.runtime.services.actors.snapshot('router.address_sets/default' as never) as any)?.context ?? {
    populated: {},
  };

testInNamespace(
  '[R21] prefixes inside one another, and no name that a tool would read as more than one',
  async (t) => {
    const tool = workingTool(t, 'nft');
    const space = namespace(t);
    const options = { namespace: space.name };
    const wanted = { [SET]: ['fd00:10::/64', 'fd00:10::/48'] };
    await fillSets(tool, wanted, options);
    t.deepEqual(heldPrefixes(wanted, await readSets(tool, options)), wanted);
    await t.throwsAsync(fillSets(tool, { 'c_net_a } ; flush ruleset_set6': [] }, options), {
      message: /HF_ROUTER_TOOL|did not do its work.*does not take/,
    });
    t.deepEqual(heldPrefixes(wanted, await readSets(tool, options)), wanted);
  },
);

test('[R21] only what a set holds counts as held', (t) => {
  const wanted = { a: ['fd00:1::/64', 'fd00:2::/64'], b: ['fd00:3::/64'] };
  t.deepEqual(heldPrefixes(wanted, { a: ['fd00:1::/48', 'fd00:2::/65'] }), { a: ['fd00:1::/64'] });
});
