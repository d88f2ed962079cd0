/** Runs the containers of a pod in the image's tree, with volumes and variables as a kubelet makes them. */
import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Scope } from '../support/scope.ts';
import { tempDir } from '../support/temp.ts';
import type { Ended, Mount, Tree } from './tree.ts';

/** What is in the cluster beside the pod. */
export interface Surroundings {
  /** Secrets by name, each with its keys. */
  readonly secrets: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Where the services that a manifest names by URL really are. */
  readonly services: Readonly<Record<string, string>>;
}

/** @param spec of the pod; @returns how each container ended, in order, none after one that failed */
export async function runPod(t: Scope, tree: Tree, spec: any, around: Surroundings): Promise<Ended[]> {
  const { runAsUser, runAsGroup, fsGroup } = spec.securityContext;
  if (`${runAsUser}:${runAsGroup}` !== tree.config.User) throw new Error('the pod runs as another user');
  const volumes = new Map<string, string>(
    spec.volumes.map((volume: any) => [volume.name, makeVolume(t, volume, fsGroup, around)]),
  );
  const ended: Ended[] = [];
  for (const container of [...(spec.initContainers ?? []), ...spec.containers]) {
    const { command = tree.config.Entrypoint, args = [], env = [], volumeMounts } = container;
    const mounts = volumeMounts.map(
      ({ name, mountPath, readOnly }: any): Mount => ({ from: volumes.get(name)!, at: mountPath, readOnly }),
    );
    const end = await tree.run({
      argv: [...command, ...args],
      env: { ...Object.fromEntries(tree.config.Env.map(splitPair)), ...variables(env, around) },
      mounts,
      group: fsGroup,
    });
    ended.push(end);
    if (end.code !== 0) break;
  }
  return ended;
}

const splitPair = (text: string) => text.split(/=(.*)/s, 2) as [string, string];

function variables(env: readonly any[], { services }: Surroundings): Record<string, string> {
  const entries = env.map(({ name, value }): [string, string] => {
    const isPlace = /^https?:\/\//.test(value);
    if (isPlace && services[value] === undefined) throw new Error(`nothing stands in for ${value}`);
    return [name, services[value] ?? value];
  });
  return Object.fromEntries(entries);
}

/** A folder of the host, owned by root and the pod's group. */
function makeVolume(t: Scope, volume: any, fsGroup: number, { secrets }: Surroundings): string {
  const dir = tempDir(t);
  chownSync(dir, 0, fsGroup);
  chmodSync(dir, 0o2777);
  if (volume.emptyDir !== undefined) return dir;
  const { secretName, defaultMode = 0o644, items, optional } = volume.secret;
  const secret = secrets[secretName];
  if (secret === undefined) {
    if (optional) return dir;
    throw new Error(`secret "${secretName}" not found`);
  }
  const files = items ?? Object.keys(secret).map((key) => ({ key, path: key }));
  mkdirSync(join(dir, '..2026'));
  symlinkSync('..2026', join(dir, '..data'));
  for (const { key, path } of files) {
    if (secret[key] === undefined) throw new Error(`references non-existent secret key: ${key}`);
    const file = join(dir, '..2026', path);
    writeFileSync(file, secret[key]);
    chownSync(file, 0, fsGroup);
    // Whoever belongs to the group of the pod may read.
    chmodSync(file, defaultMode | 0o440);
    symlinkSync(join('..data', path), join(dir, path));
  }
  return dir;
}
