import test from 'ava';
import fc from 'fast-check';
import * as prom from 'prom-client';
import { Metrics } from '../../../../src/core/host/metrics/metrics.ts';

test('[C14] a metric is made once by its name, and bears the prefix', async (t) => {
  const metrics = new Metrics();
  metrics.counter('log_records_total', { help: 'Records.', labels: ['machine'] }).inc({ machine: 'a' });
  metrics.counter('log_records_total', { help: 'Records.', labels: ['machine'] }).inc({ machine: 'a' }, 2);
  metrics.histogram('log_commit_seconds', { help: 'Commits.', buckets: [0.01, 0.1] }).observe(0.05);
  const text = await metrics.text();
  t.true(text.includes('holdfast_log_records_total{machine="a"} 3'));
  t.true(text.includes('holdfast_log_commit_seconds_bucket{le="0.1"} 1'));
  t.regex(metrics.contentType, /^text\/plain; version=0\.0\.4/);
});

test('[C14] one name cannot be two kinds of metric', (t) => {
  const metrics = new Metrics();
  metrics.counter('x_total', { help: 'x' });
  t.throws(() => metrics.gauge('x_total', { help: 'x' }), {
    instanceOf: TypeError,
    message: /holdfast_x_total/,
  });
});

test('[C14] a gauge with collect is read at the scrape', async (t) => {
  const metrics = new Metrics();
  let depth = 1;
  metrics.gauge('depth', { help: 'x', collect: (gauge) => gauge.set(depth) });
  t.true((await metrics.text()).includes('holdfast_depth 1'));
  depth = 5;
  t.true((await metrics.text()).includes('holdfast_depth 5'));
});

test('[C14] two runtimes in one process do not mix their metrics', async (t) => {
  const [one, two] = [new Metrics(), new Metrics()];
  one.counter('x_total', { help: 'x' }).inc();
  t.false((await two.text()).includes('x_total'));
});

test('[C14] memory, CPU and the lag of the event loop are there once it runs', async (t) => {
  const metrics = new Metrics();
  t.is((await metrics.text()).trim(), '');
  metrics.start();
  t.teardown(() => metrics.stop());
  // Block for longer than a sampling period: the next sample is late.
  await new Promise((resolve) => setTimeout(resolve, 20));
  const until = performance.now() + 800;
  while (performance.now() < until || process.threadCpuUsage().user < 500_000);
  await new Promise((resolve) => setTimeout(resolve, 50));
  const value = (text: string, name: string) =>
    Number(new RegExp(`^holdfast_${name} (.*)$`, 'm').exec(text)?.[1]);
  const text = await metrics.text();
  t.true(value(text, 'event_loop_lag_max_seconds') > 0.2);
  t.true(value(text, 'process_resident_memory_bytes') > 10_000_000);
  t.true(value(text, 'process_cpu_seconds_total{mode="user"}') > 0.1);
  t.true(value(text, 'event_loop_active_seconds_total') > 0.5);
  t.true(value(text, 'process_start_time_seconds') > 1_700_000_000);
  t.regex(text, /holdfast_build_info\{version="\d[^"]*",node="24[^"]*"\} 1/);
});

test('[C14] totals of the system are taken over at each scrape, not added up', async (t) => {
  const metrics = new Metrics();
  metrics.start();
  t.teardown(() => metrics.stop());
  const cpu = async () => Number(/mode="user"\} (.*)$/m.exec(await metrics.text())?.[1]);
  const before = await cpu();
  const after = await cpu();
  t.true(after - before < 0.5);
});

test('[C14] starting twice samples once, and nothing keeps the process alive', (t) => {
  const metrics = new Metrics();
  metrics.start();
  metrics.start();
  const timers = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
  metrics.stop();
  metrics.stop();
  t.true(timers <= 1);
});

test('[C14] counters and histograms are told as prom-client tells its own, whatever was counted', async (t) => {
  const labels = fc.record({ route: fc.constantFrom('/a', '/b"\\\n'), status: fc.constantFrom(200, 'none') });
  const value = fc.oneof(fc.constantFrom(0, 0.1, 1, 7), fc.double({ min: 0, max: 9, noNaN: true }));
  const counted = fc.array(fc.tuple(labels, value), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(counted, async (all) => {
      const ours = new Metrics();
      const registry = new prom.Registry();
      const about = (name: string) => ({ name: `holdfast_${name}`, help: 'x', registers: [registry] });
      const labelNames = ['route', 'status'];
      const buckets = [0.1, 1, 5];
      const theirs = {
        plain: new prom.Counter(about('plain_total')),
        told: new prom.Counter({ ...about('told_total'), labelNames }),
        lone: new prom.Histogram({ ...about('lone_seconds'), buckets }),
        split: new prom.Histogram({ ...about('split_seconds'), labelNames, buckets }),
      };
      const mine = {
        plain: ours.counter('plain_total', { help: 'x' }),
        told: ours.counter('told_total', { help: 'x', labels: labelNames }),
        lone: ours.histogram('lone_seconds', { help: 'x', buckets }),
        split: ours.histogram('split_seconds', { help: 'x', labels: labelNames, buckets }),
      };
      for (const { plain, told, lone, split } of [theirs, mine]) {
        for (const [given, much] of all) {
          plain.inc();
          told.inc(given, much);
          lone.observe(much);
          split.observe(given, much);
        }
      }
      t.is(await ours.text(), await registry.metrics());
    }),
    { numRuns: 60 },
  );
});

test('[C14] a label that a metric does not have is refused', (t) => {
  const counter = new Metrics().counter('x_total', { help: 'x', labels: ['route'] });
  t.throws(() => counter.inc({ rout: '/a' }), { message: /"rout"/ });
});
