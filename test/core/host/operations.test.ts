import test from 'ava';
import { z } from 'zod';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { durationFlag } from '../../../src/core/host/duration.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { askInstance } from '../../../src/core/host/operations/control-client.ts';
import { serveOperation } from '../../../src/core/host/operations/serve.ts';
import { definePlugin } from '../../../src/core/host/plugin/definition.ts';
import { createRuntime } from '../../../src/core/host/runtime/runtime.ts';
import { HoldfastError } from '../../../src/core/kernel/errors/holdfast-error.ts';
import { AlertsError } from '../../../src/plugins/alerts/errors.ts';
import { tempDir } from '../../support/temp.ts';

const lamp = definePlugin({
  name: 'lamp',
  options: z.strictObject({}),
  register(context) {
    context.control((surface) => {
      serveOperation(
        surface,
        '/lamp/on',
        z.strictObject({ watts: z.int() }),
        ({ watts }, { correlation }) => {
          if (watts > 100) throw new AlertsError('HF_ALERTS_UNKNOWN', { kind: 'lamp', name: `${watts}` });
          if (watts < 0) throw new Error('secret-of-the-lamp');
          return { watts, correlation };
        },
      );
    });
  },
});

test('what a command asks is checked, and a refusal arrives as the error that it was thrown as', async (t) => {
  const dataDir = tempDir(t);
  const { plugins } = resolveConfig({ plugins: [lamp()] }, { env: {} });
  const runtime = createRuntime({ plugins, dataDir, logger: createLogger({ level: 'silent' }) });
  t.teardown(() => runtime.stop('test over'));
  const { signal } = new AbortController();
  const ask = (body: object, path = '/lamp/on') =>
    askInstance<{ watts: number }>({ dataDir, signal }, path, body, 'it has no lamp');
  const refusal = async (body: object, path?: string) => {
    const error = await t.throwsAsync<HoldfastError>(() => ask(body, path), { instanceOf: HoldfastError });
    return [error?.code, error?.what];
  };

  t.is((await refusal({}))[0], 'HF_CONTROL_UNREACHABLE', 'nothing runs yet');
  await runtime.start();
  t.like(await ask({ watts: 7 }), { watts: 7 });
  t.deepEqual(await refusal({ watts: 101 }), ['HF_ALERTS_UNKNOWN', 'There is no lamp 101.']);
  const [code, what] = await refusal({ watts: 'many' });
  t.is(code, 'HF_HTTP_REQUEST_INVALID');
  t.regex(String(what), /watts/);
  t.regex(String((await refusal({}, '/lamp/off'))[1]), /it has no lamp/);
  t.notRegex(String((await refusal({ watts: -1 }))[1]), /secret-of-the-lamp/);
});

test('a time that is typed at a command is told with its bounds when it is none', (t) => {
  const bounds = { least: '1m', most: '30d', command: 'lamp on' };
  t.is(durationFlag('--for', '2h', bounds), 7_200_000);
  for (const text of ['59s', '31d', 'soon', '', undefined]) {
    t.throws(() => durationFlag('--for', text, bounds), { code: 'HF_CLI_USAGE', message: /from 1m to 30d/ });
  }
});
