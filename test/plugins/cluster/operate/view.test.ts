import test from 'ava';
import type { PageMoment } from '../../../../src/core/contracts/console.ts';
import {
  hostLines,
  leaseLines,
  orphanLines,
  statusLines,
} from '../../../../src/plugins/cluster/commands/text.ts';
import { ClusterError } from '../../../../src/plugins/cluster/errors.ts';
import { hostsPage } from '../../../../src/plugins/cluster/operate/console-page.ts';
import { clusterFact } from '../../../../src/plugins/cluster/operate/health.ts';
import { type ClusterParts, clusterView } from '../../../../src/plugins/cluster/operate/view.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const heard = (clock: VirtualClock, ago: number) => ({
  ...{ run: 'r', version: '0.2.0', heardMs: clock.monotonic() - ago, lag: 0 },
});

type Wish = {
  [K in 'link' | 'beats' | 'shared' | 'leases' | 'outbox']?: Partial<ClusterParts[K]>;
} & Partial<Pick<ClusterParts, 'standing' | 'outdated' | 'leftBecause'>>;

/** A host `one` that holds the reconciler, with `two` beside it; the wish changes what its parts say. */
function partsOf(wish: Wish = {}, clock = new VirtualClock()): ClusterParts {
  return {
    ...{ name: 'home', host: 'one', version: '0.2.0', clock },
    heldSince: () => 1_000,
    hasStopped: () => false,
    outdated: wish.outdated ?? [],
    leftBecause: wish.leftBecause,
    link: {
      ...{
        isUp: true,
        problem: undefined,
        shown: 'nats://127.0.0.1:4222',
        serverVersion: '2.9.10',
        forged: 0,
      },
      ...wish.link,
    },
    standing: wish.standing ?? connected,
    beats: {
      heard: new Map([['two', heard(clock, 300)]]),
      trouble: undefined,
      ...wish.beats,
    },
    shared: { trouble: undefined, ...wish.shared },
    leases: {
      table: () => [
        {
          singleton: 'reconciler',
          holder: { host: 'one', token: 'x:7' },
          last: { host: 'two' },
          leftMs: 9_000,
        },
      ],
      hosts: () => new Map([['two', { drained: false }]]),
      ...{ isDrained: false, refusal: undefined, trouble: undefined, isUnread: false },
      obstacle: undefined,
      ...{ release: async () => {}, drain: async () => {}, undrain: () => {} },
      ...wish.leases,
    },
    outbox: {
      position: { incarnation: 1, seq: 40 },
      trouble: undefined,
      lag: () => ({ records: 0, bytes: 0, ms: 0 }),
      orphans: () => [],
      ...wish.outbox,
    },
  };
}

const connected = () => ({ hosts: 2, silentMs: 100, isIsolated: false, isBehind: false });

const OUTDATED = {
  ...{ singleton: 'jobs', type: 'jobs.list', version: 1, theirs: 2 },
  ...{ release: '0.2.0', theirRelease: '0.3.0' },
};

const orphan = { singleton: 'reconciler', token: 'x:9', by: 'two', after: 40, to: 44, records: 3 };

test('[C13] a host that hears the others, mirrors its log and has no orphaned branch has no problem', (t) => {
  const { problems, hosts, leases } = clusterView(partsOf());
  t.deepEqual(problems, []);
  t.deepEqual(
    hosts.map(({ host, state, holds }) => [host, state, holds]),
    [
      ['one', 'here', ['reconciler']],
      ['two', 'there', []],
    ],
  );
  t.deepEqual(leases, [
    { singleton: 'reconciler', holder: 'one', token: 'x:7', since: 1_000, leftMs: 9_000, last: 'two' },
  ]);
  t.like(clusterFact(partsOf()), { text: 'one of home holds reconciler; 2 hosts are there', hosts: 2 });
  t.is((clusterFact(partsOf()) as { ok?: boolean }).ok, undefined);
});

test('[C13,C14] a host is not ready while it is behind, or cut off from others that may serve', (t) => {
  const ready = (standing: Partial<ReturnType<typeof connected>>) =>
    (clusterFact(partsOf({ standing: () => ({ ...connected(), ...standing }) })) as { ready?: boolean })
      .ready;
  t.is(ready({}), true);
  t.is(ready({ isIsolated: true, isBehind: true }), false);
  t.is(ready({ hosts: 1, isIsolated: true, isBehind: true }), false, 'it refuses every call');
  t.is(ready({ silentMs: 7_400, isIsolated: true }), false);
  t.is(ready({ hosts: 1, silentMs: 7_400, isIsolated: true }), true, 'nobody else could serve');
});

