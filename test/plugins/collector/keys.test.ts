import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { type AlertRaised, alertRaised } from '../../../src/core/contracts/alerts.ts';
import { openVault } from '../../../src/core/host/secrets/vault.ts';
import { isCoded } from '../../../src/core/kernel/errors/holdfast-error.ts';
import { KeyRing } from '../../../src/plugins/collector/key-ring.ts';
import { OwnKey } from '../../../src/plugins/collector/key-source.ts';
import type { Scope } from '../../support/scope.ts';
import { tempDir } from '../../support/temp.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { effectiveYaml } from './effective.ts';
import { type Options, startRig, until } from './rig.ts';

const key = randomUUID();
const other = randomUUID();
const legacyToken = 'c0ffee-token-that-never-admitted';

function ring(t: Scope, clock = new VirtualClock()) {
  return new KeyRing(openVault(tempDir(t)), clock);
}

const started = (t: Scope, options: Options, dir = tempDir(t)) => startRig(t, dir, options);

test('[O2] the raw key admits, and every other way to present it says what it is', (t) => {
  const keys = ring(t);
  keys.accept({ tokens: [key, other], current: key });
  keys.setLegacyToken(legacyToken);
  for (const token of [key, other]) {
    t.deepEqual(keys.judge(token, 'app'), { kind: 'accepted', fingerprint: keys.fingerprintOf(token) });
    t.deepEqual(keys.judge(`Bearer ${token}`, 'app'), { kind: 'prefixed' });
    t.deepEqual(keys.judge(`bearer  ${token}`, 'app'), { kind: 'prefixed' });
  }
  t.deepEqual(keys.judge(legacyToken, 'app'), { kind: 'legacyToken' });
  for (const wrong of [
    '',
    ' ',
    'Bearer',
    'Bearer ',
    randomUUID(),
    key.slice(1),
    `${key} `,
    'x'.repeat(100_000),
  ]) {
    t.deepEqual(keys.judge(wrong, 'app'), { kind: 'unknown' }, wrong.slice(0, 50));
  }
});

test('[O9] who was seen with which key is remembered, within bounds', (t) => {
  const clock = new VirtualClock();
  const keys = ring(t, clock);
  keys.accept({ tokens: [key, other], current: other });
  const fingerprint = keys.fingerprintOf(key);
  for (let index = 0; index < 1_000; index += 1) keys.judge(key, `app-${index}`);
  t.is(keys.sightings(fingerprint).length, 256);
  void clock.advance(5);
  keys.judge(key, `bad\u001b[31m\nname${'x'.repeat(500)}`);
  const last = keys.sightings(fingerprint).at(-1);
  t.is(last?.at, clock.now());
  t.notRegex(last?.producer ?? '', /\p{C}/u);
  t.true((last?.producer.length ?? 0) <= 100);
  keys.judge(key, '__proto__'); // as a key of a record it is none, and the rotation has records
  t.is(keys.sightings(fingerprint).at(-1)?.producer, 'unnamed');
  keys.judge(other, 'holdfast-probe-1234');
  t.deepEqual(keys.sightings(keys.fingerprintOf(other)), []);
});

test('[O9] a flood of names drives out neither who has long been known nor who is waited for', (t) => {
  const clock = new VirtualClock();
  const keys = new KeyRing(openVault(tempDir(t)), clock, undefined, (name) => name === 'awaited');
  keys.accept({ tokens: [key], current: key });
  const names = () => keys.sightings(keys.fingerprintOf(key)).map(({ producer }) => producer);
  for (let index = 0; index < 200; index += 1) keys.judge(key, `app-${index}`);
  clock.jump(60_000);
  for (let index = 0; index < 500; index += 1) {
    if (index === 400) keys.judge(key, 'awaited');
    keys.judge(key, `flood-${index}`);
  }
  t.is(names().length, 256);
  for (const name of ['app-0', 'app-199', 'awaited', 'flood-499']) t.true(names().includes(name), name);
  // Whoever is silent for an hour makes room for others.
  clock.jump(3_500_000);
  keys.judge(key, 'app-7');
  clock.jump(200_000);
  for (let index = 0; index < 255; index += 1) keys.judge(key, `later-${index}`);
  t.true(names().includes('app-7') && names().includes('later-0') && !names().includes('app-0'));
});

test('[O9] a retired key is refused, and who still presents it is remembered', (t) => {
  const keys = ring(t);
  keys.accept({ tokens: [other], current: other });
  const old = keys.fingerprintOf(key);
  keys.judge(key, 'before');
  keys.watchRetired([old]);
  t.deepEqual(keys.judge(key, 'router-edge'), { kind: 'unknown' });
  t.deepEqual(
    keys.sightings(old).map(({ producer }) => producer),
    ['router-edge'],
  );
});

