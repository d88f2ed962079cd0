import { readFileSync } from 'node:fs';
import test from 'ava';
import { parse } from 'yaml';

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