const faults: readonly (readonly [string, Wish, RegExp])[] = [
  [
    'is cut off',
    {
      link: { isUp: false, problem: 'nats://127.0.0.1:4222: no answer for 2 s' },
      standing: () => ({ hosts: 1, silentMs: 7_400, isIsolated: true, isBehind: false }),
    },
    /cut off from the others since 20.* UTC \(nats:.*no answer for 2 s\): which hosts are there is unknown/,
  ],
  [
    'has left because another process has its name',
    {
      leftBecause: new ClusterError('HF_CLUSTER_NAME_TAKEN', { host: 'one', since: '2026-11-23' }),
      link: { isUp: false, problem: 'it is closed' },
      standing: () => ({ hosts: 1, silentMs: 7_400, isIsolated: true, isBehind: false }),
    },
    /this host has left the cluster until it is started again: Another process is the host one.*HOLDFAST_CLUSTER_HOST/,
  ],
  [
    'hears beats and cannot read what the others changed',
    { standing: () => ({ hosts: 2, silentMs: 100, isIsolated: true, isBehind: false }) },
    /what the other hosts said in the last \d+ s may be unread here.*refuses calls/,
  ],
  [
    'cannot mirror its log',
    { outbox: { trouble: new Error('The stream takes no more') } },
    /the log is not mirrored: The stream takes no more/,
  ],
  [
    'finds a stream of beats that proves nothing',
    {
      beats: {
        trouble: new ClusterError('HF_CLUSTER_STREAM_DIFFERS', {
          stream: 'HF_home_QUORUM_1',
          differences: 'so',
        }),
      },
    },
    /cannot prove that it reaches the others: .*HF_home_QUORUM_1 has other settings .*: so.*delete it/,
  ],
  [
    'cannot read the messages to every host',
    { shared: { trouble: new Error('its subjects are taken') } },
    /does not hear what is said to every host: its subjects are taken/,
  ],
  [
    'is far behind with it',
    { outbox: { lag: () => ({ records: 12, bytes: 4_000, ms: 11_000 }) } },
    /12 records are not on the stream, the oldest for 11 s/,
  ],
  [
    'has an orphaned branch',
    { outbox: { orphans: () => [orphan] } },
    /3 records of reconciler on one .*two had taken it over; `holdfast cluster orphans export 1 FILE` on one/,
  ],
  [
    'sees a host of another version',
    { leases: { refusal: { host: 'two', version: '0.3.0' } } },
    /the host two of version 0\.3\.0 holds leases: this one, of version 0\.2\.0, claims none/,
  ],
  [
    'has a log that takes nothing',
    { leases: { obstacle: 'its log takes nothing: database or disk is full' } },
    /this host leaves its work to others, and takes nothing over: its log takes nothing: database or disk is full/,
  ],
  [
    'finds a ledger that is not its cluster’s',
    {
      leases: { trouble: new ClusterError('HF_CLUSTER_LEDGER', { stream: 'HF_home_LEDGER', reason: 'so' }) },
    },
    /takes nothing over: .*HF_home_LEDGER is not the ledger of this cluster: so.*HOLDFAST_CLUSTER_NAME/,
  ],
  [
    'cannot read the ledger',
    {
      leases: {
        trouble: new ClusterError('HF_CLUSTER_STREAM_UNAVAILABLE', {
          stream: 'HF_home_LEDGER',
          reason: 'no leader',
        }),
        isUnread: true,
        table: () => [{ singleton: 'jobs', holder: { host: 'two', token: 'x:1' } }],
      },
    },
    /takes nothing over, and who holds jobs is unknown: .*HF_home_LEDGER has no leader, or cannot be reached/,
  ],
  [
    'has older machines than the host that did some work last',
    {
      outdated: [new ClusterError('HF_CLUSTER_OUTDATED', OUTDATED)],
      leases: { table: () => [{ singleton: 'jobs' }] },
    },
    /jobs was done last by release 0\.3\.0, with version 2 of .*release 0\.2\.0, with version 1\. Update this host [\s\S]*nobody holds jobs/,
  ],
  [
    'knows of work that nobody does',
    { leases: { table: () => [{ singleton: 'jobs' }] } },
    /nobody holds jobs/,
  ],
];

