import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { askInstance } from '../../../src/core/host/operations/control-client.ts';
import type { ParityRow } from '../../../src/plugins/collector/key-parity.ts';
import { collectorOptions } from '../../../src/plugins/collector/options.ts';
import { judgeParity } from '../../../src/plugins/collector/parity-command.ts';
import { secretsEnvironment, secretsFolder } from '../../../src/plugins/secrets/index.ts';
import { Refusal } from '../../support/kubernetes/index.ts';
import { tempDir } from '../../support/temp.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { effectiveYaml } from './effective.ts';
import { keysInCluster } from './keys-in-cluster.ts';
import { type Rig, startRig, until } from './rig.ts';

const storeOf = (dir: string) => join(dir, 'secrets', 'store', 'observability', 'otel_ingest_api_key');
function putInStore(dir: string, key: string): void {
  mkdirSync(join(dir, 'secrets', 'store', 'observability'), { recursive: true, mode: 0o700 });
  writeFileSync(storeOf(dir), key, { mode: 0o600 });
}
/** The table, and what doctor says of it; by the instance's control socket, because a process each time takes long. */
async function parity({ dir }: Rig) {
  const instance = { dataDir: dir, signal: AbortSignal.timeout(30_000) };
  const { keys } = await askInstance<{ keys: ParityRow[] }>(instance, '/collector/parity', {}, 'none');
  return { keys, doctor: judgeParity(keys), states: keys.map(({ what, state }) => `${what} ${state}`) };
}
const exitCode = async (rig: Rig) => (await rig.holdfast('stack', 'key-parity', '--json')).code;

const SAME = [
  'effective config reference',
  'secrets store same',
  'synced Secret same',
  'running pod same',
  'running pod same',
  'external producer same',
];
const SECRET = 2;

test('[O8,O9] the key in every place is compared by fingerprints, and each `same` becomes something else when its place does', async (t) => {
  const dir = tempDir(t);
  const here = await keysInCluster(t, dir);
  const key = here.collector;
  putInStore(dir, key);
  here.sync(key);
  here.restart();
  const rig = await startRig(t, dir, { ...here.options, externalProducers: ['router-edge'] }, here.others);
  t.is(rig.keys.judge(key, 'router-edge').kind, 'accepted');
  const well = await parity(rig);
  t.deepEqual(well.states, SAME);
  t.is(await exitCode(rig), 0);
  t.is(well.doctor.state, 'ok');
  t.is(new Set(well.keys.map(({ fingerprint }) => fingerprint)).size, 1);
  t.regex(well.keys[3]?.reason ?? '', /^started 20/);
  t.false(JSON.stringify(well).includes(key));

  /** The row at `at` alone has another state, with this reason. */
  const becomes = async (
    at: number,
    state: ParityRow['state'],
    reason: RegExp,
    wanted: 'fail' | 'unknown',
  ) => {
    const now = await parity(rig);
    t.is(now.keys[at]?.state, state, JSON.stringify(now.keys[at]));
    t.regex(now.keys[at]?.reason ?? '', reason);
    t.deepEqual(now.states.toSpliced(at, 1), SAME.toSpliced(at, 1));
    t.is(now.doctor.state, wanted);
    t.true(now.doctor.found.includes(now.keys[at]?.place as string));
  };
  const other = randomUUID();
  putInStore(dir, other);
  await becomes(1, 'differs', /^$/, 'fail');
  t.is(await exitCode(rig), 1);
  writeFileSync(storeOf(dir), '');
  await becomes(1, 'unknown', /otel_ingest_api_key/, 'unknown');
  putInStore(dir, key);

  here.sync(other);
  await becomes(SECRET, 'differs', /^$/, 'fail');
  here.api.store.replace({
    ...(here.api.store.find('Secret', 'otel-ingest', 'stack') as any),
    data: { another: 'eA==' },
  });
  await becomes(SECRET, 'missing', /has no property INGEST_TOKEN/, 'fail');
  here.api.mishap = ({ path }) =>
    path.includes('/secrets/') ? new Refusal(403, 'Forbidden', 'no') : undefined;
  await becomes(SECRET, 'unknown', /refused to read Secret otel-ingest/, 'unknown');
  here.api.mishap = () => undefined;
  here.sync(key);

  here.mishap = (pod) => (pod === 'scraper-0' ? { output: `${other}\n` } : undefined);
  await becomes(3, 'differs', /^started/, 'fail');
  here.mishap = (pod) => (pod === 'scraper-0' ? 'no program' : undefined);
  await becomes(3, 'unknown', /"printenv": executable file not found.*; started 20/, 'unknown');
  here.mishap = (pod) => (pod === 'scraper-node-0' ? { exitCode: 1 } : undefined);
  await becomes(4, 'unknown', /no variable INGEST_TOKEN/, 'unknown');
  here.mishap = () => undefined;
  here.api.store.delete('Pod', 'scraper-node-0', 'stack');
  await becomes(4, 'unknown', /it has no pod/, 'unknown');
  here.restart();

  // Of the pods that a partial list leaves out nobody knows the key.
  here.api.pages.endless = /pods/;
  const cut = await parity(rig);
  t.deepEqual(
    cut.keys.filter(({ state }) => state === 'unknown').map(({ reason }) => reason),
    Array.from({ length: 3 }, () => 'the list of pods was too long to be read whole').map((reason, index) =>
      index === 0 ? `It can't be read: ${reason}.` : reason,
    ),
  );
  t.is(cut.doctor.state, 'unknown');
  here.api.pages.endless = undefined;

  // The effective config is the reference: without it nothing is the same as anything.
  here.mishap = (pod) => (pod === 'collector-0' ? { exitCode: 1, errors: 'cat: no such file' } : undefined);
  const blind = await parity(rig);
  t.deepEqual(
    blind.keys.map(({ state }) => state),
    SAME.map(() => 'unknown'),
  );
  t.regex(blind.keys[0]?.reason ?? '', /ended with 1: cat: no such file/);
  t.is(blind.doctor.state, 'unknown');
  // Nobody's `ok` is taken from the last good key.
  const stored = await rig.holdfast('stack', 'adopt-ingest-key');
  t.regex(stored.err, /HF_COLLECTOR_ADOPTION.*no ingest key to store/s);
  here.mishap = () => undefined;
  here.collector = other;
  const rotated = await parity(rig);
  t.regex(rotated.keys[5]?.reason ?? '', /^last seen 20/);
  t.deepEqual(rotated.states, [SAME[0], ...SAME.slice(1).map((row) => row.replace('same', 'differs'))]);
});

