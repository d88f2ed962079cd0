// What the pages of telemetry say where no database answers.
import test from 'ava';
import { z } from 'zod';
import { definePlugin } from '../../../src/core/host/plugin/definition.ts';
import { contributePages } from '../../../src/plugins/columnar/console/pages.ts';
import type { Database } from '../../../src/plugins/columnar/database.ts';
import { columnar } from '../../../src/plugins/columnar/index.ts';
import { ConsoleRig } from '../console/console-rig.ts';

const PAGES = ['logs', 'traces', 'trace?trace=0af7651916cd43dd8448eb211c80319c', 'sql?sql=SELECT%201'];

test('[C15] where the database does not run or does not answer, each page of telemetry says so and what to do', async (t) => {
  // Nothing listens on the port for discarding.
  const away = await ConsoleRig.start(t, { others: [columnar({ url: 'http://127.0.0.1:9' })] });
  const failed = definePlugin({
    name: 'failed',
    options: z.strictObject({}),
    onFailure: 'continue',
    start(): { readonly database: Database } {
      throw new Error('the engine cannot be loaded');
    },
    register: (context) => contributePages(context, { url: 'http://127.0.0.1:9' }),
  });
  const off = await ConsoleRig.start(t, { others: [failed()] });
  const codes = async (rig: ConsoleRig) => {
    await rig.login();
    const { pages } = await rig.ask('/api/pages');
    t.deepEqual(
      pages.filter(({ name }: any) => name !== 'ingest').map(({ name }: any) => name),
      ['logs', 'traces', 'trace', 'sql'],
    );
    const answers = await Promise.all(PAGES.map((page) => rig.send(`/api/pages/${page}`)));
    await rig.ask('/api/overview');
    return answers.map(({ status, body }) => [status, body.error.code, body.error.action.length > 20]);
  };
  t.deepEqual(
    await codes(away),
    PAGES.map(() => [503, 'HF_COLUMNAR_UNREACHABLE', true]),
  );
  t.deepEqual(
    await codes(off),
    PAGES.map(() => [503, 'HF_COLUMNAR_NOT_RUNNING', true]),
  );
});
