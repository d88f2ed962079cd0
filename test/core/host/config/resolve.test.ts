import { join, resolve } from 'node:path';
import test from 'ava';
import { z } from 'zod';
import { resolveDataDir } from '../../../../src/core/host/config/data-dir.ts';
import { defineConfig } from '../../../../src/core/host/config/define-config.ts';
import { resolveConfig } from '../../../../src/core/host/config/resolve.ts';
import { definePlugin } from '../../../../src/core/host/plugin/definition.ts';
import type { HoldfastError } from '../../../../src/core/kernel/errors/holdfast-error.ts';

const radio = definePlugin({
  name: 'radio',
  options: z.strictObject({
    port: z.int().min(0).max(65_535).default(8837),
    driver: z.enum(['memory', 'linux']).default('memory'),
    quiet: z.boolean().default(false),
    name: z.string().default('radio'),
    store: z.strictObject({ url: z.url() }).optional(),
    legs: z.array(z.strictObject({ intf: z.string(), label: z.string().optional() })).default([]),
    token: z.union([z.string(), z.strictObject({ file: z.string() })]).optional(),
  }),
  env: {
    RADIO_PORT: 'port',
    RADIO_QUIET: 'quiet',
    RADIO_NAME: 'name',
    RADIO_STORE_URL: 'store.url',
    RADIO_LEGS: 'legs',
    RADIO_DRIVER: 'driver',
  },
  register() {},
});

const file = '/etc/holdfast/plugins.config.ts';
const options = (given: object, env = {}) =>
  resolveConfig(defineConfig({ plugins: [radio(given)] }), { file, env }).plugins[0]?.options;
const refusal = (config: unknown, env = {}) => {
  try {
    resolveConfig(config as never, { file, env });
  } catch (error) {
    return error as HoldfastError;
  }
  throw new Error('it was accepted');
};
const refused = (given: object, env = {}) => refusal({ plugins: [radio(given as never)] }, env);

test('[C11] options that are left out have their defaults', (t) => {
  t.deepEqual(options({}), { port: 8837, driver: 'memory', quiet: false, name: 'radio', legs: [] });
});

test('[C11] a misspelt option is refused by file, plugin and name, and the nearest one is suggested', (t) => {
  const error = refused({ prot: 1 });
  t.is(error.code, 'HF_CONFIG_OPTION');
  t.is(error.what, `${file}: plugin radio, option prot: there is no such option.`);
  t.is(error.remedy, `Correct the option in ${file}. Did you mean "port"?`);
});

test('[C11] a misspelt option is found inside lists, objects and unions, by its whole path', (t) => {
  const nested = (given: object) => {
    const { details } = refused(given);
    return `${details.option}${details.hint}`;
  };
  t.is(nested({ legs: [{ intf: 'a' }, { intf: 'b', labl: 'B' }] }), 'legs[1].labl Did you mean "label"?');
  t.is(nested({ store: { url: 'redis://x', Url: '' } }), 'store.Url Did you mean "url"?');
  t.is(nested({ token: { file: 'x', fiel: 'y' } }), 'token.fiel Did you mean "file"?');
  t.is(nested({ somethingElseEntirely: 1 }), 'somethingElseEntirely');
});

test('[C11] an option of the wrong type is refused by name, with what was expected and without its value', (t) => {
  t.regex(refused({ port: 'hunter2' }).what, /option port: expected number, received string\.$/);
  t.regex(refused({ port: 70_000 }).what, /option port: too big: expected number to be <=65535\.$/);
  t.regex(refused({ legs: [{}] }).what, /option legs\[0\]\.intf: it is required \(string\)\.$/);
  t.regex(
    refused({ token: 5 }).what,
    /option token: expected string, .* or expected object, received number\.$/,
  );
  t.false(refused({ port: 'hunter2' }).message.includes('hunter2'));
});

test('[C11] a value that is none of those allowed gets the nearest one suggested', (t) => {
  const error = refused({ driver: 'memroy' });
  t.regex(error.what, /option driver: it must be "memory" or "linux"\.$/);
  t.regex(error.remedy, /Did you mean "memory"\?/);
});

test('[C11] several mistakes are reported together, each with its plugin and option', (t) => {
  const error = refused({ prot: 1, driver: 'x', legs: 'none' }, { RADIO_QUIET: 'perhaps' });
  t.is(error.code, 'HF_CONFIG_INVALID');
  t.is(error.details.count, 4);
  const lines = error.what.split('\n  - ').slice(1);
  t.deepEqual(
    lines.map((line) => line.split(':')[0]),
    ['HF_CONFIG_ENV', 'HF_CONFIG_OPTION', 'HF_CONFIG_OPTION', 'HF_CONFIG_OPTION'],
  );
  t.regex(error.what, /option prot: there is no such option\. Did you mean "port"\?/);
  t.is((error.cause as AggregateError).errors.length, 4);
});

