import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { examine, judgeDisk, nodeCheck } from '../../src/cli/doctor.ts';
import type { CheckDefinition } from '../../src/core/host/plugin/diagnosis.ts';
import { RouterError } from '../../src/plugins/router/errors.ts';
import { call, writeConfig } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';

const MIB = 1024 * 1024;

const withChecks = (...checks: string[]) => `
  const checked = definePlugin({
    name: 'checked',
    options: z.strictObject({}),
    register(context) {
      ${checks.map((check) => `context.check(${check});`).join('\n')}
    },
  });
  export default defineConfig({ plugins: [checked()] });`;
const well = `{ name: 'door.lock', run: () => ({ state: 'ok', lookedAt: 'the lock', found: 'shut' }) }`;
const ill = `{ name: 'door.hinge', run: async () =>
  ({ state: 'fail', lookedAt: 'the hinge', found: 'it creaks', remedy: 'Oil it.' }) }`;

test.serial('doctor looks at the machine and at what plugins declare, and starts nothing', async (t) => {
  const cwd = tempDir(t);
  writeConfig(cwd, withChecks(well));
  const { code, out } = await call(['doctor'], { cwd });
  t.is(code, 0);
  t.regex(out, /^ok +host\.node +Node 24\./m);
  t.regex(out, /^unknown +host\.data +there is none yet/m);
  t.regex(out, /^ok +host\.disk +[\d.]+ [KMGT]B are free/m);
  t.regex(out, /^ok +host\.config +it loads: checked/m);
  t.regex(out, /^ok +door\.lock +shut/m);
  t.regex(out, /^unknown +host\.witness[\s\S]*?do +Start the instance, and look again/m);
  t.regex(out, /12 checks: 6 ok, 0 warnings, 6 unknown, 0 to fix/);
});

test.serial(
  'a failed check is exit 1, says what was looked at and what to do; --json has the same',
  async (t) => {
    const cwd = tempDir(t);
    writeConfig(cwd, withChecks(well, ill));
    const { code, out } = await call(['doctor', 'door'], { cwd });
    t.is(code, 1);
    t.regex(out, /fail {2}door\.hinge +it creaks\n +looked at {2}the hinge\n +do {9}Oil it\./);
    t.regex(out, /2 checks: 1 ok, 0 warnings, 1 to fix: door\.hinge\n$/);
    t.notRegex(out, /host/);
    const json = await call(['doctor', 'door', '--json'], { cwd });
    t.is(json.code, 1);
    t.deepEqual(JSON.parse(json.out), {
      ok: false,
      checks: [
        { name: 'door.lock', state: 'ok', lookedAt: 'the lock', found: 'shut' },
        { name: 'door.hinge', state: 'fail', lookedAt: 'the hinge', found: 'it creaks', remedy: 'Oil it.' },
      ],
    });
  },
);

test.serial('an area that is none is refused with those that are', async (t) => {
  const cwd = tempDir(t);
  writeConfig(cwd, withChecks(well));
  const { code, err } = await call(['doctor', 'window'], { cwd });
  t.is(code, 2);
  t.regex(err, /no checks named window; the areas are host, security, door/);
});

test.serial(
  'a configuration that cannot be loaded is a finding, and the machine is looked at all the same',
  async (t) => {
    const cwd = tempDir(t);
    writeConfig(cwd, 'export default defineConfig({ plugins: [nobody()] });');
    for (const argv of [['doctor'], ['doctor', 'router']]) {
      const { code, out } = await call(argv, { cwd, env: { HOLDFAST_DATA_DIR: join(cwd, 'data') } });
      t.is(code, 1);
      t.regex(out.replace(/\s+/g, ' '), /fail host\.config .*nobody is not defined/);
    }
  },
);

test.serial('[R30] of a data folder that is not there nothing is ok', async (t) => {
  const cwd = tempDir(t);
  writeConfig(cwd, withChecks(well));
  const { out, code } = await call(['doctor', 'host', '--data-dir', join(cwd, 'none'), '--json'], { cwd });
  t.is(code, 0);
  t.like(
    JSON.parse(out).checks.find(({ name }: any) => name === 'host.data'),
    { state: 'unknown', found: 'there is none yet: the first start creates it' },
  );
});

test.serial('a data folder that other users can read is reported', async (t) => {
  const cwd = tempDir(t);
  writeConfig(cwd, withChecks(well));
  const dataDir = join(cwd, 'data');
  mkdirSync(dataDir);
  chmodSync(dataDir, 0o755);
  const { code, out } = await call(['doctor', 'host', '--data-dir', dataDir], { cwd });
  t.is(code, 0, 'it is to know, not to fix');
  t.regex(out, /warn +host\.data +other users can read it \(mode 0755\)\n.*\n +do +chmod 700/);
});

test.serial('[C9] a data folder that others could replace is a failure that names the folder', async (t) => {
  const cwd = tempDir(t);
  writeConfig(cwd, withChecks(well));
  const open = join(cwd, 'open');
  mkdirSync(join(open, 'data'), { recursive: true, mode: 0o700 });
  chmodSync(open, 0o777);
  const { code, out } = await call(['doctor', 'host', '--data-dir', join(open, 'data')], { cwd });
  t.is(code, 1);
  t.regex(out, /fail +host\.data +others may write to .*open \(mode 0777\)/);
});

test('a Node that is too old, and a disk that is nearly full, are told before they hurt', (t) => {
  t.is(nodeCheck('24.12.0').state, 'ok');
  t.is(nodeCheck('26.0.0').state, 'ok');
  t.is(nodeCheck('24.11.9').state, 'fail');
  t.is(nodeCheck('20.19.0').state, 'fail');
  t.is(judgeDisk(600 * MIB, '/data').state, 'ok');
  t.is(judgeDisk(100 * MIB, '/data').state, 'warn');
  t.is(judgeDisk(31 * MIB, '/data').state, 'fail');
});

test('a check that throws, or never ends, harms no other and says so in its place', async (t) => {
  const checks: CheckDefinition[] = [
    {
      name: 'a.coded',
      run: () => {
        throw new RouterError('HF_ROUTER_UNREACHABLE', { reason: 'nothing listens there' });
      },
    },
    { name: 'a.endless', run: () => new Promise(() => {}) },
    { name: 'a.broken', run: () => (undefined as any).field },
    { name: 'a.well', run: () => ({ state: 'ok', lookedAt: 'x', found: 'Bearer abcdef0123456789abcdef01' }) },
  ];
  const signal = new AbortController().signal;
  const findings = await examine(checks, { dataDir: '/nowhere', signal }, 50);
  t.deepEqual(
    findings.map(({ name, state }) => [name, state]),
    [
      ['a.coded', 'fail'],
      ['a.endless', 'fail'],
      ['a.broken', 'fail'],
      ['a.well', 'ok'],
    ],
  );
  t.like(findings[0], { found: 'The router API gave no usable answer: nothing listens there.' });
  t.regex(findings[0]?.remedy ?? '', /HOLDFAST_ROUTER_URL/);
  t.regex(findings[1]?.found ?? '', /within 0.05 s/);
  t.notRegex(findings[3]?.found ?? '', /abcdef0123/, 'a secret is masked');
});
