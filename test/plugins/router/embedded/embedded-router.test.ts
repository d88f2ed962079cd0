import test, { type ExecutionContext } from 'ava';
import type { ConfigStore, ConfigWrite } from '../../../../src/core/contracts/config-store.ts';
import { openVault } from '../../../../src/core/host/secrets/vault.ts';
import type { EffectContext } from '../../../../src/core/kernel/actors/effect.ts';
import { asEpochMs, asSeq, type EffectId } from '../../../../src/core/kernel/ids.ts';
import type { ApplyParams } from '../../../../src/machines/router/config-shapes.ts';
import { EmbeddedRouter } from '../../../../src/plugins/router/embedded/embedded-router.ts';
import { MemoryKernel } from '../../../../src/plugins/router/embedded/kernel/memory.ts';
import { SealedConfigs } from '../../../../src/plugins/router/embedded/sealed-configs.ts';
import { SqliteConfigStore } from '../../../../src/plugins/router/embedded/store/sqlite-config-store.ts';
import { tempDir } from '../../../support/temp.ts';
import { type Config, exampleConfig } from '../rig.ts';

const LEG = 'eth1.30';

/** Something that goes wrong around one save of the real store. */
type Fault = (write: ConfigWrite, save: (write: ConfigWrite) => Promise<boolean>) => Promise<boolean>;

/** A router with the example config, an apply that changes one leg, and a fault in its save. */
async function exampleRouter(
  t: ExecutionContext,
  fault?: Fault,
  first: Config = exampleConfig(),
  more: (real: ConfigStore) => Partial<ConfigStore> = () => ({}),
) {
  const dataDir = tempDir(t);
  const vault = openVault(dataDir);
  const real = await SqliteConfigStore.open({ dataDir, vault, historyLimit: 10 });
  t.teardown(() => real.close());
  const at = asEpochMs(1_800_000_000_000);
  const body = JSON.stringify(first);
  const seed = { ncid: first.ncid, body, at, op: 'seed', who: 'test', changed: [] } as const;
  await real.save({ ...seed, expected: undefined });

  const store: ConfigStore = {
    active: () => real.active(),
    history: (limit) => real.history(limit),
    entry: (ncid) => real.entry(ncid),
    save: (write) => (fault ? fault(write, (given) => real.save(given)) : real.save(write)),
    close: () => real.close(),
    ...more(real),
  };
  const blobs = new Map<string, Uint8Array>();
  const configs = new SealedConfigs({ blob: (key) => blobs.get(key) }, vault);
  const router = new EmbeddedRouter({ store, configs, vault, kernel: new MemoryKernel() });
  const setUp = await router.setUp(new AbortController().signal).catch((error) => error);

  const next = structuredClone(first);
  next.interface.vlan[LEG] = { ...exampleConfig().interface.vlan[LEG], ipv4: '10.77.31.1/24' };
  const sealed = configs.seal(next);
  const before = configs.seal(first);
  for (const [key, blob] of [...sealed.blobs, ...before.blobs]) blobs.set(key, blob);
  const params: ApplyParams = {
    op: 'save',
    expected: first.ncid,
    before: before.fingerprint,
    fingerprint: sealed.fingerprint,
    who: 'test',
  };
  const effect = (more: Partial<EffectContext> = {}): EffectContext => ({
    id: '7.0' as EffectId,
    cause: asSeq(7),
    at,
    actor: 'router.config/default',
    correlation: 'c',
    signal: new AbortController().signal,
    recovered: false,
    ...more,
  });
  const address = async () => (await router.interface(LEG)).state?.ip4;
  return { router, real, params, effect, address, blobs, first, next, setUp };
}

test.serial(
  '[R5] the ncid of an apply follows from its effect: a repeated one gets the same and changes nothing',
  async (t) => {
    const { router, params, effect } = await exampleRouter(t);
    const first = (await router.apply(params, effect())) as any;
    t.regex(first.ncid, /^[0-9a-f]{19}1800000000000$/);
    t.deepEqual(await router.apply(params, effect({ recovered: true })), first);
    t.deepEqual(
      (await router.history(10)).map(({ op }) => op),
      ['save', 'seed'],
    );
  },
);

test.serial('[R7] a save that fails takes the kernel back', async (t) => {
  const { router, params, effect, address, first } = await exampleRouter(t, () =>
    Promise.reject(new Error('disk full')),
  );
  await t.throwsAsync(router.apply(params, effect()), { message: 'disk full' });
  t.deepEqual(await address(), ['10.77.30.1/24']);
  t.is((await router.active()).ncid, first.ncid);
});

test.serial('[R7] a save that failed after it was written counts as what it is: saved', async (t) => {
  const { router, params, effect, address } = await exampleRouter(t, async (write, save) => {
    await save(write);
    throw new Error('the answer was lost');
  });
  const outcome = (await router.apply(params, effect())) as any;
  t.is(outcome.type, 'APPLIED');
  t.is((await router.active()).ncid, outcome.ncid);
  t.deepEqual(await address(), ['10.77.31.1/24']);
});

test.serial(
  '[R3] whoever saves in between wins; ours applies nothing and is told what the store holds',
  async (t) => {
    const { router, params, effect, address } = await exampleRouter(t, async (write, save) => {
      const theirs = JSON.stringify({ ...exampleConfig(), ncid: 'theirs' });
      await save({ ...write, ncid: 'theirs', body: theirs });
      return save(write);
    });
    const { event, blobs } = (await router.apply(params, effect())) as any;
    t.like(event, { type: 'OVERTAKEN', ncid: 'theirs' });
    t.true(blobs.has(event.fingerprint));
    t.deepEqual(await address(), ['10.77.30.1/24']);
    const fixed = (await router.apply({ ...params, op: 'reapply', expected: 'theirs' }, effect())) as any;
    t.is(fixed.reapplied.length, 16);
  },
);