for (const [what, wish, problem] of faults) {
  test(`[C13] a host that ${what} says so: in health, status and on the console`, async (t) => {
    const parts = partsOf(wish);
    t.regex(clusterView(parts).problems.join('\n'), problem);
    const fact = clusterFact(parts) as { ok?: boolean; reason?: string };
    t.is(fact.ok, false);
    t.regex(fact.reason ?? '', problem);
    const page = JSON.stringify(await hostsPage(parts).data(moment));
    t.regex(page, problem);
    t.regex(page, /"failing"/);
  });
}

test('[C13] an orphaned branch that was exported is listed, and is no problem any more', (t) => {
  const parts = partsOf({ outbox: { orphans: () => [{ ...orphan, exportedAt: 5_000 }] } });
  const view = clusterView(parts);
  t.deepEqual(view.problems, []);
  t.regex(orphanLines(view, context).join('\n'), /1 +reconciler +two +3 +41 to 44 +1970-01-01/);
});

test('[C13] a host is silent after 2 s without a beat, and gone after 10 s; what each holds is what the ledger says', (t) => {
  const clock = new VirtualClock();
  const others = new Map([
    ['two', heard(clock, 1_900)],
    ['three', heard(clock, 2_100)],
    ['four', heard(clock, 10_100)],
  ]);
  const view = clusterView(
    partsOf(
      {
        beats: { heard: others },
        leases: { table: () => [{ singleton: 'jobs', holder: { host: 'three', token: 'x:1' } }] },
      },
      clock,
    ),
  );
  t.deepEqual(
    view.hosts.map(({ host, state, holds }) => [host, state, holds?.length]),
    [
      ['one', 'here', 0],
      ['four', 'gone', 0],
      ['three', 'silent', 1],
      ['two', 'there', 0],
    ],
  );
});

test('[C13] a host that stopped is told apart from one that was lost, in status, health and console, and is no problem', async (t) => {
  const clock = new VirtualClock();
  const others = new Map([
    ['two', heard(clock, 600_000)],
    ['three', heard(clock, 600_000)],
    ['four', heard(clock, 1_000)],
  ]);
  const parts = {
    ...partsOf({ beats: { heard: others } }, clock),
    hasStopped: (host: string) => host === 'two' || host === 'four',
  };
  const view = clusterView(parts);
  t.deepEqual(
    view.hosts.map(({ host, state }) => `${host} ${state}`),
    ['one here', 'four stopped', 'three gone', 'two stopped'],
  );
  t.deepEqual(view.problems, []);
  t.regex(hostLines(view, context).join('\n'), /^two +stopped .*$/m);
  t.like(clusterFact(parts), {
    hosts: 1,
    text: 'one of home holds reconciler; 1 host is there; four is stopped; three is gone; two is stopped',
  });
  const page = JSON.stringify(await hostsPage(parts).data?.({ isNow: true, time: 0 } as PageMoment));
  t.regex(page, /"state":"stopped"/);
});

test('[C13] status shows host, servers, log, hosts and leases; text of others cannot command the terminal', (t) => {
  const clock = new VirtualClock();
  const evil = new Map([['two\u001b[2J', heard(clock, 100)]]);
  const lines = statusLines(clusterView(partsOf({ beats: { heard: evil } }, clock)), context).join('\n');
  t.regex(lines, /^one, a host of home; NATS: nats:\/\/127\.0\.0\.1:4222 \(version 2\.9\.10\)$/m);
  t.regex(lines, /^log: everything is on the stream, up to record 40 \(incarnation 1\)$/m);
  t.regex(lines, /^one \(this\) +here +now +reconciler +0 +0\.2\.0$/m);
  t.regex(lines, /^reconciler +one +1970-01-01.* +x:7 +two$/m);
  t.false(lines.includes('\u001b'));
  const none = clusterView(partsOf({ leases: { table: () => [] } }));
  t.deepEqual(leaseLines(none, context), ['nothing runs on one host alone']);
  t.is(hostLines(none, context).length, 3);
});

