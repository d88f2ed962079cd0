import test from 'ava';
import { consolePlugin } from '../../../src/plugins/console/index.ts';
import { ConsoleRig } from '../console/console-rig.ts';
import { cellsOf, sectionsOf, shownLiveAndOpened } from '../console/opened.ts';
import { FieldStore } from './field-store.ts';
import { startDrills } from './rig.ts';

const CANARY = 'canary-3fe6b7c1';

test('[C15,B6] the pages of backups and drills show which backup is proven, and why one is not, phase by phase', async (t) => {
  const live = await FieldStore.start(t);
  const scratch = await FieldStore.start(t);
  live.fill(12);
  live.collections.get('memory')?.points.set(12, { id: 12, vector: [1, 0, 0], payload: { text: CANARY } });
  const rig = await startDrills(t, {
    memory: { url: live.url, seeds: { ids: [1, 2] } },
    restore: { scratchUrl: scratch.url },
    plugins: [consolePlugin({ port: 0 })],
  });
  const console = new ConsoleRig(rig.runtime, rig.dataDir, []);
  t.teardown(() => console.dispatcher.destroy());
  const name = await rig.snapshot();
  const before = await console.durable();
  const { id: good } = await rig.drill();
  const between = await console.durable();
  const { records: prepared } = await console.ask('/api/records?event=PREPARED');
  const whole = JSON.parse(live.snapshots.get(name) ?? '');
  whole.points.splice(4, 1);
  live.snapshots.set(name, JSON.stringify(whole));
  const { id: bad } = await rig.drill();
  const last = await console.durable();

  const [row] = cellsOf(
    sectionsOf(await console.ask('/api/pages/memory-collections'))['Collections that are kept'],
  );
  t.like(row, { collection: 'memory', points: 12, snapshots: 1 });
  t.regex(JSON.stringify(await console.ask(`/api/pages/memory-collections?at=${before}`)), /asked now alone/);

  const {
    opened,
    live: shown,
    texts,
  } = await shownLiveAndOpened(t, console, [
    `/api/pages/memory?at=${before}`,
    `/api/pages/memory?at=${between}`,
    `/api/pages/memory?at=${last}`,
    `/api/pages/drills?at=${before}`,
    `/api/pages/drills?at=${last}`,
    `/api/pages/drills?at=${last}&drill=${good}`,
    `/api/pages/drills?at=${prepared[0].seq}`,
  ]);
  t.deepEqual(opened, shown);
  t.false(texts.includes(CANARY));
  const [unproven, proven, refuted, none, newest, first, during] = shown.map(sectionsOf);
  const snapshots = (sections: any) =>
    sections.Snapshots.rows.map(({ status, cells }: any) => [cells.name, status, cells.points, cells.proven]);
  t.deepEqual(snapshots(unproven), [[name, 'unknown', 12, 'by no drill that is remembered']]);
  t.deepEqual(snapshots(proven), [[name, 'ok', 12, `by drill ${good}`]]);
  t.is(snapshots(refuted)[0][1], 'failing');
  t.regex(snapshots(refuted)[0][3], /^not: 11 points instead of 12, .*; point 5 is missing/);
  t.regex(cellsOf(unproven?.Snapshots)[0].sha256, /^[0-9a-f]{16}…$/);

  t.regex(none?.text.text, /No drill was made yet: nothing is proven/);
  const phases = (sections: any) => sections.Phases.spans.map(({ by, status }: any) => [by, status]);
  t.deepEqual(phases(first), [
    ['choosing', 'ok'],
    ['preparing', 'ok'],
    ['recovering', 'ok'],
    ['verifying', 'ok'],
    ['cleaning', 'ok'],
  ]);
  t.deepEqual(phases(newest).slice(3), [
    ['verifying', 'failing'],
    ['cleaning', 'ok'],
  ]);
  const spans = newest?.Phases.spans;
  for (const [index, span] of spans.entries())
    if (index > 0)
      t.is(span.start, spans[index - 1].start + spans[index - 1].duration, 'each begins where another ends');
  const fact = (section: any, wanted: string) => section.facts.find(({ label }: any) => label === wanted);
  t.is(fact(first?.[`Drill ${good}`], 'result').status, 'ok');
  t.like(fact(newest?.[`Drill ${bad}`], 'result'), { status: 'failing' });
  t.is(fact(newest?.['What was compared'], 'points restored').value, 11);
  t.is(fact(newest?.['What was compared'], 'file of the backup').status, 'failing');
  t.deepEqual(
    cellsOf(newest?.Points).map(({ how, count, first: ids }) => [how, count, ids]),
    [
      ['as expected', 11, ''],
      ['missing', 1, '5'],
    ],
  );
  t.deepEqual(
    cellsOf(newest?.['The last drills']).map(({ id }) => id),
    [bad, good],
  );
  t.deepEqual(
    phases(during),
    [
      ['choosing', 'ok'],
      ['preparing', 'ok'],
      ['recovering', 'unknown'],
    ],
    'a drill that is under way has a phase without an end',
  );
});
