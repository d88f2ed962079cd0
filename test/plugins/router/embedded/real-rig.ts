import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { type RouterChange, routerChannels } from '../../../../src/core/contracts/router.ts';
import { type Namespace, namespace } from '../../../support/netns.ts';
import { PATIENCE_MS } from '../../../support/until.ts';
import { type Config, Rig, type RigOptions } from '../rig.ts';

export const LEG = 'eth1.10';
/** `uuid` of the leg's network, and the set that follows from it. */
const UUID = '4f1d2c3b-5a69-4788-9daf-0123456789ab';
export const SET = `c_net_${UUID.slice(0, 13)}_set6`;
export const FIRST = 'fd5e:21aa:90c4:10::1/64';

export interface RealRig {
  readonly space: Namespace;
  readonly rig: Rig;
  /** The channels' messages so far, as `<channel> <interface> <up>`. */
  readonly heard: string[];
  readonly config: Config;
  /** Empties the list, and says what comes until a message matches. */
  readonly until: (pattern: RegExp) => Promise<string[]>;
}

/** A WAN `eth0` and the leg `eth1.10` that delegates from it, on a kernel of their own, with a running router. */
export async function realRig(t: ExecutionContext, given: RigOptions = {}): Promise<RealRig> {
  const space = namespace(t);
  for (const name of ['eth0', 'eth1', ...(space.hasVlans ? [] : [LEG])]) {
    const peer = `${name.replace('.', 'x')}p`;
    space.ip(`link add ${name} type veth peer name ${peer}`);
    if (name !== 'eth0') space.ip(`link set ${peer} up`);
  }
  const options = { kernel: 'linux', namespace: space.name, ...given.options } as const;
  const rig = await Rig.start(t, { ...given, options });
  const config: Config = {
    ncid: (await rig.active()).ncid,
    interface: {
      phy: {
        eth0: { ipv4: '192.0.2.2/24', gateway: '192.0.2.1', dhcp6: {}, meta: { type: 'wan' } },
        eth1: {},
      },
      vlan: {
        [LEG]: {
          intf: 'eth1',
          vid: 10,
          ipv6: [FIRST],
          ipv6DelegateFrom: 'eth0',
          meta: { type: 'lan', uuid: UUID, name: 'Main' },
        },
      },
    },
    routing: { global: { default: { viaIntf: 'eth0' } } },
    dhcp6: { [LEG]: {} },
  };
  const answer = await rig.set(config);
  t.is(answer.status, 200, JSON.stringify(answer.body));
  config.ncid = answer.body.ncid;
  // The router has read the kernel twice: as it was at the start, and as it is from now on.
  const isConnected = () =>
    (rig.runtime.services.actors.snapshot('router.wan/eth0' as never)?.context as Config)?.connected;
  await eventually(
    () => isConnected() === false,
    () => 'the WAN is not seen as down',
  );
  space.ip('link set eth0p up');
  await eventually(
    () => isConnected() === true,
    () => 'the WAN is not seen as up',
  );
  await rig.settled();
  const heard: string[] = [];
  for (const topic of Object.values(routerChannels)) {
    rig.runtime.services.bus
      .stream(topic, 'test')
      .subscribe(({ payload }: { payload: RouterChange }) =>
        heard.push(
          [topic.name.replace('router.', ''), payload.intf ?? '', payload.up ?? ''].join(' ').trim(),
        ),
      );
  }
  const until = async (pattern: RegExp) => {
    await eventually(
      () => heard.some((line) => pattern.test(line)),
      () => heard.join('\n'),
    );
    await rig.settled();
    return heard.splice(0);
  };
  return { space, rig, heard, config, until };
}

/** Waits, in real time, for something that a program or the kernel does. @throws with `what` when it does not come */
export async function eventually(
  isSo: () => boolean | Promise<boolean>,
  what: () => string = () => 'it',
): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`did not happen within ${PATIENCE_MS} ms: ${what()}`);
    await sleep(20);
  }
}

/** Processes that this process has started and that have not ended. */
export const children = (): string[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const [, parent] = /^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
        if (Number(parent) !== process.pid) return [];
        return [`${pid} ${readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')}`];
      } catch {
        return [];
      }
    });