test('[O8] without a collector config a key is made once, mode 0600, and admits', async (t) => {
  const { keys, dir } = await started(t, {});
  const file = join(dir, 'secrets', 'otel_ingest_api_key');
  const made = readFileSync(file, 'utf8').trim();
  t.regex(made, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  t.is(statSync(file).mode & 0o777, 0o600);
  t.is(await keys.current(), made);
  t.is(keys.judge(made, 'app').kind, 'accepted');
});

test('[O9] our own key is rotated with an overlap: both admit until the old one is retired', (t) => {
  const dir = tempDir(t);
  const own = new OwnKey(dir);
  const first = own.read();
  own.regenerate();
  const both = own.read();
  t.not(both.current, first.current);
  t.deepEqual([...both.tokens].sort(), [both.current, first.current].sort());
  t.deepEqual(new OwnKey(dir).read(), both);
  own.retire();
  own.retire();
  t.deepEqual(own.read(), { tokens: [both.current as string], current: both.current });
});

test('[O8] a changed collector config counts at once, a broken one leaves the last good keys', async (t) => {
  const dir = tempDir(t);
  const file = join(dir, 'effective.yaml');
  writeFileSync(file, effectiveYaml({ tokens: ['no-key', key, other] }));
  const { keys } = await started(t, { effectiveConfig: file, lookEveryMs: 20 });
  t.is(await keys.current(), key);
  t.is(keys.judge('no-key', 'app').kind, 'accepted');
  writeFileSync(file, effectiveYaml({ tokens: [other] }));
  await until('the new key counts', async () => (await keys.current()) === other);
  t.is(keys.judge(key, 'app').kind, 'unknown');
  writeFileSync(file, 'extensions: [not, {a map');
  await new Promise((done) => setTimeout(done, 100));
  t.is(keys.judge(other, 'app').kind, 'accepted');
  t.is(await keys.current(), other);
});

test('[O8] what is wrong with the collector config is told to a person when it lasts, and that it is fixed', async (t) => {
  const dir = tempDir(t);
  const file = join(dir, 'effective.yaml');
  writeFileSync(file, effectiveYaml({ tokens: [key], isEnforced: false }));
  const clock = new VirtualClock();
  const { runtime } = await startRig(t, dir, { effectiveConfig: file }, [], clock);
  const raised: Pick<AlertRaised, 'name' | 'severity' | 'text' | 'labels'>[] = [];
  runtime.services.bus.subscribe(alertRaised, 'test', ({ payload }) => raised.push(payload));
  const finding = (code: string) => runtime.services.actors.snapshot(`collector.finding/${code}` as never);
  const told = async (count: number) =>
    until('it is told', async () => {
      await clock.advance(1_000);
      return raised.length === count;
    });
  t.is(finding('auth_not_enforced')?.value, 'found');
  t.deepEqual(raised, []);
  await told(1);
  const place = file;
  t.like(raised[0], { name: 'collector.auth_not_enforced', severity: 'critical' });
  t.deepEqual(raised[0]?.labels, { place, state: 'firing' });
  t.regex(raised[0]?.text ?? '', /otlp\/hyperdx grpc.*admit every client\. Enforce/);
  writeFileSync(file, 'service: {pipelines: {traces: {exporters: [debug]}}}');
  await told(3);
  const names = raised.slice(1).map(({ name, labels }) => `${name} ${labels.state}`);
  t.deepEqual(names, ['collector.auth_not_enforced resolved', 'collector.bootstrap_only firing']);
  // Replaced as a whole, the config is no config for a moment: nobody hears of that.
  writeFileSync(file, '');
  await until('it is seen', () => finding('unreadable')?.value === 'found');
  t.is(raised.length, 3, 'of what else is in it nothing is known');
  writeFileSync(file, effectiveYaml({ tokens: [key] }));
  await told(4);
  t.like(raised[3], { name: 'collector.bootstrap_only', labels: { state: 'resolved' } });
  t.is(finding('unreadable')?.value, 'absent');
});

test('[O8] where no key is known everybody is refused, and whoever asks for it hears why', async (t) => {
  const dir = tempDir(t);
  const { keys } = await started(t, { effectiveConfig: join(dir, 'nowhere.yaml') });
  const error = await t.throwsAsync(keys.current());
  t.true(isCoded(error, 'HF_COLLECTOR_NO_KEY'));
  t.is(keys.judge(key, 'app').kind, 'unknown');
});

test('[O25] the legacy token is known from the secrets store', async (t) => {
  const dir = tempDir(t);
  const folder = join(dir, 'secrets', 'store', 'observability');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(join(folder, 'otel_ingest_token'), legacyToken, { mode: 0o600 });
  const { keys } = await started(t, {}, dir);
  t.is(keys.judge(legacyToken, 'app').kind, 'legacyToken');
});
