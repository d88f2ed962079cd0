import type { JetStreamManager, StreamInfo } from '@nats-io/jetstream';
import test, { type ExecutionContext } from 'ava';
import { ClusterError } from '../../../../src/plugins/cluster/errors.ts';
import { incarnationsNamed } from '../../../../src/plugins/cluster/mirror/incarnations.ts';
import type { NatsLink } from '../../../../src/plugins/cluster/nats/link.ts';
import { openLink } from '../../../support/cluster.ts';
import { MirroredHost, streamsOf } from '../../../support/mirrored-host.ts';
import { startNats } from '../../../support/nats.ts';
import { until } from '../../../support/until.ts';

/** What a server says that is cut off from the others, as long as it says it. */
interface StaleServer {
  readonly names?: readonly string[];
  readonly info?: (there: StreamInfo) => StreamInfo;
  /** It can make no stream: that takes a quorum. */
  readonly isAlone?: boolean;
}

/** A link whose server has an older state of the streams for some time. @returns sets what it says */
function goStale(link: NatsLink): (server: StaleServer | undefined) => void {
  const manager = link.manager.bind(link);
  let stale: StaleServer | undefined;
  link.manager = async () => {
    const real = await manager();
    if (!stale) return real;
    const { names, info, isAlone } = stale;
    const streams: JetStreamManager['streams'] = Object.create(real.streams, {
      ...(names && {
        names: {
          value: async function* () {
            yield* names;
          },
        },
      }),
      ...(info && { info: { value: async (name: string) => info(await real.streams.info(name)) } }),
      ...(isAlone && { add: { value: () => Promise.reject(new Error('no answer in time')) } }),
    });
    return Object.create(real, { streams: { value: streams } });
  };
  return (server) => {
    stale = server;
  };
}

async function open(t: ExecutionContext) {
  const nats = await startNats(t);
  const link = await openLink(t, nats.url());
  const host = new MirroredHost(t, link);
  await host.mirror(20);
  return {
    nats,
    link,
    host,
    say: goStale(link),
    isOnly: async () => incarnationsNamed(streamsOf(link), 'one'),
  };
}

for (const [what, lastSeq] of [
  ['ends before its newest records', 1],
  ['is empty', 0],
] as const) {
  test(`[C13] a stream that ${what}, as a server says that is cut off, is not replaced: no quorum takes a message there`, async (t) => {
    const { host, say, isOnly } = await open(t);
    const info = (there: StreamInfo) => ({
      ...there,
      state: { ...there.state, last_seq: lastSeq, first_seq: lastSeq, messages: lastSeq },
    });
    say({ info });
    const seq = await host.append(1);
    // It appends behind that end, and is refused.
    const isTried = () => host.told.troubles.some((text) => text?.includes('HF_CLUSTER_STREAM_CONFLICT'));
    await until('it has tried', () => isTried() || host.told.incarnations.length > 0);
    say(undefined);
    await host.outbox.mirrored(seq);
    t.deepEqual(await isOnly(), [1]);
    t.deepEqual(host.told.incarnations, []);
  });
}

test('[C13] a stream of which a server that is cut off knows nothing was not deleted, and is not replaced', async (t) => {
  const { host, link, say } = await open(t);
  await host.stop();
  say({ names: [], isAlone: true });
  const again = new MirroredHost(t, link, { dataDir: host.dataDir });
  const seq = await again.append(1);
  await until('it has noticed', () => again.told.troubles.length > 0);
  say(undefined);
  await again.outbox.mirrored(seq);
  t.is(again.outbox.position.incarnation, 1);
  t.deepEqual(again.told.incarnations, []);
});

test('[C13] a stream of which the servers know again once they have made the next one is not replaced', async (t) => {
  const { host, link, say } = await open(t);
  await host.stop();
  say({ names: [] });
  const again = new MirroredHost(t, link, { dataDir: host.dataDir });
  const made = link.manager.bind(link);
  link.manager = async () => {
    const { streams } = await made();
    const manager: JetStreamManager = Object.create(await made());
    const add: JetStreamManager['streams']['add'] = async (config) => {
      const info = await streams.add(config);
      say(undefined);
      return info;
    };
    return Object.defineProperty(manager, 'streams', {
      value: Object.create(streams, { add: { value: add } }),
    });
  };
  const seq = await again.append(1);
  await again.outbox.mirrored(seq);
  t.is(again.outbox.position.incarnation, 1);
  t.deepEqual(again.told.incarnations, []);
});

test('[C13] a stream that is gone is not replaced while it is not known whether another process has the name', async (t) => {
  const { link, host, nats } = await open(t);
  await host.stop();
  let isKnown = false;
  const nameIsOurs = async () => {
    if (!isKnown) throw new ClusterError('HF_CLUSTER_NAME_UNKNOWN', { host: 'one', reason: 'a test' });
  };
  const stranger = await openLink(t, nats.url());
  t.true(await (await stranger.manager()).streams.delete('HF_tests_LOG_one_1'));
  const again = new MirroredHost(t, link, { dataDir: host.dataDir, nameIsOurs });
  const seq = await again.append(1);
  await until('it says so', () =>
    again.told.troubles.some((text) => text?.includes('HF_CLUSTER_NAME_UNKNOWN')),
  );
  t.is(again.outbox.position.incarnation, 1);
  isKnown = true;
  await again.outbox.mirrored(seq);
  t.is(again.outbox.position.incarnation, 2);
});