test('[O8] the effective config is read in the pods: each has its own, a change counts at once, a failure is a finding', async (t) => {
  const dir = tempDir(t);
  const here = await keysInCluster(t, dir);
  const first = here.collector;
  const rig = await startRig(t, dir, here.options, here.others);
  t.is(rig.keys.judge(first, 'app').kind, 'accepted');
  t.deepEqual(here.api.calls.filter((call) => call.startsWith('UPGRADE')).slice(0, 1), [
    'UPGRADE /api/v1/namespaces/stack/pods/collector-0/exec',
  ]);
  const health = () => rig.runtime.health().collector as { ok?: boolean; reason?: string; source: string };
  t.like(health(), { source: 'pods' });
  here.collector = randomUUID();
  await until('the new key admits', () => rig.keys.judge(here.collector, 'app').kind === 'accepted');
  t.is(rig.keys.judge(first, 'app').kind, 'unknown');
  const pod = here.api.store.find('Pod', 'collector-0', 'stack') as any;
  const metadata = { name: 'collector-1', namespace: 'stack', labels: pod.metadata.labels };
  here.api.store.create({ ...pod, metadata });
  const stale = randomUUID();
  here.mishap = (name) =>
    name === 'collector-1' ? { output: effectiveYaml({ tokens: [stale] }) } : undefined;
  const { keys } = await parity(rig);
  t.deepEqual(
    keys.slice(0, 2).map(({ place, state }) => `${place} ${state}`),
    ['pod collector-0 reference', 'pod collector-1 differs'],
  );
  here.mishap = () => ({ output: 'service: {pipelines: {traces: {exporters: [debug]}}}' });
  await until('it is the bootstrap config', () => /bootstrap/.test(health().reason ?? ''));
  here.mishap = () => ({ exitCode: 1, errors: 'cat: no such file' });
  await until('it cannot be read', () => /can't be read.*ended with 1/.test(health().reason ?? ''));
  here.api.mishap = () => new Refusal(403, 'Forbidden', 'pods is forbidden');
  await until('the right is missing', () => /pods is forbidden/.test(health().reason ?? ''));
  const both = { effectiveConfig: '/x', collectorPods: { namespace: 'a', labels: { a: 'b' } } };
  t.regex(String(collectorOptions.safeParse(both).error), /one of effectiveConfig and collectorPods/);
});

test('[O8] where the cluster is silent the instance starts, says why there is no key, and has it once the cluster answers', async (t) => {
  const dir = tempDir(t);
  const here = await keysInCluster(t, dir, 1_000);
  here.api.mishap = () => 'hang';
  const rig = await startRig(t, dir, here.options, here.others);
  await t.throwsAsync(rig.keys.current(), { message: /HF_COLLECTOR_NO_KEY.*nothing came within 1 s/ });
  here.api.mishap = () => undefined;
  await until('the key is known', () => rig.keys.judge(here.collector, 'app').kind === 'accepted');
});

test('[O9] without cluster, Secret and producers the table says unknown with each reason, and doctor warns', async (t) => {
  const dir = tempDir(t);
  const file = join(dir, 'effective.yaml');
  const key = randomUUID();
  writeFileSync(file, effectiveYaml({ tokens: [key] }));
  putInStore(dir, key);
  const rig = await startRig(t, dir, { effectiveConfig: file, externalProducers: ['router-edge'] });
  const { states, keys, doctor } = await parity(rig);
  t.deepEqual(states, [
    'effective config reference',
    'secrets store same',
    'synced Secret unknown',
    'running pod unknown',
    'external producer unknown',
  ]);
  t.regex(keys[2]?.reason ?? '', /refresh.syncedSecret/);
  t.regex(keys[3]?.reason ?? '', /refresh.deployments/);
  t.regex(keys[4]?.reason ?? '', /not seen at our receiver/);
  t.is(await exitCode(rig), 3);
  t.is(doctor.state, 'unknown');
  const lines = await rig.holdfast('stack', 'key-parity');
  t.regex(lines.out, /secrets store {5}same {6}fp_/);
  t.false((lines.out + doctor.found).includes(key));
  rmSync(storeOf(dir));
  const missing = await parity(rig);
  t.is(missing.keys[1]?.state, 'missing');
  t.is(missing.doctor.state, 'fail');
  // The last good key still admits; it is no proof of what the collector has now.
  putInStore(dir, key);
  writeFileSync(file, 'extensions: {');
  const broken = await parity(rig);
  t.is(rig.keys.judge(key, 'app').kind, 'accepted');
  t.deepEqual(broken.states.slice(0, 2), ['effective config unknown', 'secrets store unknown']);
  t.is(broken.doctor.state, 'unknown');
});

test('[O9] the first key is stored without being rotated, another value only when told so, and never one that was not read', async (t) => {
  const dir = tempDir(t);
  const file = join(dir, 'effective.yaml');
  const key = randomUUID();
  writeFileSync(file, effectiveYaml({ tokens: [key] }));
  const rig = await startRig(t, dir, { effectiveConfig: file });
  t.false(existsSync(storeOf(dir)));
  const first = await rig.holdfast('stack', 'adopt-ingest-key');
  t.is(first.code, 0, first.err);
  t.regex(first.out, /^fp_[0-9a-f]+ is stored in observability#otel_ingest_api_key/);
  t.is(readFileSync(storeOf(dir), 'utf8').trim(), key);
  t.is(rig.state(), 'idle');
  t.is(await rig.keys.current(), key);
  const again = await rig.holdfast('stack', 'adopt-ingest-key');
  t.regex(again.out, /is in the secrets store already/);
  const other = randomUUID();
  putInStore(dir, other);
  const refused = await rig.holdfast('stack', 'adopt-ingest-key');
  t.is(refused.code, 1);
  t.regex(refused.err, /HF_COLLECTOR_ADOPTION.*another key \(fp_.*--replace/s);
  t.is(readFileSync(storeOf(dir), 'utf8'), other);
  // A store that cannot be read is none that is empty.
  writeFileSync(storeOf(dir), other, { mode: 0o600 });
  writeFileSync(storeOf(dir), '');
  t.not((await rig.holdfast('stack', 'adopt-ingest-key')).code, 0);
  putInStore(dir, other);
  const replaced = await rig.holdfast('stack', 'adopt-ingest-key', '--replace');
  t.is(replaced.code, 0, replaced.err);
  t.is(readFileSync(storeOf(dir), 'utf8').trim(), key);
  await rig.runtime.stop('to read its files');
  const log = readFileSync(join(dir, 'log.db'), 'latin1');
  t.regex(log, /"ADOPT"/);
  for (const text of [first, again, refused, replaced].map(({ out, err }) => out + err).concat(log)) {
    t.false(text.includes(key) || text.includes(other));
  }
});

test('[O9] a store that can only be read has a person store the first key, and the command waits for nobody', async (t) => {
  const rig = await startRig(t, tempDir(t), {}, [secretsEnvironment()]);
  const { code, out } = await rig.holdfast('stack', 'adopt-ingest-key');
  t.is(code, 3);
  t.regex(
    out,
    /is not stored: the secrets store can only be read: put the .*key.* in variable HOLDFAST_SECRET_/,
  );
});

test('[O9] an external producer that was silent for an hour is unknown, whatever key it had', async (t) => {
  const clock = new VirtualClock();
  const options = { externalProducers: ['router-edge'] };
  const rig = await startRig(t, tempDir(t), options, [secretsFolder()], clock);
  rig.keys.judge(await rig.keys.current(), 'router-edge');
  t.is((await parity(rig)).keys.at(-1)?.state, 'same');
  await clock.advance(3_600_001);
  const { keys } = await parity(rig);
  t.is(keys.at(-1)?.state, 'unknown');
  t.regex(keys.at(-1)?.reason ?? '', /it sent nothing for an hour, last seen/);
});

test('[O8] a Holdfast that is its own collector needs no store, and says where its key is', async (t) => {
  const rig = await startRig(t, tempDir(t), {}, [secretsFolder()]);
  const { states, doctor } = await parity(rig);
  t.deepEqual(states, ['effective config reference', 'secrets store missing']);
  t.is(doctor.state, 'ok');
  t.regex(doctor.found, /secrets\/otel_ingest_api_key; the secrets store holds none/);
});
