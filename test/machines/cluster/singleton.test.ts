import test from 'ava';
import { given } from '../../../src/core/host/testing/index.ts';
import type { SingletonEvent } from '../../../src/machines/cluster/singleton.ts';
import { singletonActor } from '../../../src/plugins/cluster/actors.ts';

const { machine } = singletonActor;
const input = { singleton: 'reconciler' };
const T = 1_000_000;
const taking: SingletonEvent = { type: 'TAKING', at: T, token: 'i:7', from: 'h1' };
const begun: SingletonEvent = { type: 'BEGUN', at: T + 5, host: 'h2', fencedAt: 80 };
const failed: SingletonEvent = { type: 'BEGIN_FAILED', at: T + 5, reason: 'no disk' };
const alert = (name: string, severity: string, text: string, labels: object) => ({
  type: 'alerts.raise',
  params: { name, severity, text, labels: { singleton: 'reconciler', ...labels } },
});

test('[C13] a takeover says by which token, from whom, and from which record on', (t) => {
  t.notThrows(() =>
    given(machine, { input, events: [{ type: 'FOLLOWED', at: T, holder: 'h1' }] })
      .when(taking)
      .then({ state: 'taking', context: { token: 'i:7', from: 'h1' }, effects: [] })
      .when(begun)
      .then({ state: 'holding', context: { holder: 'h2', since: T + 5, fencedAt: 80 }, effects: [] })
      .when({ type: 'ENDING', at: T + 9, reason: 'the lease ran out' })
      .then({ state: 'ending', context: { reason: 'the lease ran out' } })
      .when({ type: 'ENDED', at: T + 10 })
      .then({ state: 'following', context: { holder: undefined, token: undefined, since: undefined } }),
  );
});

test('[C13] a host that cannot begin leaves the work to others, longer each time; the third failure in a row is an alert', (t) => {
  t.notThrows(() =>
    given(machine, { input, events: [taking] })
      .when(failed)
      .then({
        state: 'following',
        context: { failures: 1, withholdMs: 10_000, reason: 'no disk' },
        effects: [],
      })
      .when(taking)
      .then({ state: 'taking' })
      .when(failed)
      .then({ state: 'following', context: { failures: 2, withholdMs: 20_000 }, effects: [] })
      .when(taking)
      .then({ state: 'taking' })
      .when(failed)
      .then({
        state: 'following',
        context: { failures: 3, withholdMs: 40_000 },
        effects: [
          alert(
            'cluster.singleton_failed',
            'critical',
            'reconciler could not begin on this host 3 times in a row: no disk.',
            { state: 'firing' },
          ),
        ],
      })
      .when(taking)
      .then({ state: 'taking' })
      .when(failed)
      .then({ state: 'following', context: { failures: 4, withholdMs: 80_000 }, effects: [] }),
  );
  const long = Array.from({ length: 12 }, () => [taking, failed]).flat();
  given(machine, { input, events: long })
    .when(taking)
    .then({ state: 'taking', context: { withholdMs: 600_000 } });
});

test('[C13] what passes by itself makes no host leave the work to others for longer, and counts for the alert', (t) => {
  const passed: SingletonEvent = { ...failed, reason: 'no leader', passes: true };
  t.notThrows(() =>
    given(machine, { input, events: [taking, passed, taking, failed, taking] })
      .when(passed)
      .then({
        state: 'following',
        context: { failures: 3, withholdMs: 10_000 },
        effects: [
          alert(
            'cluster.singleton_failed',
            'critical',
            'reconciler could not begin on this host 3 times in a row: no leader.',
            { state: 'firing' },
          ),
        ],
      }),
  );
});

