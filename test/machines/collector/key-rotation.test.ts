import test from 'ava';
import fc from 'fast-check';
import { elapsed, given } from '../../../src/core/host/testing/index.ts';
import { Story } from '../../../src/core/host/testing/story.ts';
import { keyRotation } from '../../../src/machines/collector/key-rotation.ts';
import type { RefreshCheck } from '../../../src/machines/collector/key-rotation-rules.ts';
import { type RotationEvent, rotationDefaults } from '../../../src/machines/collector/key-rotation-rules.ts';
import { runs } from '../../support/runs.ts';
import { machineSamples } from '../samples.ts';

const { overlapMs, retryMs, lookMs } = rotationDefaults;
/** Producers take up a stored key within 15 minutes (O9). */
const refreshMs = 15 * 60_000;
const rotate = (more: Partial<Extract<RotationEvent, { type: 'ROTATE' }>> = {}): RotationEvent => ({
  type: 'ROTATE',
  at: 0,
  name: 'otel_ingest_api_key',
  maker: 'own',
  old: 'fp_old',
  producers: [],
  external: [],
  canForce: false,
  settings: rotationDefaults,
  ...more,
});
const adopted: RotationEvent = { type: 'CONFIG_READ', at: 2, fingerprint: 'fp_new' };
const stored: RotationEvent = { type: 'STORED', at: 3, place: 'there' };
const looked = (at: number, old: string[] = [], fresh: string[] = []): RotationEvent => ({
  type: 'SIGHTINGS_READ',
  at,
  old: old.map((producer) => ({ producer, at: 1 })),
  fresh: fresh.map((producer) => ({ producer, at })),
});
const well = { result: 'ok', text: 'well' } as const;
const unknown = { result: 'not_checked', text: 'nobody can look' } as const;
/** What was looked at besides the producers. */
const checked = (
  at: number,
  {
    secret = unknown,
    pods = unknown,
    metrics = unknown,
  }: Partial<Record<'secret' | 'pods' | 'metrics', Omit<RefreshCheck, 'check'>>> = {},
): RotationEvent => ({
  type: 'CHECKED',
  at,
  checks: [
    { check: 'synced_secret', ...secret },
    { check: 'pods', ...pods },
    { check: 'metrics', ...metrics },
  ],
});
const refreshedAt = (at: number, old: string[] = [], fresh: string[] = []) => [
  looked(at, old, fresh),
  checked(at),
];
const begun = (more = {}): RotationEvent[] => [rotate(more), { type: 'REGENERATED', at: 1 }];
const check = {
  type: 'collector.check_refresh',
  params: { fresh: 'fp_new', startedAt: 0, storedAt: 3 },
};
const look = { type: 'collector.read_sightings', params: { old: 'fp_old', fresh: 'fp_new' } };

test('[O9] with nobody to wait for, the steps follow one another and the old key is retired', (t) => {
  given(keyRotation)
    .when(rotate())
    .then({
      state: 'regenerating',
      effects: [{ type: 'collector.regenerate_key', params: { maker: 'own', old: 'fp_old' } }],
    })
    .when({ type: 'REGENERATED', at: 1 })
    .then({
      state: 'adopting',
      effects: [{ type: 'collector.read_config' }],
      timers: { adoption: 600_000 },
    })
    .when({ type: 'CONFIG_READ', at: 2, fingerprint: 'fp_old' })
    .then({ state: 'adopting', ignored: true, timers: { adoption: 600_000 } })
    .when(adopted)
    .then({ state: 'storing', effects: [{ type: 'collector.store_key', params: { fresh: 'fp_new' } }] })
    .when(stored)
    .then({ state: 'refreshing', effects: [look], context: { deadlineAt: 3 + refreshMs } })
    .when(looked(4))
    .then({ state: 'checking', effects: [check] })
    .when(checked(4))
    .then({ state: 'external', effects: [look] })
    .when(looked(5))
    .then({ state: 'retiring', effects: [{ type: 'collector.retire_key', params: { fresh: 'fp_new' } }] })
    .when({ type: 'RETIRED', at: 6 })
    .then({
      state: 'done',
      context: {
        step: undefined,
        done: { regenerate: 1, adopt: 2, store: 3, refresh: 4, external: 5, retire: 6 },
      },
    });
  t.pass();
});

test('[O9] no name of a producer keeps a key from being rotated', (t) => {
  const names = ['__proto__', 'constructor', 'toString'];
  const producers = names.map((producer) => ({ producer, at: 0 }));
  given(keyRotation, { events: [...begun({ producers }), adopted, stored] })
    .when(looked(10, names, names))
    .then({ state: 'checking', effects: [check] })
    .when(checked(10))
    .then({ state: 'external', effects: [look] });
  t.pass();
});

