import test from 'ava';
import { z } from 'zod';
import { type RouterApi, RouterApiToken } from '../../../../src/core/contracts/router.ts';
import { definePlugin } from '../../../../src/core/host/plugin/definition.ts';
import { newCorrelation } from '../../../../src/core/kernel/clock.ts';
import { type Config, Rig } from '../rig.ts';

/** A runtime with a plugin that uses the router's API in process. */
async function start(t: Parameters<typeof Rig.start>[0]): Promise<{ rig: Rig; api: RouterApi }> {
  let api: RouterApi | undefined;
  const user = definePlugin({
    name: 'user',
    options: z.strictObject({}),
    requires: [RouterApiToken],
    start(services) {
      api = services.get(RouterApiToken);
    },
    register() {},
  });
  const rig = await Rig.start(t, { plugins: [user()] });
  return { rig, api: api! };
}

test.serial(
  '[R3] in process the same rules hold as over HTTP: applied, conflict, pending, refused',
  async (t) => {
    const { rig, api } = await start(t);
    const first = (await api.active()) as Config;
    const applied = await api.set(first, newCorrelation());
    t.is(applied.kind, 'applied');
    t.is(applied.kind === 'applied' && applied.ncid, (await rig.active()).ncid);
    t.deepEqual(await api.set(first, newCorrelation()), { kind: 'conflict' });

    const bad = structuredClone((await api.active()) as Config);
    bad.interface.vlan['eth1.10'].ipv6 = ['nonsense'];
    t.like(await api.set(bad, newCorrelation()), { kind: 'refused' });

    await rig.set(await rig.active(), { transactionOp: 'append', transID: 't1' });
    t.deepEqual(await api.set(await api.active(), newCorrelation()), { kind: 'pending' });
  },
);

test.serial('[R4] control fields in a config do nothing: no bypass, no transaction', async (t) => {
  const { rig, api } = await start(t);
  const config = { ...(await api.active()), ncid: 'stale', ignoreNcid: true };
  t.deepEqual(await api.set(config, newCorrelation()), { kind: 'conflict' });
  const append = { ...(await api.active()), transactionOp: 'append', transID: 't1' };
  t.is((await api.set(append, newCorrelation())).kind, 'applied');
  t.is(rig.actor().context.pending, undefined);
});

test.serial(
  'a write joins the story it belongs to, and two at once in one story get their own answers',
  async (t) => {
    const { rig, api } = await start(t);
    const story = newCorrelation();
    const config = await api.active();
    const answers = await Promise.all([
      api.set(config, story, undefined, { cause: 1 }),
      api.set(config, story),
    ]);
    t.deepEqual(answers.map(({ kind }) => kind).toSorted(), ['applied', 'conflict']);
    await rig.settled();
    const records = (await rig.records()).filter(({ correlation }) => correlation === story);
    t.deepEqual(
      records.filter(({ event }) => event.type !== 'effect.done').map(({ event }) => event.type),
      ['SET', 'APPLIED', 'SET'],
      'the second waits for the answer of the first',
    );
    // Either may come first.
    const posts = records.filter(({ event }) => event.type === 'SET');
    t.deepEqual(
      new Set(posts.map(({ cause }) => cause)),
      new Set([1, undefined]),
      'the record that asked for the write is its cause',
    );
  },
);

test.serial('[R2] what is read is a copy: changing it changes nothing', async (t) => {
  const { api } = await start(t);
  const config = (await api.active()) as Config;
  delete config.interface;
  t.truthy((await api.active()).interface);
});

test.serial(
  'a write that is given up while it waits for its turn is unknown, and posts nothing',
  async (t) => {
    const { rig, api } = await start(t);
    const config = (await api.active()) as Config;
    const gone = new AbortController();
    const first = api.set({ ...config, version: 2 }, newCorrelation());
    const second = api.set({ ...config, version: 3 }, newCorrelation(), gone.signal);
    const third = api.set({ ...config, version: 4 }, newCorrelation());
    gone.abort();
    t.is((await second).kind, 'unknown');
    t.is((await first).kind, 'applied');
    t.deepEqual(await third, { kind: 'conflict' });
    await rig.settled();
    const posts = (await rig.records()).filter(({ event }) => event.type === 'SET');
    t.is(posts.length, 2);
    t.is((await rig.active()).version, 2);
  },
);

test.serial('a write that was given up before it began is unknown, and posts nothing', async (t) => {
  const { rig, api } = await start(t);
  const before = await rig.active();
  const answer = await api.set(await api.active(), newCorrelation(), AbortSignal.abort());
  t.is(answer.kind, 'unknown');
  t.deepEqual(await rig.active(), before);
});
