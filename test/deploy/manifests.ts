import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { root } from '../support/cli.ts';
import type { Thing } from '../support/kubernetes/index.ts';

export const deploy = join(root, 'deploy');
/** A digest that a registry could have given. */
export const IMAGE = `registry.example/team/holdfast@sha256:${'5ea1'.repeat(16)}`;

/** The objects of a manifest, as `kubectl` reads YAML: 0440 is octal. */
export function objectsOf(text: string): Thing[] {
  return parseAllDocuments(text, { version: '1.1', merge: true }).map((document) => document.toJS());
}

/** The manifests of `deploy/` as they are kept, by file name. */
export function keptManifests(): Record<string, string> {
  const names = readdirSync(deploy).filter((name) => name.endsWith('.yaml'));
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(deploy, name), 'utf8')]));
}

/** Runs `npm run image-manifests`. @param out folder that they are written to */
export async function pinManifests(out: string, ...args: string[]) {
  const script = join(root, 'scripts/image-manifests.ts');
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [script, ...args, '--out', out]);
    return { code: 0, out: stdout, err: '' };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, out: stdout, err: stderr };
  }
}

/** The manifests with a published image, as they are applied. */
export async function pinned(out: string): Promise<Record<string, Thing>> {
  const { err } = await pinManifests(out, IMAGE);
  if (err !== '') throw new Error(err);
  const names = Object.keys(keptManifests());
  return Object.fromEntries(
    names.map((name) => [name, objectsOf(readFileSync(join(out, name), 'utf8'))[0]!]),
  );
}

/** The pod of a CronJob. */
export function podOf(job: Thing): any {
  return job.spec.jobTemplate.spec.template.spec;
}

export function containersOf(job: Thing): any[] {
  const { initContainers = [], containers } = podOf(job);
  return [...initContainers, ...containers];
}