test('[O9] a producer that still uses the old key is waited for, and its move is seen', (t) => {
  const producers = [{ producer: 'scraper', at: 0 }];
  given(keyRotation, { events: [...begun({ producers }), adopted, stored] })
    .when(looked(10, ['scraper']))
    .then({ state: 'checking', effects: [check] })
    .when(checked(10, { secret: well, pods: well, metrics: well }))
    .then({ state: 'refreshPause', timers: { sightings: lookMs } })
    .when(elapsed('sightings'))
    .then({ state: 'refreshing', effects: [look] })
    .when(looked(20, ['scraper'], ['scraper']))
    .then({ state: 'checking', effects: [check] })
    .when(checked(20))
    .then({ state: 'external', effects: [look] });
  t.pass();
});

test('[O9] a producer that moves while the rest is looked at is not missed', (t) => {
  given(keyRotation, { events: [...begun(), adopted, stored, looked(4, ['scraper'])] })
    .when({ type: 'MOVED', at: 5, producer: 'scraper' })
    .then({ state: 'refreshing', effects: [look] });
  t.pass();
});

test('[O9] when the window is over the refresh is forced once where a cluster is, then the others are waited for', (t) => {
  const producers = [{ producer: 'scraper', at: 0 }];
  const late = 3 + refreshMs;
  given(keyRotation, { events: [...begun({ producers, canForce: true }), adopted, stored] })
    .when(looked(late))
    .then({ state: 'checking', effects: [check] })
    .when(checked(late))
    .then({ state: 'forcing', effects: [{ type: 'collector.force_refresh' }] })
    .when({ type: 'FORCED', at: late, what: ['restarted DaemonSet x'] })
    .then({ state: 'refreshing', effects: [look], context: { deadlineAt: late + refreshMs } })
    .when(looked(late + refreshMs))
    .then({ state: 'checking', effects: [check] });
  given(keyRotation, { events: [...begun({ producers, canForce: true }), adopted, stored] })
    .when({ type: 'FORCE', at: 9 })
    .then({ state: 'forcing', effects: [{ type: 'collector.force_refresh' }] });
  t.pass();
});

test('[O9] external producers are waited for until they are seen, a person says so, or the overlap ends', (t) => {
  const events = [...begun({ external: ['router-edge'] }), adopted, stored, ...refreshedAt(4)];
  const retiring = {
    state: 'retiring',
    effects: [{ type: 'collector.retire_key', params: { fresh: 'fp_new' } }],
  };
  given(keyRotation, { events })
    .when(looked(5))
    .then({ state: 'externalPause', timers: { rareSightings: lookMs * 10 } })
    .when({ type: 'MOVED', at: 6, producer: 'router-edge' })
    .then({ state: 'external', effects: [look] });
  given(keyRotation, { events })
    .when(looked(5, [], ['router-edge']))
    .then(retiring);
  given(keyRotation, { events: [...events, { type: 'EXTERNAL_DONE', at: 5 }] })
    .when(looked(6))
    .then(retiring);
  const story = Story.begin(keyRotation);
  const end = [...events, looked(overlapMs)].reduce((before, event) => before.next(event as never), story);
  t.is(end.step.snapshot.value, 'retiring');
  t.like(end.effects[0], { type: 'alerts.raise', params: { name: 'collector.rotation_left_behind' } });
});

test('[O9] where the collector is not ours the old key is not ours to retire', (t) => {
  const events = [rotate({ maker: 'operator' }), { type: 'BY_HAND', at: 1, text: 'in the UI' } as const];
  given(keyRotation, { events: [...events, adopted, stored, ...refreshedAt(4, [], ['app'])] })
    .when(looked(5))
    .then({ state: 'done', context: { step: undefined } });
  // Nobody is seen at our receiver: that proves nothing, so the whole window is waited for.
  given(keyRotation, { events: [...events, adopted, stored, looked(4)] })
    .when(checked(4))
    .then({ state: 'refreshPause', timers: { sightings: lookMs } });
  t.pass();
});

