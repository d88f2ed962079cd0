import { readFileSync } from 'node:fs';
import test from 'ava';
import { parse } from 'yaml';
import { DEADLINE_MS } from '../../src/machines/watchdog/run.ts';

const deployed = (name: string): string =>
  readFileSync(new URL(`../../deploy/${name}`, import.meta.url), 'utf8');
const value = (unit: string, name: string): string | undefined =>
  new RegExp(`^${name}=(.*)$`, 'm').exec(deployed(unit))?.[1];

test('[O10] the watchdog runs every five minutes, by its timer on a host and by its CronJob in a cluster', (t) => {
  t.is(value('watchdog.timer', 'OnCalendar'), '*:0/5');
  t.is(parse(deployed('watchdog.cronjob.yaml')).spec.schedule, '*/5 * * * *');
});

test('[O18,O28] the backstop looks every hour, takes 36 h for stale, and tells it with priority 1', (t) => {
  t.is(value('backup-freshness.timer', 'OnCalendar'), 'hourly');
  t.is(value('backup-freshness.timer', 'Persistent'), 'true');
  t.is(value('backup-freshness.service', 'Environment=MAX_AGE_HOURS'), '36');
  const command = value('backup-freshness.service', 'ExecStart') ?? '';
  t.regex(command, /--max-age \$\{MAX_AGE_HOURS\}h /);
  t.regex(command, / --priority 1$/);
});

test('[B1,B11] snapshots are taken at 02:30 in a cluster too', (t) => {
  t.is(parse(deployed('memory-snapshot.yaml')).spec.schedule, '30 2 * * *');
});

test('[O13] the watchdog ends its run itself before the cluster or systemd would: else it could not say that it was late', (t) => {
  const { activeDeadlineSeconds, template } = parse(deployed('watchdog.cronjob.yaml')).spec.jobTemplate.spec;
  t.is(activeDeadlineSeconds, 120);
  const { args } = template.spec.containers[0];
  const own = Number(args[args.indexOf('--deadline') + 1]);
  // Its process must start before, and its report end after the deadline.
  t.true(own > 0 && own <= activeDeadlineSeconds - 10, `--deadline ${own}`);
  t.false((value('watchdog.service', 'ExecStart') ?? '--deadline').includes('--deadline'));
  t.true(Number(value('watchdog.service', 'TimeoutStartSec')) >= DEADLINE_MS / 1_000 + 10);
});

test('[O10] the jobs of a host and a cluster, which remember no signal, declare those of the documents', (t) => {
  for (const name of ['signals', 'producers'])
    t.true(deployed('watchdog.config.ts').includes(`${name}: ['otel_logs', 'otel_metrics_gauge']`), name);
});
