import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { Rig } from '../rig.ts';
import { setUpDesk, until } from './setup.ts';

const LAB = '--set=interface.vlan.eth1.40.ipv4=10.77.41.1/24';
const SECRET = /EXAMPLEx(PRIVATE|PRESHARED)|example-not-a-secret/;

test.serial(
  '[R31] apply shows the difference, appends, runs the check inside the window, and commits',
  async (t) => {
    const { rig, holdfast } = await setUpDesk(t);
    const seen = join(rig.dataDir, 'seen.json');
    const check = `curl -s ${rig.url}/v1/config/active > ${seen} 2>/dev/null || node -e "fetch('${rig.url}/v1/config/active').then(async (a) => require('fs').writeFileSync('${seen}', await a.text()))"; echo looked`;
    const { code, out, err } = await holdfast(['router', 'apply', LAB, '--check', check]);
    t.is(code, 0, err);
    t.regex(out, /~ interface\.vlan\.eth1\.40\.ipv4 +"10\.77\.40\.1\/24" → "10\.77\.41\.1\/24"/);
    t.regex(out, / {2}\| looked/);
    t.regex(out, /Kept\. The config is ncid [0-9a-f]{32}/);
    t.is(JSON.parse(readFileSync(seen, 'utf8')).interface.vlan['eth1.40'].ipv4, '10.77.41.1/24');
    t.is((await rig.active()).interface.vlan['eth1.40'].ipv4, '10.77.41.1/24');
    const [entry, ...more] = await rig.history();
    t.like(entry, { op: 'append', changed: ['interface.vlan.eth1.40.ipv4'] });
    t.regex(entry.who, /holdfast-cli/);
    t.deepEqual(more, []);
    t.is(rig.actor().context.pending, undefined);
  },
);

test.serial('[R31] of several checks the first that fails reverts, and exit code 3 says so', async (t) => {
  const { rig, holdfast, standing } = await setUpDesk(t);
  const before = await standing();
  const checks = ['--check', 'echo one', '--check', 'echo two >&2; exit 7', '--check', 'echo three'];
  const { code, out } = await holdfast(['router', 'apply', LAB, ...checks]);
  t.is(code, 3);
  t.regex(out, /\| one\ncheck passed[\s\S]*\| two\ncheck failed \(7\)[\s\S]*Reverted: a check failed \(7\)/);
  t.notRegex(out, /three/);
  t.deepEqual(await standing(), before);
  t.deepEqual(
    (await rig.history()).map(({ op }) => op),
    ['revert', 'append'],
  );
});

test.serial(
  '[R40] a check is cut off before the window ends, with all that it started, and the command reverts',
  async (t) => {
    const { rig, holdfast, standing } = await setUpDesk(t, 8_000);
    const before = await standing();
    const { code, out } = await holdfast(['router', 'apply', LAB, '--check', 'sleep 60 | cat', '--json']);
    t.is(code, 3);
    t.like(JSON.parse(out), {
      outcome: 'reverted',
      checks: [{ command: 'sleep 60 | cat', outcome: 'cut off' }],
    });
    t.deepEqual(await standing(), before);
    const [entry] = await rig.history();
    t.is(entry.op, 'revert');
    t.regex(entry.who, /holdfast-cli/, 'the command reverted, not the deadline');
  },
);

test.serial('[R31] an interrupt inside the window reverts, and ends the check', async (t) => {
  const { holdfast, standing } = await setUpDesk(t);
  const before = await standing();
  const interrupt = new AbortController();
  const onOut = (text: string) => {
    if (/\| begun/.test(text)) interrupt.abort('SIGINT');
  };
  const argv = ['router', 'apply', LAB, '--check', 'echo begun; sleep 60'];
  const { code, out } = await holdfast(argv, { interrupted: interrupt.signal, onOut });
  t.is(code, 3);
  t.regex(out, /Reverted: interrupted \(SIGINT\)/);
  t.deepEqual(await standing(), before);
});

test.serial(
  '[R31] --dry-run posts nothing, and without a terminal somebody must have confirmed',
  async (t) => {
    const { rig, holdfast } = await setUpDesk(t);
    const dry = await holdfast(['router', 'apply', LAB, '--dry-run', '--json']);
    t.is(dry.code, 0);
    t.like(JSON.parse(dry.out), { outcome: 'dry run', changes: [{ path: 'interface.vlan.eth1.40.ipv4' }] });
    const unconfirmed = await holdfast(['router', 'apply', LAB]);
    t.is(unconfirmed.code, 2);
    t.regex(unconfirmed.err, /--check, --check-sets, --yes or --dry-run/);
    for (const argv of [[], [LAB, '--edit'], ['a.json', LAB]])
      t.is((await holdfast(['router', 'apply', ...argv])).code, 2, argv.join(' '));
    t.deepEqual(await rig.history(), []);
    t.is((await holdfast(['router', 'apply', LAB, '--yes'])).code, 0);
    t.regex((await holdfast(['router', 'apply', LAB, '--yes'])).out, /Nothing would change/);
    t.is((await rig.history()).length, 1);
  },
);