test('[O9,O25] the legacy token, an unknown name, a second rotation and no key are refused', (t) => {
  const refused = (event: RotationEvent, reason: RegExp, before: RotationEvent[] = []) => {
    const story = [...before, event].reduce((so, next) => so.next(next as never), Story.begin(keyRotation));
    t.deepEqual(story.effects, []);
    t.regex(String((story.step.snapshot.context as { refused?: string }).refused), reason);
  };
  refused(rotate({ name: 'otel_ingest_token' }), /never rotated, emptied or deleted/);
  refused(rotate({ name: 'admin_password' }), /only otel_ingest_api_key/);
  refused(rotate(), /under way already/, [rotate()]);
  refused(rotate({ old: undefined } as never), /there is no ingest key to rotate/);
});

test('[O9] each failure has a reason, tells a person, and is resumed where it happened', (t) => {
  const failing = (
    events: RotationEvent[],
    last: Parameters<Story['next']>[0],
    reason: string,
    again: string,
  ) => {
    const story = events.reduce((so, next) => so.next(next as never), Story.begin(keyRotation));
    const failed = story.next(last);
    t.is(failed.step.snapshot.value, 'failed');
    t.like(failed.step.snapshot.context, { failure: { reason } });
    t.like(failed.effects[0], { type: 'alerts.raise', params: { name: 'collector.rotation_failed' } });
    t.is(failed.next({ type: 'RESUME', at: 99 }).step.snapshot.value, again);
  };
  const broken = (effect: string) => ({ type: 'effect.failed', effect, code: 'HF_X', message: 'broken' });
  failing([rotate({ maker: 'api' })], broken('collector.regenerate_key'), 'not_regenerated', 'regenerating');
  failing(begun(), { type: 'elapsed', timer: 'adoption' }, 'not_adopted', 'adopting');
  failing(
    [...begun(), adopted, stored, ...refreshedAt(4), looked(5)],
    broken('collector.retire_key'),
    'not_retired',
    'retiring',
  );
  failing([...begun(), adopted], { type: 'ABANDON', at: 5 }, 'abandoned', 'storing');
  let story = [...begun(), adopted].reduce((so, next) => so.next(next as never), Story.begin(keyRotation));
  for (let tries = 1; tries < 5; tries += 1) {
    story = story.next(broken('collector.store_key'));
    t.is(story.step.snapshot.value, 'storePause');
    t.deepEqual(story.timers, { retry: retryMs });
    story = story.next({ type: 'elapsed', timer: 'retry' });
  }
  t.like(story.next(broken('collector.store_key')).step.snapshot.context, {
    failure: { reason: 'not_stored' },
  });
});

/** The story of a rotation whose collector a UI manages, where no producer is seen at our receiver. */
const managed = [
  rotate({ maker: 'api' }),
  { type: 'REGENERATED', at: 1 } as const,
  adopted,
  stored,
  looked(4),
];
const all = { secret: well, pods: well, metrics: well };
const late = 3 + refreshMs;

test('[O9] a managed collector needs no waiting when Secret, pods and metrics were looked at and are well', (t) => {
  given(keyRotation, { events: managed })
    .when(checked(4, all))
    .then({
      state: 'external',
      effects: [look],
      context: {
        checks: [
          {
            check: 'producers',
            result: 'not_checked',
            text: 'no producer was seen at our receiver, neither with the old key nor with the new one',
          },
          { check: 'synced_secret', ...well },
          { check: 'pods', ...well },
          { check: 'metrics', ...well },
        ],
      },
    });
  // Each of them counts: what is not looked at, or not well, is waited for.
  for (const name of ['secret', 'pods', 'metrics'] as const) {
    for (const result of ['not', 'not_checked'] as const) {
      given(keyRotation, { events: managed })
        .when(checked(4, { ...all, [name]: { result, text: 'x' } }))
        .then({ state: 'refreshPause', timers: { sightings: lookMs } });
    }
  }
  t.pass();
});