test('[C13] the alert is resolved when the work runs, here or on another host', (t) => {
  const events = [1, 2, 3].flatMap(() => [taking, failed]);
  const resolved = (where: string) => [
    alert('cluster.singleton_failed', 'info', `reconciler runs ${where} again.`, { state: 'resolved' }),
  ];
  t.notThrows(() => {
    given(machine, { input, events: [...events, taking] })
      .when(begun)
      .then({ state: 'holding', context: { failures: 0, withholdMs: 0 }, effects: resolved('here') });
    given(machine, { input, events })
      .when({ type: 'FOLLOWED', at: T, holder: 'h3' })
      .then({ state: 'following', context: { failures: 0 }, effects: resolved('on h3') })
      .when({ type: 'FOLLOWED', at: T, holder: 'h1' })
      .then({ state: 'following', effects: [] });
  });
});

test('[C13] an orphaned branch is an alert and is remembered, whatever this host does now', (t) => {
  const orphaned: SingletonEvent = { type: 'ORPHANED', at: T, from: 90, to: 95, count: 4 };
  const text =
    "4 records of reconciler between 90 and 95 of this host's log do not count: another host had taken over.";
  t.notThrows(() =>
    given(machine, { input, events: [taking, begun] })
      .when(orphaned)
      .then({
        state: 'holding',
        context: { branches: [{ from: 90, to: 95, count: 4 }] },
        effects: [alert('cluster.orphaned_branch', 'warning', text, { from: '90', to: '95' })],
      }),
  );
});

test('[C13] the alert about an orphaned branch names the host, the work, who took over, and what ends it', (t) => {
  const branch = {
    type: 'ORPHANED',
    at: T,
    host: 'attic',
    by: 'cellar',
    from: 90,
    to: 95,
    count: 4,
  } as const;
  const text =
    '4 records of reconciler between 90 and 95 of the log of attic do not count: cellar had taken over. On attic, see them with `holdfast cluster orphans`; `holdfast cluster orphans export` ends the warning of its health.';
  const labels = { from: '90', to: '95', host: 'attic' };
  t.notThrows(() =>
    given(machine, { input, events: [taking, begun] })
      .when(branch)
      .then({ state: 'holding', effects: [alert('cluster.orphaned_branch', 'warning', text, labels)] }),
  );
});

test('[C13] a takeover is remembered until the host before has noted it, over a start and the next takeover', (t) => {
  const takeover = (host: string, number: number) => ({
    ...{ host, seq: 80, hash: 'a', by: 'h2', token: `i:${number}` },
  });
  const [first, second] = [takeover('h1', 7), takeover('h3', 9)];
  t.notThrows(() =>
    given(machine, { input, events: [taking] })
      .when({ type: 'TOOK_OVER', at: T, by: 90, takeovers: [first] })
      .then({ state: 'taking', context: { tookOverBy: 90, untold: [first] }, effects: [] })
      .when({ type: 'STARTED', at: T + 1 })
      .then({ state: 'following', context: { untold: [first] } })
      .when({ type: 'TOOK_OVER', at: T + 2, by: 95, takeovers: [first, second] })
      .then({ state: 'following', context: { tookOverBy: 95, untold: [first, second] } })
      .when({ type: 'TAKEOVER_NOTED', at: T + 3, host: 'h1', token: 'i:7' })
      .then({ state: 'following', context: { untold: [second] } })
      .when({ type: 'TAKEOVER_NOTED', at: T + 4, host: 'h3', token: 'i:8' })
      .then({ state: 'following', context: { untold: [second] } }),
  );
});

test('[C13] a runtime that starts holds nothing yet, whatever it held when it ended', (t) => {
  t.notThrows(() =>
    given(machine, { input, events: [taking, begun] })
      .when({ type: 'STARTED', at: T + 100 })
      .then({ state: 'following', context: { holder: undefined, token: undefined } }),
  );
});

test('[C13] what an operator does with it moves nothing by itself, and is not ignored', (t) => {
  const acts: readonly SingletonEvent[] = [
    { type: 'MOVE_REQUESTED', at: T, by: 'ann', to: 'h3' },
    { type: 'BRANCH_EXPORTED', at: T, by: 'ann', number: 1 },
  ];
  for (const act of acts)
    t.notThrows(() =>
      given(machine, { input, events: [taking, begun] })
        .when(act)
        .then({ state: 'holding', effects: [], ignored: false }),
    );
});
