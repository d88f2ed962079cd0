/** A host on which this checkout is installed in /opt/holdfast, and programs on it under what a unit of systemd allows. */
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from '../support/cli.ts';
import type { Scope } from '../support/scope.ts';
import { tempDir } from '../support/temp.ts';
import type { Container, Mount } from './tree.ts';
import { settingsOf } from './units.ts';

const DEVICES = ['null', 'zero', 'full', 'random', 'urandom'].map((name) => `/dev/${name}`);
const OF_SYSTEM: readonly Mount[] = [
  { from: root, at: '/opt/holdfast', readOnly: true },
  { from: '/usr', at: '/usr', readOnly: true },
  { from: '/proc', at: '/proc' },
  // `PrivateDevices=yes`
  ...DEVICES.map((device) => ({ from: device, at: device })),
];

/**
 * `ProtectSystem=strict`: everything read-only but what is mounted to be written; `PrivateTmp=yes`, `NoNewPrivileges=yes`,
 * and no capabilities but those that are named. `network`: commands in a network namespace of its own, before that.
 */
const START = `
set -e
tree=$1 caps=$2 network=$3; shift 3
mount --make-rprivate /
mount --bind "$tree" "$tree"
mount -o remount,bind,ro "$tree"
while [ "$1" != -- ]; do
  mount --rbind "$1" "$tree$2"
  if [ "$3" = ro ]; then mount -o remount,bind,ro "$tree$2"; fi
  shift 3
done
shift
mount -t tmpfs -o mode=1777 tmpfs "$tree/tmp"
eval "$network"
exec chroot "$tree" /usr/bin/setpriv --reuid=65532 --regid=65532 --clear-groups --no-new-privs \\
  --bounding-set="$caps" --inh-caps="$caps" --ambient-caps="$caps" -- "$@"
`;

export interface Allowances {
  /** Text of the unit and of its drop-ins, in order. */
  readonly units: readonly string[];
  /** Shell commands of root, in the network namespace that the program then has; without, it has that of this machine. */
  readonly network?: string;
}

/** Starts the program with the capabilities that the unit gives it; the process is that program itself. */
export function startOnHost(
  t: Scope,
  { argv, env, mounts }: Container,
  { units, network }: Allowances,
): ChildProcess {
  const tree = hostTree(t);
  const all = [...OF_SYSTEM, ...mounts];
  for (const { from, at } of all) {
    mkdirSync(join(tree, dirname(at)), { recursive: true });
    if (statSync(from).isDirectory()) mkdirSync(join(tree, at), { recursive: true });
    else writeFileSync(join(tree, at), '');
  }
  const namespaces = network === undefined ? '-m' : '-mn';
  const args = [
    ...[namespaces, 'sh', '-c', START, 'sh', tree, capabilitiesOf(units), network ?? ':'],
    ...all.flatMap(({ from, at, readOnly }) => [from, at, readOnly ? 'ro' : 'rw']),
    ...['--', ...argv],
  ];
  const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin';
  const child = spawn('/usr/bin/unshare', args, { env: { PATH, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  t.teardown(() => child.kill('SIGKILL'));
  return child;
}

/** @returns the list as `setpriv` takes it; that of the last setting counts */
export function capabilitiesOf(units: readonly string[]): string {
  const lists = units
    .flatMap(settingsOf)
    .flatMap(([key, value]) => (key === 'CapabilityBoundingSet' ? [value] : []));
  const names = (lists.at(-1) ?? '').split(' ').filter(Boolean);
  return ['-all', ...names.map((name) => name.replace('CAP_', '+').toLowerCase())].join(',');
}

/** Folders to mount on, with the names of users. */
function hostTree(t: Scope): string {
  const tree = tempDir(t);
  chmodSync(tree, 0o755);
  for (const folder of ['etc', 'run', 'tmp']) mkdirSync(join(tree, folder));
  for (const folder of ['bin', 'sbin', 'lib', 'lib64']) symlinkSync(`usr/${folder}`, join(tree, folder));
  writeFileSync(join(tree, 'etc/passwd'), 'root:x:0:0::/:/\nholdfast:x:65532:65532::/var/lib/holdfast:/\n');
  writeFileSync(join(tree, 'etc/group'), 'root:x:0:\nholdfast:x:65532:\n');
  for (const name of ['hosts', 'resolv.conf', 'nsswitch.conf'])
    writeFileSync(join(tree, 'etc', name), readFileSync(join('/etc', name)));
  return tree;
}
