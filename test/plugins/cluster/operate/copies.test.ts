import test from 'ava';
import { ClusterError } from '../../../../src/plugins/cluster/errors.ts';
import { StreamUnavailable, StreamUnknown } from '../../../../src/plugins/cluster/nats/stream-errors.ts';
import { untried } from '../../../../src/plugins/cluster/operate/checks.ts';
import { copiesResult } from '../../../../src/plugins/cluster/operate/copies.ts';

type Info = Parameters<typeof copiesResult>[0]['infos'][number];

/** A stream with a leader on the server `n0`. @param away servers whose copies do not answer it */
function stream(name: string, servers: readonly string[], away: readonly string[]): Info {
  const replicas = servers.map((server) => ({
    ...{ name: server, current: !away.includes(server), offline: away.includes(server), active: 0, lag: 0 },
  }));
  const config = { name, num_replicas: servers.length + 1 } as Info['config'];
  return { config, cluster: { leader: 'n0', replicas } as unknown as NonNullable<Info['cluster']> };
}

const result = (servers: readonly string[], away: readonly string[], unanswered: readonly string[] = []) =>
  copiesResult({ infos: [stream('S', servers, away)], unanswered }, servers.length + 1, true);

test('[C13] doctor cluster warns while one of three copies is away, and says that the next loss stops takeovers', (t) => {
  const { state, remedy = '' } = result(['n1', 'n2'], ['n1']);
  t.is(state, 'warn');
  t.regex(remedy, /^Start n1 again: .*Until then the others go on/);
});

test('[C13] doctor cluster says that there is no quorum where two of three copies are away', (t) => {
  const { state, found, remedy = '' } = result(['n1', 'n2'], ['n1', 'n2'], ['T']);
  t.is(state, 'fail');
  t.regex(found, /^the server n1 does not answer: .*the server n2 does not answer: .*T has no leader$/);
  t.is(
    remedy,
    'Start 1 of n1, n2: there is no quorum. Until 1 server is started, nothing is taken over and no log is mirrored.',
  );
});

test('[C13] doctor cluster counts the servers that a quorum of five copies lacks', (t) => {
  const four = ['n1', 'n2', 'n3', 'n4'];
  t.is(result(four, four.slice(0, 2)).state, 'warn');
  const { state, remedy = '' } = result(four, four);
  t.is(state, 'fail');
  t.regex(remedy, /^Start 2 of n1, n2, n3, n4: .*Until 2 servers are started/);
});

test('[C13] a check of doctor cluster that no quorum answered refers to those that find out why', (t) => {
  for (const error of [new StreamUnavailable('S', 'x'), new StreamUnknown('S', 'no answer in time')]) {
    const { state, found, remedy = '' } = untried(error, 'clock') ?? t.fail();
    t.is(state, 'unknown');
    t.is(found, error.what);
    t.regex(remedy, /try again when `cluster.reachable` and `cluster.replicas` are ok\.$/);
  }
  t.regex(untried(new StreamUnavailable('S', 'x'), 'replicas')?.remedy ?? '', /`cluster.reachable` is ok\.$/);
  t.is(untried(new ClusterError('HF_CLUSTER_SIZE', { bytes: 2, most: 1 }), 'clock'), undefined);
});