test('[C11] a plugin that was not called, and what is no plugin at all, are refused by their place', (t) => {
  t.regex(
    refusal({ plugins: [radio] }).what,
    /plugins\[0\] is the plugin radio itself: call it, as in radio\(\)/,
  );
  t.regex(refusal({ plugins: [radio(), null] }).what, /plugins\[1\] is not a plugin made with definePlugin/);
});

test('[C11] a misspelt or wrong setting beside the plugins is refused by name', (t) => {
  const misspelt = refusal({ plugins: [], dta: {} });
  t.is(misspelt.code, 'HF_CONFIG_SETTING');
  t.is(misspelt.message, `HF_CONFIG_SETTING: ${file}: dta: there is no such option.`);
  t.regex(misspelt.remedy, /Did you mean "data"\?/);
  t.regex(refusal({ plugins: [], data: { lingerMs: -1 } }).what, /data\.lingerMs: too small/);
  t.regex(refusal({ plugins: {} }).what, /plugins: expected array/);
});

test('[C11] the environment overrides the file, coerced to what the option is', (t) => {
  const env = {
    RADIO_PORT: '0',
    RADIO_QUIET: 'yes',
    RADIO_NAME: '1',
    RADIO_STORE_URL: 'redis://127.0.0.1:6379',
    RADIO_LEGS: '[{"intf":"eth1.10"}]',
  };
  t.deepEqual(options({ port: 1234, name: 'file', driver: 'linux' }, env), {
    port: 0,
    driver: 'linux',
    quiet: true,
    name: '1',
    store: { url: 'redis://127.0.0.1:6379' },
    legs: [{ intf: 'eth1.10' }],
  });
  t.is(options({ port: 1234 }, { RADIO_PORT: '' })?.port, 1234, 'an empty variable counts as unset');
  t.is(options({ quiet: true }, { RADIO_QUIET: '0' })?.quiet, false);
});

test('[C11] the environment fixes a file whose option is wrong', (t) => {
  t.is(options({ port: 'x' as never }, { RADIO_PORT: '1' })?.port, 1);
});

test('[C11] a variable that cannot be used is refused by its name, never showing its value', (t) => {
  const bad = (name: string, value: string) => refused({}, { [name]: value });
  t.is(bad('RADIO_PORT', 'hunter2').code, 'HF_CONFIG_ENV');
  t.regex(
    bad('RADIO_PORT', 'hunter2').what,
    /^The value of RADIO_PORT cannot be used: expected number.*\(option port\)\.$/,
  );
  t.regex(
    bad('RADIO_PORT', '70000').what,
    /^The value of RADIO_PORT .* too big: expected number to be <=65535/,
  );
  t.regex(bad('RADIO_DRIVER', 'hunter2').what, /it must be "memory" or "linux" \(option driver\)/);
  t.regex(bad('RADIO_STORE_URL', 'hunter2').what, /invalid URL \(option store\.url\)/);
  t.regex(bad('RADIO_LEGS', '[{"itnf":"hunter2"}]').what, /value of RADIO_LEGS cannot be used/);
  for (const name of ['RADIO_PORT', 'RADIO_QUIET', 'RADIO_LEGS', 'RADIO_DRIVER', 'RADIO_STORE_URL']) {
    t.false(bad(name, 'hunter2').message.includes('hunter2'), name);
  }
});

test('[C11] a definition that maps a variable to an option it does not have is refused', (t) => {
  const wrong = definePlugin({
    name: 'wrong',
    options: z.strictObject({}),
    env: { X: 'port' },
    register() {},
  });
  const error = refusal({ plugins: [wrong()] }, { X: '1' });
  t.regex(error.what, /plugin wrong maps X to port, which is none of its options/);
});

test('the data folder is that of the flag, else of the environment, else of the file, else .holdfast', (t) => {
  const cwd = resolve('/srv/here');
  const env = { HOLDFAST_DATA_DIR: 'from-env' };
  const config = (dir?: string) => defineConfig({ plugins: [], ...(dir && { data: { dir } }) });
  const of = (dir: string | undefined, source: object) =>
    resolveConfig(config(dir), { cwd, env: {}, ...source }).dataDir;
  t.is(of('from-file', { file, env, dataDir: 'from-flag' }), join(cwd, 'from-flag'));
  t.is(of('from-file', { file, env }), join(cwd, 'from-env'));
  t.is(of('from-file', { file }), '/etc/holdfast/from-file');
  t.is(of('from-file', {}), join(cwd, 'from-file'));
  t.is(of(undefined, { file }), join(cwd, '.holdfast'));
  t.is(resolveDataDir({ cwd, env: { HOLDFAST_DATA_DIR: '/var/lib/hf' } }), '/var/lib/hf');
});
