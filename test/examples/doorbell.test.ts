import { fileURLToPath } from 'node:url';
import test from 'ava';
import { pino } from 'pino';
import { loadConfig } from '../../src/core/host/config/load.ts';
import { createRuntime } from '../../src/core/host/runtime/runtime.ts';
import { type CallOptions, call } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';

const config = fileURLToPath(new URL('../../examples/doorbell/plugins.config.ts', import.meta.url));

test('[C11] the example plugin serves, decides, acts and reports its own error, and its log says so', async (t) => {
  const dataDir = tempDir(t);
  const { plugins } = await loadConfig({ file: config, env: { HOLDFAST_DOORBELL_PORT: '0' } });
  const [plugin] = plugins;
  const jamming = { ...plugin!, options: { ...plugin!.options, jamsAfter: 1 } };
  const chimed = Promise.withResolvers<void>();
  const logger = pino({}, { write: (line: string) => line.includes('doorbell.chimed') && chimed.resolve() });
  const runtime = createRuntime({ plugins: [jamming], dataDir, logger });
  await runtime.start();
  const ring = async (door: string) => {
    const answer = await fetch(`${runtime.surfaces.doorbell?.url}/ring/${door}`, { method: 'POST' });
    return [answer.status, await answer.json()];
  };
  t.deepEqual(await ring('front'), [200, { rung: true }]);
  t.deepEqual(await ring('front'), [200, { rung: true }]);
  t.deepEqual(await ring('back'), [200, { rung: true }]);
  await chimed.promise;
  await runtime.stop('test');

  const options: CallOptions = { cwd: tempDir(t) };
  const argv = ['log', 'list', '--all', '--json', '--data-dir', dataDir, '--config', config];
  const { code, out, err } = await call(argv, options);
  t.is(code, 0, err);
  const records: any[] = JSON.parse(out);
  const rings = records.filter(({ event }) => event.type === 'RUNG');
  t.deepEqual(
    rings.map(({ actor, to, ignored, effects }) => [actor, to.value, ignored ?? false, effects.length]),
    [
      ['doorbell.door/front', 'resting', false, 2],
      ['doorbell.door/front', 'resting', true, 0],
      ['doorbell.door/back', 'resting', false, 2],
    ],
  );
  t.true(records.some(({ event }) => event.type === 'effect.done'));
  const verified = await call(['replay', 'verify', '--data-dir', dataDir, '--config', config], options);
  t.is(verified.code, 0, verified.err);
});
