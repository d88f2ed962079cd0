import { statSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { Reply } from '../../../src/core/host/http/pending-replies.ts';
import { ReapplyRequests } from '../../../src/plugins/router/embedded/reapply-requests.ts';
import { Rig } from './rig.ts';

const APPLY = '/v1/config/apply_current_config';

test.serial(
  '[R11] a flood of the same apply is a few applies, each caller is answered, and the log says for how many',
  async (t) => {
    const rig = await Rig.start(t);
    const { ncid } = await rig.active();
    const answers = await Promise.all(Array.from({ length: 300 }, () => rig.call('POST', APPLY)));
    for (const answer of answers) t.deepEqual(answer, { status: 200, body: { errors: [], ncid } });
    const records = await rig.records();
    const callers = records.flatMap(({ event }) =>
      event.type === 'APPLY_CURRENT' ? Number(event.callers ?? 1) : [],
    );
    // Ten that come one by one need not wait, and then there is one a second.
    t.true(callers.length <= 20, `${callers.length} applies`);
    t.is(
      callers.reduce((sum, count) => sum + count, 0),
      300,
    );
    t.true(statSync(join(rig.dataDir, 'log.db')).size < 4_000_000);
    t.is(rig.divergence(), undefined);
  },
);

/** Requests of one client, and what the router was asked to begin. */
function requests() {
  const begun: { callers: number; end: (reply: Reply) => void; fail: (error: Error) => void }[] = [];
  const all = new ReapplyRequests((_request: string, callers) => {
    const { promise, resolve: end, reject: fail } = Promise.withResolvers<Reply>();
    begun.push({ callers, end, fail });
    return promise;
  });
  return { begun, add: () => all.add('r') };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('[R11] a request that comes while an apply runs is not answered by that apply', async (t) => {
  const { begun, add } = requests();
  const first = add();
  const others = [add(), add()];
  await turn();
  t.is(begun.length, 1);
  begun[0]?.end({ status: 200 });
  t.is((await first).status, 200);
  await turn();
  t.deepEqual(
    begun.map(({ callers }) => callers),
    [1, 2],
  );
  begun[1]?.end({ status: 503 });
  t.deepEqual(
    (await Promise.all(others)).map(({ status }) => status),
    [503, 503],
  );
});

test('[R11] an apply that fails fails for its callers alone, and the next begins', async (t) => {
  const { begun, add } = requests();
  const first = add();
  const second = add();
  begun[0]?.fail(new Error('lost'));
  await t.throwsAsync(first, { message: 'lost' });
  await turn();
  begun[1]?.end({ status: 200 });
  t.is((await second).status, 200);
});

test('[R11] after a burst, applies one after the other are held to one a second', async (t) => {
  const { begun, add } = requests();
  for (let n = 0; n < 10; n += 1) {
    const one = add();
    begun.at(-1)?.end({ status: 200 });
    await one;
    await turn();
  }
  const began = performance.now();
  const held = add();
  await turn();
  t.is(begun.length, 10);
  while (begun.length === 10) await new Promise((resolve) => setTimeout(resolve, 10));
  t.true(performance.now() - began > 500);
  begun.at(-1)?.end({ status: 200 });
  await held;
});
