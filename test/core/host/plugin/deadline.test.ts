import { spawnSync } from 'node:child_process';
import test from 'ava';

test('[C12] a start that hangs with nothing else open still ends in its deadline, not in a silent exit', (t) => {
  const program = `
    import { PluginHost } from './src/core/host/plugin/host.ts';
    const definition = { name: 'hangs', start: () => new Promise(() => {}), register() {} };
    const logger = { error() {}, child: () => logger };
    const host = new PluginHost([{ definition, options: {} }], { deadlineMs: 20 });
    await host.start({ logger, bus: { release() {} } }).catch((error) => console.log(error.code));
  `;
  const child = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: new URL('../../../..', import.meta.url),
    encoding: 'utf8',
  });
  t.is(child.stdout.trim(), 'HF_PLUGIN_DEADLINE', child.stderr);
  t.is(child.status, 0);
});
