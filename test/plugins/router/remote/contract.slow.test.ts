/** The promises of `RouterApi`, asked of two very different routers through the same adapter. */
import test, { type ExecutionContext } from 'ava';
import { request } from 'undici';
import {
  type NetworkConfig,
  type RouterApi,
  routerChannels,
  routerConnected,
} from '../../../../src/core/contracts/router.ts';
import { newCorrelation } from '../../../../src/core/kernel/clock.ts';
import { RedisServer, until } from '../../../support/redis.ts';
import { Rig } from '../rig.ts';
import { type Config, Daemon } from './daemon.ts';
import { remote } from './rig.ts';

const LEG_ADDRESS = 'fd5e:21aa:90c4:10::1/64';

/** A router to be asked, and what its other users do. */
interface Subject {
  readonly url: string;
  readonly api: RouterApi;
  /** What was heard of it, in order. */
  readonly heard: readonly string[];
  /** Whether it can be heard. */
  subscribed(): boolean;
  stop(): Promise<unknown>;
}

/** The adapter to a router that publishes on this Redis. */
async function beside(t: ExecutionContext<any>, options: Parameters<typeof remote>[1]) {
  const heard: string[] = [];
  const { api, health } = await remote(t, options, {
    heard({ bus }) {
      for (const topic of [...Object.values(routerChannels), routerConnected])
        bus.subscribe<unknown>(topic, 'test', () => heard.push(topic.name));
    },
  });
  return { api, heard, subscribed: () => health().events.subscribed };
}

async function embedded(t: ExecutionContext<any>, redis?: RedisServer): Promise<Subject> {
  const redisUrl = redis && { redisUrl: redis.url };
  const rig = await Rig.start(t, { options: { ...redisUrl } });
  const adapter = await beside(t, { url: rig.url, ...redisUrl });
  return { url: rig.url, ...adapter, stop: () => rig.runtime.stop('stopped by the test') };
}

async function standIn(t: ExecutionContext<any>, redis?: RedisServer): Promise<Subject> {
  const daemon = await Daemon.start(t);
  const publisher = redis?.client(t);
  daemon.publish = (channel, payload) => publisher?.publish(channel, payload);
  const { channelPrefix } = daemon;
  const adapter = await beside(t, { url: daemon.url, channelPrefix, ...(redis && { redisUrl: redis.url }) });
  return { url: daemon.url, ...adapter, stop: () => daemon.stop() };
}

const read = async (subject: Subject) => (await subject.api.active()) as Config;
const set = ({ api }: Subject, config: NetworkConfig) => api.set(config, newCorrelation());

/** Another writer of the router, who knows nothing of our rules. */
async function post({ url }: Subject, body: unknown): Promise<any> {
  const answer = await request(`${url}/v1/config/set`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: answer.statusCode, body: await answer.body.json() };
}

/** What is the same, whichever key a router adds or generates. */
function essence({ ncid: _, reqId: __, ts: ___, interface: interfaces, ...rest }: Config) {
  const vlan = Object.fromEntries(
    Object.entries(interfaces.vlan).map(([name, { meta: { uuid: _uuid, ...meta } = {} as any, ...leg }]) => [
      name,
      { ...leg, meta },
    ]),
  );
  return { ...rest, interface: { ...interfaces, vlan } };
}

