/** What deploy/ gives to a cluster: valid objects, an image that exists, and the steps that publish it. */
import { execFile } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { parse } from 'yaml';
import { root } from '../support/cli.ts';
import { ClusterApi } from '../support/kubernetes/index.ts';
import { complaints } from '../support/kubernetes/schema.ts';
import { tempDir } from '../support/temp.ts';
import {
  containersOf,
  deploy,
  IMAGE,
  keptManifests,
  objectsOf,
  pinManifests,
  pinned,
  podOf,
} from './manifests.ts';

const run = promisify(execFile);

test('[B11] no manifest names an image before one is published, and every cluster refuses it clearly', (t) => {
  const names = Object.keys(keptManifests());
  t.deepEqual(names.toSorted(), ['memory-snapshot.yaml', 'watchdog.cronjob.yaml']);
  for (const [name, text] of Object.entries(keptManifests())) {
    const [job, ...others] = objectsOf(text);
    t.deepEqual(others, []);
    for (const { image } of containersOf(job!)) t.is(image, '', name);
    const faults = complaints(job!);
    t.is(faults.length, containersOf(job!).length);
    for (const fault of faults) t.regex(fault, /\.image: Required value$/);
  }
});

test('[B11] a published image is written into every manifest by its digest, and then a cluster takes all of them', async (t) => {
  for (const [name, job] of Object.entries(await pinned(tempDir(t)))) {
    t.deepEqual(complaints(job), [], name);
    for (const { image } of containersOf(job)) t.is(image, IMAGE);
  }
});

for (const wrong of [
  '',
  'holdfast',
  'holdfast:0.2.0',
  'ghcr.io/you/holdfast:latest',
  `holdfast@sha256:${'a'.repeat(64)}`,
  `ghcr.io/you/holdfast@sha256:${'a'.repeat(63)}`,
  `ghcr.io/you/holdfast:0.2.0@sha256:${'a'.repeat(64)}`,
  `ghcr.io/you/holdfast@sha256:${'a'.repeat(64)}\n`,
]) {
  test(`[B11] ${JSON.stringify(wrong)} is no image by digest, and nothing is written`, async (t) => {
    const out = join(tempDir(t), 'out');
    const { code, err } = await pinManifests(out, wrong);
    t.is(code, 1);
    t.regex(err, /An image by its digest is needed[\s\S]*What to do: publish the image/);
    t.throws(() => readFileSync(join(out, 'watchdog.cronjob.yaml')), { code: 'ENOENT' });
  });
}

test('[O10,O13,B11] kubectl knows every field of the jobs, and they can do no more than they must', async (t) => {
  const out = tempDir(t);
  for (const [name, job] of Object.entries(await pinned(out))) {
    // It decodes into its own types and writes them again: an unknown field would be gone, another type an error.
    const args = ['set', 'image', '--local', '-f', join(out, name), '*=registry/next', '-o', 'json'];
    const env = { ...process.env, HOME: out };
    const { stdout } = await run('kubectl', args, { timeout: 20_000, env });
    t.like(JSON.parse(stdout.replaceAll('registry/next', IMAGE)), job);
    t.false('suspend' in job.spec);
    const { backoffLimit, activeDeadlineSeconds } = job.spec.jobTemplate.spec;
    t.is(backoffLimit, 0);
    t.true(activeDeadlineSeconds > 0);
    const { securityContext, automountServiceAccountToken, restartPolicy } = podOf(job);
    t.like(securityContext, { runAsNonRoot: true, runAsUser: 65_532, runAsGroup: 65_532 });
    t.deepEqual([automountServiceAccountToken, restartPolicy], [false, 'Never']);
    for (const container of containersOf(job)) {
      t.is(container.resources.limits.memory, '256Mi');
      t.deepEqual(container.securityContext, {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
    }
  }
  const { 'watchdog.cronjob.yaml': watchdog, 'memory-snapshot.yaml': snapshot } = await pinned(out);
  t.is(watchdog!.spec.schedule, '*/5 * * * *');
  t.is(watchdog!.spec.jobTemplate.spec.activeDeadlineSeconds, 120);
  t.deepEqual(podOf(watchdog!).dnsConfig, { options: [{ name: 'ndots', value: '1' }] });
  t.is(snapshot!.spec.schedule, '30 2 * * *');
});

test('[O10,B11] the commands at the head of each manifest work: it is applied, and one run is made of it', async (t) => {
  const api = await ClusterApi.start(t);
  const dir = tempDir(t);
  const jobs = await pinned(dir);
  const env = { ...process.env, HOME: dir, KUBECONFIG: api.kubeconfig(dir) };
  const kubectl = async (...args: string[]) =>
    (await run('kubectl', args, { env, cwd: dir, timeout: 30_000 })).stdout;
  writeFileSync(join(dir, 'secret'), 'abc');
  for (const [name, job] of Object.entries(jobs)) {
    const { namespace } = job.metadata;
    api.store.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace! } });
    const kept = join(deploy, name);
    const refused = await t.throwsAsync(kubectl('create', '--validate=false', '-f', kept));
    t.regex(refused!.message, /image: Required value/);
    t.regex(await kubectl('create', '--validate=false', '-f', join(dir, name)), /created/);
    const text = readFileSync(kept, 'utf8').replaceAll(/\\\n#/g, '');
    const commands = [...text.matchAll(/kubectl (-n \S+ create .*)$/gm)].map(([, line = '']) => line);
    t.is(commands.length, 2);
    for (const line of commands) {
      const args = line.replaceAll('<file>', 'secret').split(/ +/);
      t.regex(await kubectl(...args), /created/, line);
    }
    const made = api.store.all('Job', namespace)[0]!;
    t.is(made.spec.template.spec.containers[0].image, IMAGE);
    // What its volumes refer to is what the command has made.
    const [secret] = api.store.all('Secret', namespace);
    const { secretName, items } = podOf(job).volumes.find((volume: any) => volume.secret).secret;
    t.is(secret!.metadata.name, secretName);
    for (const { key } of items ?? []) t.true(key in secret!.data, key);
  }
});

