import test from 'ava';
import { jobRun } from '../../../src/core/contracts/jobs.ts';
import { columnar } from '../../../src/plugins/columnar/index.ts';
import { jobs } from '../../../src/plugins/jobs/index.ts';
import { watchdogDue } from '../../../src/plugins/watchdog/actor.ts';
import { watchdog } from '../../../src/plugins/watchdog/index.ts';
import { until } from '../../support/until.ts';
import { ConsoleRig } from '../console/console-rig.ts';
import { cellsOf, sectionsOf, shownLiveAndOpened } from '../console/opened.ts';

test('[C15,O10,O19] the pages of runs show why one failed, what the watchdog found, and when it runs next', async (t) => {
  const rig = await ConsoleRig.start(t, {
    others: [
      columnar({ url: 'http://127.0.0.1:9' }),
      watchdog({ signals: ['otel_logs'], cron: '0 0 29 2 *' }),
      jobs(),
    ],
  });
  const { actors, bus } = rig.runtime.services;
  const run = 'watchdog.run/clickstack-watchdog';
  const before = await rig.durable();
  bus.publish(watchdogDue, {});
  await until('the run has ended', () => (actors.snapshot(run)?.context as any)?.last !== undefined);
  const at = 29_384_123 * 60_000;
  bus.publish(jobRun, { phase: 'started', job: 'backup', at }, { correlation: 'one' });
  const started = await rig.durable();
  const end = {
    phase: 'ended',
    job: 'backup',
    at: at + 5_000,
    outcome: 'failed',
    cause: 'exit',
    text: 'no space',
  } as const;
  bus.publish(jobRun, end, { correlation: 'one' });
  await until('it is recorded', () =>
    actors.states('jobs.job').some(({ ref, value }) => ref.endsWith('/one') && value === 'failed'),
  );
  const last = await rig.durable();
  const now = sectionsOf(await rig.ask('/api/pages/watchdog'));
  const next = now['clickstack-watchdog'].facts.find(({ label }: any) => label === 'next run');
  t.regex(new Date(next.until).toISOString(), /^20\d\d-02-29T00:00:00/);

  const { live, opened } = await shownLiveAndOpened(t, rig, [
    `/api/pages/watchdog?at=${before}`,
    `/api/pages/watchdog?at=${last}`,
    `/api/pages/jobs?at=${started}`,
    `/api/pages/jobs?at=${last}`,
  ]);
  t.deepEqual(opened, live);
  const [none, ended, running, failed]: any[] = live.map(sectionsOf);
  const first = ({ facts }: any) => facts[0];
  t.like(first(none['clickstack-watchdog']), { value: 'none yet', status: 'unknown' });
  t.like(first(ended['clickstack-watchdog']), { label: 'last run', status: 'failing' });
  t.is(
    ended['clickstack-watchdog'].facts.some(({ label }: any) => label === 'next run'),
    false,
    'of the past nobody says what comes next',
  );
  const [found] = ended['Recorded runs'].rows;
  t.like(found, { status: 'failing', cells: { what: 'checked the stack' } });
  t.regex(found.cells.found, /database|127\.0\.0\.1:9/);
  const backup = (sections: any) =>
    sections.table.rows.find(({ cells }: any) => cells.run === 'backup-29384123');
  t.like(backup(running), { status: 'unknown', cells: { state: 'active', took: null } });
  t.like(backup(failed), { status: 'failing', cells: { took: 5_000, cause: 'exit: no space' } });
  t.true(cellsOf(failed.table).length > 0);
});