test('[O9] when the window is over, what is not well is an alert, and what nobody looked at is recorded as not checked', (t) => {
  const after = (events: RotationEvent[]) =>
    events.reduce((so, next) => so.next(next as never), Story.begin(keyRotation));
  const resultsOf = (story: Story) =>
    (story.step.snapshot.context as { checks: RefreshCheck[] }).checks.map(
      ({ check, result }) => `${check} ${result}`,
    );
  const silent = after([...managed, checked(late)]);
  t.is(silent.step.snapshot.value, 'external');
  t.deepEqual(
    silent.effects.map(({ type }) => type),
    ['collector.read_sightings'],
  );
  t.deepEqual(resultsOf(silent), [
    'producers not_checked',
    'synced_secret not_checked',
    'pods not_checked',
    'metrics not_checked',
  ]);
  const old = { result: 'not', text: 'Secret otel has fp_old' } as const;
  const wrong = after([...managed, checked(late, { ...all, secret: old })]);
  t.is(wrong.step.snapshot.value, 'external');
  t.like(wrong.effects[0], {
    type: 'alerts.raise',
    params: { name: 'collector.rotation_not_refreshed', labels: { checks: 'synced_secret' } },
  });
  t.regex(JSON.stringify(wrong.effects[0]), /Secret otel has fp_old/);
  const producers = [{ producer: 'scraper', at: 0 }];
  const behind = after([...begun({ producers }), adopted, stored, looked(late), checked(late, all)]);
  t.like(behind.effects[0], { params: { labels: { checks: 'producers' } } });
  t.deepEqual(resultsOf(behind)[0], 'producers not');
  const lost = { type: 'effect.failed', effect: 'collector.check_refresh', code: 'HF_X', message: 'broken' };
  const failed = after(managed).next(lost);
  t.is(failed.step.snapshot.value, 'external');
  t.deepEqual(resultsOf(failed).slice(1), [
    'synced_secret not_checked',
    'pods not_checked',
    'metrics not_checked',
  ]);
});

test('[O9] the first key is stored as it is, once, and no other value is replaced unasked', (t) => {
  const adopt = (more = {}): RotationEvent => ({
    ...{ type: 'ADOPT', at: 5, fingerprint: 'fp_old', replace: false },
    ...more,
  });
  const adoption = { fingerprint: 'fp_old', at: 5 };
  const write = { type: 'collector.store_key', params: { fresh: 'fp_old' } };
  given(keyRotation)
    .when(adopt())
    .then({ state: 'idle', effects: [write], context: { adoption: { ...adoption, state: 'storing' } } })
    .when({ type: 'STORED', at: 6, place: 'there' })
    .then({ state: 'idle', context: { adoption: { ...adoption, state: 'stored', text: 'there' } } });
  given(keyRotation)
    .when(adopt({ stored: 'fp_old' }))
    .then({ state: 'idle', effects: [], context: { adoption: { ...adoption, state: 'stored' } } });
  given(keyRotation, { events: [adopt()] })
    .when({ type: 'BY_HAND', at: 6, text: 'put it there' })
    .then({ state: 'idle', context: { adoption: { ...adoption, state: 'by_hand', text: 'put it there' } } });
  given(keyRotation, { events: [adopt()] })
    .when({ type: 'effect.failed', effect: 'collector.store_key', code: 'HF_X', message: 'broken' })
    .then({ state: 'idle', context: { adoption: { ...adoption, state: 'failed', text: 'broken' } } });
  given(keyRotation)
    .when(adopt({ stored: 'fp_other', replace: true }))
    .then({ state: 'idle', effects: [write], context: { adoption: { ...adoption, state: 'storing' } } });
  const refused = (event: RotationEvent, reason: RegExp, before: RotationEvent[] = []) => {
    const story = [...before, event].reduce((so, next) => so.next(next as never), Story.begin(keyRotation));
    t.deepEqual(story.effects, []);
    t.regex(String((story.step.snapshot.context as { refused?: string }).refused), reason);
  };
  refused(adopt({ stored: 'fp_other' }), /holds another key \(fp_other\)/);
  refused(adopt({ fingerprint: undefined }), /no ingest key to store/);
  refused(adopt(), /rotation is under way/, begun());
  refused(adopt(), /being stored already/, [adopt()]);
  refused(rotate(), /the key in use is being stored/, [adopt()]);
});

test('[O9] a key that is regenerated once more on the way is the one that is stored', (t) => {
  given(keyRotation, { events: [...begun(), adopted, stored] })
    .when({ type: 'CONFIG_READ', at: 9, fingerprint: 'fp_newer' })
    .then({ state: 'storing', effects: [{ type: 'collector.store_key', params: { fresh: 'fp_newer' } }] });
  t.pass();
});

test('[O9] whatever happens, no key is retired before a new one was adopted and stored', (t) => {
  const events = (machineSamples['collector-key-rotation']?.events ?? []) as never[];
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...events), { maxLength: 30 }), (list) => {
      let story = Story.begin(keyRotation);
      for (const event of list) {
        story = story.next(event);
        const { done, fresh } = story.step.snapshot.context as {
          done: Record<string, number>;
          fresh?: string;
        };
        const retires = story.effects.some(({ type }) => type === 'collector.retire_key');
        if (retires && !(fresh && done.adopt && done.store)) return false;
      }
      return true;
    }),
    { numRuns: runs(500) },
  );
  t.pass();
});