test.serial('[R3] a store that moved before the apply began is not touched', async (t) => {
  const { router, params, effect, first } = await exampleRouter(t);
  const { event } = (await router.apply({ ...params, expected: 'another' }, effect())) as any;
  t.like(event, { type: 'OVERTAKEN', ncid: first.ncid });
  t.is((await router.history(10)).length, 0);
});

test.serial(
  '[R3] what the store held when it was last asked is enough to begin with, and the save finds out that it moved on',
  async (t) => {
    const first = exampleConfig();
    const latest = () => ({ ncid: first.ncid, body: JSON.stringify(first) });
    let asked = 0;
    const store = (real: ConfigStore) => ({
      latest,
      active: () => {
        asked += 1;
        return real.active();
      },
    });
    const moved: Fault = async (write, save) => {
      const theirs = JSON.stringify({ ...exampleConfig(), ncid: 'theirs' });
      await save({ ...write, ncid: 'theirs', body: theirs });
      return save(write);
    };
    const { router, params, effect, address } = await exampleRouter(t, moved, first, store);
    asked = 0;
    const { event } = (await router.apply(params, effect())) as any;
    t.like(event, { type: 'OVERTAKEN', ncid: 'theirs' });
    t.is(asked, 1, 'only to see what it holds instead');
    t.deepEqual(await address(), ['10.77.30.1/24']);
  },
);

test.serial('[R3] a store whose text was changed without its ncid is asked, and not touched', async (t) => {
  const first = exampleConfig();
  const latest = () => ({ ncid: first.ncid, body: JSON.stringify({ ...first, version: 99 }) });
  const edited: Fault = () => {
    throw new Error('nothing is to be saved');
  };
  const { router, params, effect } = await exampleRouter(t, edited, first, () => ({ latest }));
  const by = { ...params, before: 'fp_of_another' };
  t.like(((await router.apply(by, effect())) as any).event, { type: 'OVERTAKEN', ncid: first.ncid });
});

test.serial(
  '[R5] a retried apply asks the store, whatever was known of it, and finds what its first run saved',
  async (t) => {
    const first = exampleConfig();
    const latest = () => ({ ncid: first.ncid, body: JSON.stringify(first) });
    const { router, params, effect } = await exampleRouter(t, undefined, first, () => ({ latest }));
    const outcome = await router.apply(params, effect());
    t.deepEqual(await router.apply(params, effect({ recovered: true })), outcome);
    t.is((await router.history(10)).length, 2);
  },
);

test.serial('[R2] readers of one turn share a reading, and one that comes later begins anew', async (t) => {
  let readings = 0;
  const store = (real: ConfigStore) => ({
    active: () => {
      readings += 1;
      return real.active();
    },
  });
  const { router, params, effect } = await exampleRouter(t, undefined, exampleConfig(), store);
  readings = 0;
  const [one, two] = await Promise.all([router.served(), router.served()]);
  t.is(one, two);
  t.is(readings, 1);
  const { ncid } = (await router.apply(params, effect())) as any;
  t.is((await router.served()).ncid, ncid);
});

test.serial('[R7] an apply that is interrupted before its save leaves everything as it was', async (t) => {
  const stop = new AbortController();
  const { router, params, effect, address, first } = await exampleRouter(t);
  stop.abort(new Error('stopping'));
  await t.throwsAsync(router.apply(params, effect({ signal: stop.signal })), { message: 'stopping' });
  t.deepEqual(await address(), ['10.77.30.1/24']);
  t.is((await router.active()).ncid, first.ncid);
});

test.serial('a config that nothing keeps any more fails by name', async (t) => {
  const { router, params, effect } = await exampleRouter(t);
  t.like(await router.apply({ ...params, fingerprint: 'fp_gone' }, effect()), {
    type: 'APPLY_FAILED',
    code: 'HF_ROUTER_APPLY_FAILED',
    errors: ['the config to apply is no longer stored'],
  });
});

test.serial('[R7] reading the store waits for the apply that is running', async (t) => {
  let release: (() => void) | undefined;
  const { router, params, effect } = await exampleRouter(t, async (write, save) => {
    await new Promise<void>((resolve) => {
      release = resolve;
    });
    return save(write);
  });
  const apply = router.apply(params, effect());
  while (!release) await new Promise((resolve) => setImmediate(resolve));
  const load = router.load();
  release();
  t.is((await load).event.ncid, ((await apply) as any).ncid);
});

test.serial(
  '[R7] a stored config that the kernel refuses at start is applied whole by the write that fixes it',
  async (t) => {
    const broken = exampleConfig();
    broken.interface.vlan[LEG].intf = 'eth9';
    const { router, params, effect, setUp } = await exampleRouter(t, undefined, broken);
    t.regex(setUp.message, /eth9/);
    t.is((await router.interface('eth1.10')).state, undefined);
    const outcome = (await router.apply(params, effect())) as any;
    t.is(outcome.reapplied.length, 16);
    t.deepEqual((await router.interface('eth1.10')).state?.ip4, ['10.77.10.1/24']);
  },
);
