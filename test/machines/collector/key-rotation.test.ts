import test from 'ava';
import fc from 'fast-check';
import { elapsed, given } from '../../../src/core/host/testing/index.ts';
import { Story } from '../../../src/core/host/testing/story.ts';
import { keyRotation } from '../../../src/machines/collector/key-rotation.ts';
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
const begun = (more = {}): RotationEvent[] => [rotate(more), { type: 'REGENERATED', at: 1 }];
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
    .then({ state: 'external', effects: [look] });
  t.pass();
});

test('[O9] a producer that still uses the old key is waited for, and its move is seen', (t) => {
  const producers = [{ producer: 'scraper', at: 0 }];
  given(keyRotation, { events: [...begun({ producers }), adopted, stored] })
    .when(looked(10, ['scraper']))
    .then({ state: 'refreshPause', timers: { sightings: lookMs } })
    .when(elapsed('sightings'))
    .then({ state: 'refreshing', effects: [look] })
    .when(looked(20, ['scraper'], ['scraper']))
    .then({ state: 'external', effects: [look] });
  t.pass();
});

test('[O9] when the window is over the refresh is forced once where a cluster is, then the others are waited for', (t) => {
  const producers = [{ producer: 'scraper', at: 0 }];
  const late = 3 + refreshMs;
  given(keyRotation, { events: [...begun({ producers, canForce: true }), adopted, stored] })
    .when(looked(late))
    .then({ state: 'forcing', effects: [{ type: 'collector.force_refresh' }] })
    .when({ type: 'FORCED', at: late, what: ['restarted DaemonSet x'] })
    .then({ state: 'refreshing', effects: [look], context: { deadlineAt: late + refreshMs } })
    .when(looked(late + refreshMs))
    .then({ state: 'external', effects: [look] });
  given(keyRotation, { events: [...begun({ producers, canForce: true }), adopted, stored] })
    .when({ type: 'FORCE', at: 9 })
    .then({ state: 'forcing', effects: [{ type: 'collector.force_refresh' }] });
  t.pass();
});

test('[O9] external producers are waited for until they are seen, a person says so, or the overlap ends', (t) => {
  const events = [...begun({ external: ['router-edge'] }), adopted, stored, looked(4)];
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
  given(keyRotation, { events: [...events, adopted, stored, looked(4, [], ['app'])] })
    .when(looked(5))
    .then({ state: 'done', context: { step: undefined } });
  // Nobody is seen at our receiver: that proves nothing, so the whole window is waited for.
  given(keyRotation, { events: [...events, adopted, stored] })
    .when(looked(4))
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
    [...begun(), adopted, stored, looked(4), looked(5)],
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