for (const [name, start] of [
  ['the embedded router over HTTP', embedded],
  ['a daemon as in the field notes', standIn],
] as const) {
  test.serial(`[R1,R3] ${name}: a whole config is applied as posted, and gets a fresh ncid`, async (t) => {
    const subject = await start(t);
    const config = await read(subject);
    config.interface.vlan['eth1.20'].ipv6 = ['fd00:20::1/64'];
    delete config.interface.vlan['eth1.40'].ipv6;
    const answer = await set(subject, config);
    t.is(answer.kind, 'applied');
    const after = await read(subject);
    t.is(answer.kind === 'applied' && answer.ncid, after.ncid);
    t.not(after.ncid, config.ncid);
    t.deepEqual(essence(after), essence(config), 'nothing is merged, nothing is lost');
  });

  test.serial(`[R3,R25] ${name}: a stale ncid is a conflict, and nothing is applied`, async (t) => {
    const subject = await start(t);
    const config = await read(subject);
    const first = structuredClone(config);
    first.interface.vlan['eth1.20'].ipv6 = ['fd00:20::1/64'];
    t.is((await set(subject, first)).kind, 'applied');
    const before = await read(subject);
    t.deepEqual(await set(subject, config), { kind: 'conflict' });
    t.deepEqual(await read(subject), before);
  });

  test.serial(`[R3] ${name}: of two writers from one reading one wins`, async (t) => {
    const subject = await start(t);
    const config = await read(subject);
    const addresses = ['fd00:1::1/64', 'fd00:2::1/64', 'fd00:3::1/64', 'fd00:4::1/64'];
    const answers = await Promise.all(
      addresses.map((address) => {
        const mine = structuredClone(config);
        mine.interface.vlan['eth1.20'].ipv6 = [address];
        return set(subject, mine);
      }),
    );
    t.deepEqual(answers.map(({ kind }) => kind).toSorted(), ['applied', 'conflict', 'conflict', 'conflict']);
    const winner = addresses[answers.findIndex(({ kind }) => kind === 'applied')];
    t.deepEqual((await read(subject)).interface.vlan['eth1.20'].ipv6, [winner]);
  });

  test.serial(
    `[R24] ${name}: while a transaction is pending a write is told so, and after it applied`,
    async (t) => {
      const subject = await start(t);
      const pending = { ...(await read(subject)), transactionOp: 'append', transID: 'somebody' };
      t.is((await post(subject, pending)).status, 200);
      const during = await read(subject);
      t.deepEqual(await set(subject, during), { kind: 'pending' });
      t.deepEqual(await read(subject), during);
      t.is((await post(subject, { transactionOp: 'revert', transID: 'somebody' })).status, 200);
      const config = await read(subject);
      config.interface.vlan['eth1.20'].ipv6 = ['fd00:20::1/64'];
      t.is((await set(subject, config)).kind, 'applied');
    },
  );

  test.serial(
    `[R4] ${name}: control fields and reqId of a config that was read are not posted`,
    async (t) => {
      const subject = await start(t);
      const config = await read(subject);
      t.is((await set(subject, { ...config, transactionOp: 'append', transID: 't1' })).kind, 'applied');
      const after = await read(subject);
      t.is((await set(subject, after)).kind, 'applied', 'no transaction was opened');
      const { reqId } = await read(subject);
      t.deepEqual(await set(subject, { ...after, reqId, ignoreNcid: true }), { kind: 'conflict' });
    },
  );

  test.serial(
    `[R7] ${name}: what cannot be applied is refused in its words, and all is as before`,
    async (t) => {
      const subject = await start(t);
      const before = await read(subject);
      const config = structuredClone(before);
      config.interface.vlan['eth1.20'].ipv6 = ['nonsense'];
      const answer = await set(subject, config);
      t.is(answer.kind, 'refused');
      t.true(
        answer.kind === 'refused' && answer.errors.length > 0 && answer.errors.every((text) => text !== ''),
      );
      t.deepEqual(await read(subject), before);
    },
  );

  test.serial(`[R24] ${name}: an interface is read with the addresses of its link`, async (t) => {
    const { api } = await start(t);
    const view = await api.interfaceState('eth1.10');
    t.like(view?.config, { vid: 10 });
    t.true(view?.state.ip6?.includes(LEG_ADDRESS), JSON.stringify(view?.state.ip6));
    t.is(await api.interfaceState('eth1.99'), undefined);
  });

  test.serial(
    `[R24] ${name}: the current config is applied again, and never while a transaction is pending`,
    async (t) => {
      const subject = await start(t);
      const before = await read(subject);
      t.deepEqual(await subject.api.reapply(newCorrelation()), { kind: 'applied' });
      t.is((await read(subject)).ncid, before.ncid);
      await post(subject, { ...before, transactionOp: 'append', transID: 'somebody' });
      t.deepEqual(await subject.api.reapply(newCorrelation()), { kind: 'pending' });
      const reverted = await post(subject, { transactionOp: 'revert', transID: 'somebody' });
      t.is(reverted.status, 200, 'the transaction was still pending');
    },
  );

  test.serial(`[R3] ${name}: a config without its ncid is not even posted`, async (t) => {
    const subject = await start(t);
    const { ncid: _, ...config } = await read(subject);
    t.like(await set(subject, config), { kind: 'refused' });
    t.like(await set(subject, { ...config, ncid: '' }), { kind: 'refused' });
  });

  test.serial(`[R7] ${name}: a config that is too large is refused, and said to be`, async (t) => {
    const subject = await start(t);
    const before = await read(subject);
    const answer = await set(subject, { ...before, extra: 'x'.repeat(1_100_000) });
    t.is(answer.kind, 'refused');
    t.regex(answer.kind === 'refused' ? answer.errors.join() : '', /large|413/);
    t.deepEqual(await read(subject), before);
  });

  test.serial(`${name}: a write that was given up beforehand is unknown, and not posted`, async (t) => {
    const subject = await start(t);
    const before = await read(subject);
    const answer = await subject.api.set(before, newCorrelation(), AbortSignal.abort());
    t.is(answer.kind, 'unknown');
    t.is((await read(subject)).ncid, before.ncid);
  });

  test.serial(
    `[R25] ${name}: once it is gone, reads fail by their code and writes are unknown`,
    async (t) => {
      const subject = await start(t);
      const config = await read(subject);
      await subject.stop();
      await t.throwsAsync(subject.api.active(), { code: 'HF_ROUTER_UNREACHABLE' });
      await t.throwsAsync(subject.api.interfaceState('eth1.10'), { code: 'HF_ROUTER_UNREACHABLE' });
      t.is((await subject.api.reapply(newCorrelation())).kind, 'unknown');
      t.is((await set(subject, config)).kind, 'unknown');
    },
  );

  test.serial(
    `[R18] ${name}: it is heard, an applied write is told, and a lost connection ends in another`,
    async (t) => {
      const redis = await RedisServer.start(t);
      const subject = await start(t, redis);
      const { heard } = subject;
      await until('subscribed', () => subject.subscribed());
      t.is(heard[0], 'router.connected');
      const config = await read(subject);
      config.interface.vlan['eth1.20'].ipv6 = ['fd00:20::1/64'];
      t.is((await set(subject, config)).kind, 'applied');
      await until(
        'both are heard',
        () => heard.includes('router.iface_change_applied') && heard.includes('router.change_applied'),
      );
      await redis.down();
      await until('lost', () => !subject.subscribed());
      await redis.up();
      await until('subscribed again', () => subject.subscribed());
      t.is(heard.filter((topic) => topic === 'router.connected').length, 2);
    },
  );
}