test('[B11] the workflow publishes for both platforms, and keeps the manifests that name what was published', async (t) => {
  const { jobs, on } = parse(readFileSync(join(deploy, 'image.workflow.yml'), 'utf8'));
  t.deepEqual(on, { push: { tags: ['v*'] } });
  const bin = tempDir(t);
  // Stands in for the engine: it writes what buildx does after a push.
  const docker = join(bin, 'docker');
  writeFileSync(docker, `#!${process.execPath}\n(${stubOfDocker.toString()})(process.argv.slice(2));\n`);
  chmodSync(docker, 0o755);
  const work = tempDir(t);
  await run('cp', ['-r', join(root, 'deploy'), join(root, 'scripts'), work]);
  const env = {
    PATH: `${bin}:${process.env.PATH}`,
    GITHUB_REPOSITORY: 'You/Holdfast',
    GITHUB_REF_NAME: 'v0.2.0',
    GITHUB_ENV: join(work, 'variables'),
  };
  writeFileSync(env.GITHUB_ENV, '');
  // What a step writes there are variables of those after it.
  const written = () => {
    const lines = readFileSync(env.GITHUB_ENV, 'utf8').trim().split('\n');
    return Object.fromEntries(lines.map((line) => line.split(/=(.*)/s, 2)));
  };
  for (const step of jobs.publish.steps.filter(({ run }: { run?: string }) => run !== undefined)) {
    await run('bash', ['-ec', step.run], { cwd: work, env: { ...written(), ...env } });
  }
  const args = JSON.parse(readFileSync(join(work, 'docker.json'), 'utf8'));
  t.deepEqual(args.slice(0, 2), ['buildx', 'build']);
  t.true(args.includes('linux/amd64,linux/arm64'));
  const base = args[args.indexOf('--build-arg') + 1];
  t.regex(base, /^NODE=24[\d.]+-bookworm-slim@sha256:b{64}$/, 'the base by its digest');
  const { path } = jobs.publish.steps.at(-1).with;
  for (const name of Object.keys(keptManifests())) {
    const [job] = objectsOf(readFileSync(join(work, path, basename(name)), 'utf8'));
    for (const { image } of containersOf(job!)) t.is(image, `ghcr.io/you/holdfast@sha256:${'d'.repeat(64)}`);
  }
});

function stubOfDocker(args: string[]): void {
  const { existsSync, writeFileSync: write } = process.getBuiltinModule('node:fs');
  if (args[1] === 'imagetools') {
    if (/^node:24[\w.-]+$/.test(args[3] ?? '')) console.log(`sha256:${'b'.repeat(64)}`);
    return;
  }
  const after = (flag: string) => args[args.indexOf(flag) + 1] ?? '';
  if (!existsSync(after('--file')) || !args.includes('--push')) process.exit(1);
  write('docker.json', JSON.stringify(args));
  const metadata = { 'image.name': after('--tag'), 'containerimage.digest': `sha256:${'d'.repeat(64)}` };
  write(after('--metadata-file'), JSON.stringify(metadata));
}
