import { execFileSync, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import type { Scope } from './scope.ts';

/** A network namespace of a test's own; gone with the test. */
export interface Namespace {
  readonly name: string;
  /** Whether its kernel has VLANs; a test puts another device in a VLAN's place where it has none. */
  readonly hasVlans: boolean;
  /** Runs `ip` in it. @returns what it printed */
  ip(line: string): string;
}

const freshName = (): string => `hf${process.pid}x${randomInt(1_000_000)}`;

/** Whether this machine lets this user make a network namespace. */
export function canMakeNamespaces(): boolean {
  const name = freshName();
  const made = spawnSync('ip', ['netns', 'add', name]).status === 0;
  if (made) spawnSync('ip', ['netns', 'del', name]);
  return made;
}

/** Use it within `testInNamespace` only. */
export function namespace(t: Scope): Namespace {
  const name = freshName();
  execFileSync('ip', ['netns', 'add', name], { stdio: 'pipe' });
  t.teardown(() => spawnSync('ip', ['netns', 'del', name]));
  const ip = (line: string) => execFileSync('ip', ['-n', name, ...line.split(' ')], { encoding: 'utf8' });
  ip('link set lo up');
  ip('link add probe0 type veth peer name probe1');
  const vlan = spawnSync('ip', [
    '-n',
    name,
    ...'link add link probe0 name probe0.9 type vlan id 9'.split(' '),
  ]);
  ip('link del probe0');
  const hasVlans = vlan.status === 0;
  if (!hasVlans) t.log('this kernel has no VLANs: a veth pair stands in for one');
  return { name, hasVlans, ip };
}
