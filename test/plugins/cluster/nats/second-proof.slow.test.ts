import test from 'ava';
import { clusterName, openHost } from '../../../support/message-hosts.ts';
import { startNats } from '../../../support/nats.ts';
import { read, until } from '../../../support/until.ts';

test('[C13] a host is not cut off while the stream of its proofs has no leader: another stream proves the quorum', async (t) => {
  const nats = await startNats(t, { servers: 3 });
  const name = clusterName();
  const a = await openHost(t, nats.urls(), 'a', { name, replicas: 3 });
  const leaderOf = async (stream: string) => {
    const manager = await a.link.manager();
    const info = await manager.streams.info(`HF_${name}_${stream}`).catch(() => undefined);
    return info?.cluster?.leader;
  };
  const leaders = async () => {
    return Promise.all([1, 2, 3, 4, 5, 6, 7].map((number) => leaderOf(`QUORUM_${number}`)));
  };
  const [leader = ''] = await read('another server leads a proof', leaders, ([first, ...others]) =>
    others.some((other) => first !== undefined && other !== undefined && other !== first),
  );
  t.false(a.beats.standing().isIsolated);
  await nats.kill(Number(leader.slice(1)));
  let longestMs = 0;
  const end = setInterval(() => {
    longestMs = Math.max(longestMs, a.beats.standing().silentMs);
  }, 50);
  t.teardown(() => clearInterval(end));
  await until(
    'nothing has stood on that stream for more than two seconds, and the host is connected',
    () => a.beats.unacknowledgedMs > 2_500 && !a.beats.standing().isIsolated,
  );
  await until('the stream has a new leader', () => a.beats.unacknowledgedMs < 1_000);
  t.log(`longest silence ${Math.round(longestMs)} ms`);
  const [next] = await leaders();
  t.not(next, leader);
  await nats.restart(Number(leader.slice(1)));
  await read('another server than the new leader leads a proof', leaders, ([first, ...others]) =>
    others.some((other) => first !== undefined && other !== undefined && other !== first),
  );
});