test('[C13] a host that is cut off says unknown, and since when, instead of what it knew before', async (t) => {
  const clock = new VirtualClock();
  const parts = partsOf(
    {
      standing: () => ({ hosts: 1, silentMs: 61_000, isIsolated: true, isBehind: false }),
      beats: { heard: new Map([['two', heard(clock, 61_000)]]) },
      leases: {
        table: () => [
          { singleton: 'reconciler', holder: { host: 'one', token: 'x:7' }, leftMs: 0 },
          { singleton: 'jobs', holder: { host: 'two', token: 'x:8' } },
          { singleton: 'alerts', holder: { host: 'one', token: 'x:9' }, leftMs: 1_000 },
          { singleton: 'drills' },
        ],
      },
    },
    clock,
  );
  const since = new Date(clock.now() - 61_000).toISOString().slice(11, 19);
  const view = clusterView(parts);
  t.is(view.unknownSince, clock.now() - 61_000);
  t.like(view.hosts[1], { host: 'two', state: 'unknown', holds: undefined, lag: undefined });
  t.deepEqual(
    view.leases.map(({ singleton, holder, isUnknown, last }) => [singleton, holder, isUnknown, last]),
    [
      ['reconciler', undefined, true, 'one'],
      ['jobs', undefined, true, 'two'],
      ['alerts', 'one', undefined, undefined],
      ['drills', undefined, true, undefined],
    ],
  );
  const fact = clusterFact(parts) as { text: string; hosts: unknown; holds: unknown };
  t.deepEqual([fact.hosts, fact.holds], ['unknown', ['alerts']]);
  t.true(fact.text.includes(`${since} UTC it is unknown which hosts are there`), fact.text);
  t.true(fact.text.includes('and who holds reconciler, jobs, drills'), fact.text);
  const status = statusLines(view, context).join('\n');
  t.regex(status, /^two +unknown +61 s ago +unknown +unknown +0\.2\.0$/m);
  t.regex(status, /^jobs +unknown +- +- +two$/m);
  const page = JSON.stringify(await hostsPage(parts).data(moment));
  t.regex(page, /"holder":"unknown"/);
  for (const text of [fact.text, status, page]) t.notRegex(text, /nobody|0 hosts|1 host is|"gone"/);
});

test('[C13] a host that cannot read the ledger says unknown of what the others hold, and knows its own work', async (t) => {
  const table = () => [
    { singleton: 'reconciler', holder: { host: 'one', token: 'x:7' }, leftMs: 1_000 },
    { singleton: 'jobs', holder: { host: 'two', token: 'x:8' } },
    { singleton: 'alerts' },
  ];
  const parts = partsOf({ leases: { table, isUnread: true } });
  const view = clusterView(parts);
  t.deepEqual(view.problems, [], 'a start, or an election, is no problem yet');
  t.deepEqual(
    view.leases.map(({ singleton, holder, isUnknown, last }) => [singleton, holder, isUnknown, last]),
    [
      ['reconciler', 'one', undefined, undefined],
      ['jobs', undefined, true, 'two'],
      ['alerts', undefined, true, undefined],
    ],
  );
  const status = statusLines(view, context).join('\n');
  t.regex(status, /^one \(this\) +here +now +reconciler/m);
  t.regex(status, /^two +there +\S+ ms ago +unknown/m);
  t.regex(status, /^jobs +unknown +- +- +two$/m);
  t.regex(JSON.stringify(await hostsPage(parts).data(moment)), /"state":"there"[^}]*"holds":"unknown"/);
});

test('[C13] health counts messages that no host of the cluster sent', (t) => {
  const link = { forged: 12 };
  const fact = clusterFact(partsOf({ link })) as { text: string; forged: number; ok?: boolean };
  t.is(fact.forged, 12);
  t.true(fact.text.endsWith('; 12 messages dropped that no host of the cluster sent'), fact.text);
});

test('[C13] of another moment than now the console says that connections are not known', async (t) => {
  const sections = await hostsPage(partsOf()).data({ ...moment, isNow: false });
  t.regex(JSON.stringify(sections), /known of now alone/);
});

const moment: PageMoment = {
  ...{ seq: 44, time: 60_000, isNow: true, states: new Map(), inputs: {} },
  records: async () => ({ records: [], more: false }),
  signal: new AbortController().signal,
};

const context = {
  terminal: { interactive: false, columns: 100, paint: (_format: unknown, text: string) => text },
} as Parameters<typeof statusLines>[1];

test('[C13] a host whose lease ran out says that it holds nothing, though the ledger that it read last names it', (t) => {
  const held = { singleton: 'reconciler', holder: { host: 'one', token: 'x:7' } };
  const view = (leftMs?: number) =>
    clusterView(partsOf({ leases: { table: () => [{ ...held, ...(leftMs !== undefined && { leftMs }) }] } }));
  t.deepEqual(view(10).hosts[0]?.holds, ['reconciler']);
  for (const left of [undefined, 0]) {
    t.deepEqual(view(left).hosts[0]?.holds, []);
    t.is(view(left).leases[0]?.holder, undefined);
    t.regex(view(left).problems.join(), /nobody holds reconciler/);
  }
});