test.serial('[R4] apply and restore refuse a file with control fields, and post nothing', async (t) => {
  const { rig, holdfast, cwd } = await setUpDesk(t);
  const file = join(cwd, 'change.json');
  for (const field of ['transactionOp', 'transID', 'ignoreNcid', 'reqId']) {
    const config = await rig.active();
    config.interface.vlan['eth1.40'].ipv4 = '10.77.41.1/24';
    writeFileSync(file, JSON.stringify({ ...config, [field]: 'append' }));
    for (const verb of ['apply', 'restore']) {
      const { code, err } = await holdfast(['router', verb, file, '--yes']);
      t.is(code, 1);
      t.regex(err, new RegExp(`HF_ROUTER_CONTROL_FIELDS[^]*${field}`));
    }
  }
  t.deepEqual(await rig.history(), []);
});

test.serial(
  '[R3,R31] a file made from an older config is refused; one without an ncid applies to what is active',
  async (t) => {
    const { rig, holdfast, cwd } = await setUpDesk(t);
    const file = join(cwd, 'change.json');
    const config = await rig.active();
    config.interface.vlan['eth1.40'].ipv4 = '10.77.41.1/24';
    writeFileSync(file, JSON.stringify({ ...config, ncid: 'a'.repeat(32) }));
    const stale = await holdfast(['router', 'apply', file, '--yes']);
    t.is(stale.code, 1);
    t.regex(stale.err, /HF_ROUTER_NCID_MISMATCH/);
    const { ncid: _, ...without } = config;
    writeFileSync(file, JSON.stringify(without));
    t.is((await holdfast(['router', 'apply', file, '--yes'])).code, 0);
    t.is((await rig.active()).interface.vlan['eth1.40'].ipv4, '10.77.41.1/24');
  },
);

test.serial(
  '[R31,R36,R37] what the router would refuse is told before anything is posted, with its path',
  async (t) => {
    const { rig, holdfast } = await setUpDesk(t);
    const bad = await holdfast([
      'router',
      'apply',
      '--set',
      'interface.vlan.eth1.40.ipv4=10.77.41.1',
      '--yes',
    ]);
    t.is(bad.code, 1);
    t.regex(bad.err, /HF_ROUTER_CONFIG_INVALID[\s\S]*interface\.vlan\.eth1\.40\.ipv4/);
    const route = await holdfast([
      'router',
      'apply',
      '--set',
      'routing.global.static=[{"via":"10.0.0.1"}]',
      '--yes',
    ]);
    t.is(route.code, 1);
    t.regex(route.err, /HF_ROUTER_STATIC_ROUTE[\s\S]*durable lever/);
    t.deepEqual(await rig.history(), []);
  },
);

test.serial(
  '[R31] while a transaction of somebody else is pending, apply is refused and leaves it alone',
  async (t) => {
    const { rig, holdfast } = await setUpDesk(t);
    const config = await rig.active();
    t.is((await rig.set(config, { transactionOp: 'append', transID: 'theirs' })).status, 200);
    const { code, out } = await holdfast(['router', 'apply', LAB, '--yes']);
    t.is(code, 1);
    t.regex(out, /Refused, nothing was applied: .*transaction/i);
    t.is(rig.actor().context.pending.transID, 'theirs');
  },
);

test.serial('[R34] a change that makes two networks share a set name is warned of', async (t) => {
  const { holdfast } = await setUpDesk(t);
  const uuid = 'df62a84c-ed88-0000-0000-000000000000';
  const { code, err } = await holdfast([
    'router',
    'apply',
    '--set',
    `interface.vlan.eth1.20.meta.uuid=${uuid}`,
    '--dry-run',
  ]);
  t.is(code, 0);
  t.regex(
    err,
    /Warning: Main \(eth1\.10\) and IoT \(eth1\.20\) share the address set c_net_df62a84c-ed88_set6/,
  );
});

