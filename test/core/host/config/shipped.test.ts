import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';
import { loadConfig } from '../../../../src/core/host/config/load.ts';
import { PluginHost } from '../../../../src/core/host/plugin/host.ts';
import type { HoldfastError } from '../../../../src/core/kernel/errors/holdfast-error.ts';

const cwd = fileURLToPath(new URL('../../../../', import.meta.url));

test('[C11] the plugins.config.ts of the checkout loads, and its plugins fit together', async (t) => {
  const { plugins } = await loadConfig({ cwd, env: {} });
  const host = new PluginHost(plugins);
  const { actors, surfaces } = host.register();
  t.true(actors.length > 0 && surfaces.length > 0);
  t.true(host.status().every(({ state }) => state === 'registered'));
});

test("[C11] its plugins are those that a configuration elsewhere imports from 'holdfast/plugins/<name>'", async (t) => {
  const path = 'holdfast/plugins/router';
  await loadConfig({ cwd, env: {} }); // from here on `holdfast` means this process's own modules
  const { router } = await import(path);
  t.is(router, (await import('../../../../src/plugins/router/index.ts')).router);
});

test('[C11] a port that is none ends the load of the shipped configuration by the name of its variable', async (t) => {
  const error = await t.throwsAsync<HoldfastError>(
    loadConfig({ cwd, env: { HOLDFAST_ROUTER_PORT: 'eight' } }),
    { code: 'HF_CONFIG_ENV' },
  );
  t.regex(error.what, /^The value of HOLDFAST_ROUTER_PORT cannot be used: expected number/);
});

const LISTED = `
  import { registerHooks } from 'node:module';
  const loaded = [];
  registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context); } });
  const { loadConfig } = await import('./src/core/host/config/load.ts');
  await loadConfig({ env: {} });
  console.log(JSON.stringify(loaded));`;

test('[C13] without a server of NATS the shipped configuration loads no module of several hosts', async (t) => {
  const { HOLDFAST_NATS_URL: _, ...env } = process.env;
  const args = ['--input-type=module', '-e', LISTED];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd, env });
  const loaded: string[] = JSON.parse(stdout);
  t.true(loaded.some((url) => url.includes('/plugins/gateway/')));
  t.deepEqual(
    loaded.filter((url) => /\/plugins\/cluster\/|\/machines\/cluster\/|@nats-io/.test(url)),
    [],
  );
});