test.serial(
  '[R35,R31] a copy from get --out is edited and applied; its secrets come back untouched',
  async (t) => {
    const { rig, holdfast, cwd } = await setUpDesk(t);
    const file = join(cwd, 'copy.json');
    t.is((await holdfast(['router', 'get', '--out', file])).code, 0);
    const text = readFileSync(file, 'utf8');
    t.notRegex(text, SECRET);
    writeFileSync(file, text.replace('10.77.40.1/24', '10.77.41.1/24'));
    const { code, out, err } = await holdfast(['router', 'apply', file, '--yes']);
    t.is(code, 0, err);
    t.is(out.split('\n').filter((line) => /^[+~-] /.test(line)).length, 1);
    const now = await rig.active();
    t.is(now.interface.vlan['eth1.40'].ipv4, '10.77.41.1/24');
    t.regex(now.interface.wireguard.wg0.privateKey, /EXAMPLExPRIVATE/);
    writeFileSync(
      file,
      text.replace(/"meshKey": "[^"]*"/, '"meshKey": "[redacted]"').replace(/"ncid": "[^"]*",/, ''),
    );
    const redacted = await holdfast(['router', 'apply', file, '--yes']);
    t.is(redacted.code, 1);
    t.regex(redacted.err, /HF_ROUTER_PLACEHOLDER[\s\S]*apc\.globalSysConfig\.meshKey/);
  },
);

test.serial(
  '[R31] diff compares entries of the history and the active config; restore puts one back safely',
  async (t) => {
    const { rig, holdfast, standing } = await setUpDesk(t);
    t.is((await holdfast(['router', 'apply', LAB, '--yes'])).code, 0);
    const first = await standing();
    const { ncid } = await rig.active();
    t.is(
      (await holdfast(['router', 'apply', '--set', 'interface.vlan.eth1.20.meta.name=Things', '--yes'])).code,
      0,
    );
    const diff = await holdfast(['router', 'diff', '2']);
    t.is(diff.out, '~ interface.vlan.eth1.20.meta.name  "IoT" → "Things"\n');
    t.is((await holdfast(['router', 'diff', ncid.slice(0, 8), 'active'])).out, diff.out);
    t.is((await holdfast(['router', 'diff', '1', 'active'])).out, 'No difference.\n');
    const missing = await holdfast(['router', 'diff', '77']);
    t.is(missing.code, 1);
    t.regex(missing.err, /HF_ROUTER_ENTRY[\s\S]*has 3 entries/);
    const kept = await holdfast(['router', 'restore', '2', '--check', 'true']);
    t.is(kept.code, 0, kept.err);
    t.deepEqual(await standing(), first);
    t.is(
      (await holdfast(['router', 'restore', 'seed', '--check', 'true'])).code,
      0,
      'before the first write',
    );
    t.is((await holdfast(['router', 'diff', '5', 'active'])).out, 'No difference.\n');
  },
);

test.serial(
  '[R31] with no instance and no --url, apply says where it looked; with a --url it is told a bad one',
  async (t) => {
    const { rig, holdfast } = await setUpDesk(t);
    t.is((await holdfast(['router', 'apply', LAB, '--yes', '--url', 'router.lan'])).code, 2);
    t.is((await holdfast(['router', 'apply', LAB, '--yes', '--url', rig.url])).code, 0);
    await rig.runtime.stop('test');
    const { code, err } = await holdfast(['router', 'apply', LAB, '--yes']);
    t.is(code, 1);
    t.regex(err, /HF_ROUTER_UNREACHABLE[\s\S]*no instance with a router runs on/);
  },
);

test.serial('[R31] an interrupt before anything was posted ends with 1, and nothing is posted', async (t) => {
  const { rig, holdfast } = await setUpDesk(t);
  const { code, err } = await holdfast(['router', 'apply', LAB, '--yes'], {
    interrupted: AbortSignal.abort('SIGTERM'),
  });
  t.is(code, 1);
  t.regex(err, /Interrupted \(SIGTERM\); nothing was posted/);
  t.deepEqual(await rig.history(), []);
});

test.serial('[R31] the history here is not restored to a router elsewhere', async (t) => {
  const { rig, holdfast } = await setUpDesk(t);
  t.is((await holdfast(['router', 'apply', LAB, '--yes'])).code, 0);
  const { code, err } = await holdfast(['router', 'restore', '1', '--yes', '--url', rig.url]);
  t.is(code, 2);
  t.regex(err, /for the one of --url, give a file/);
});

test.serial(
  '[R31] a router that is gone when the commit is due leaves exit 4, and reverts when it is back',
  async (t) => {
    const { rig, holdfast, standing, cwd } = await setUpDesk(t, 12_000);
    const before = await standing();
    const go = join(cwd, 'go');
    const onOut = (text: string) => {
      if (/\| begun/.test(text)) void rig.runtime.stop('test').then(() => writeFileSync(go, ''));
    };
    const argv = [
      'router',
      'apply',
      LAB,
      '--check',
      `echo begun; while [ ! -e '${go}' ]; do sleep 0.1; done`,
    ];
    const { code, out } = await holdfast(argv, { onOut });
    t.is(code, 4, out);
    t.regex(out, /Unknown: the commit: .*reverts by itself/);
    const again = await Rig.start(t, { dataDir: rig.dataDir, options: { windowMs: 12_000 } });
    await until(() => again.actor().context.pending === undefined);
    const { ncid: _, ...after } = await again.active();
    t.deepEqual(after, before);
  },
);
