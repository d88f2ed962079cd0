/** The image's root filesystem as it is built, and programs in it as a container runtime starts them. */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../support/cli.ts';
import type { Scope } from '../support/scope.ts';

const run = promisify(execFile);

export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Something of the host in the tree: a folder, or a file. */
export interface Mount {
  readonly from: string;
  readonly at: string;
  readonly readOnly?: boolean;
}

export interface Container {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly mounts: readonly Mount[];
  /** Supplementary group, as a pod's `fsGroup` is. */
  readonly group?: number;
}

/** The configuration of an image, as its layout has it. */
export interface ImageConfig {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly WorkingDir: string;
}

/** What a runtime lays over every tree: kernel filesystems, and the names of the pod. */
const OF_RUNTIME: readonly Mount[] = [
  { from: '/proc', at: '/proc' },
  { from: '/dev', at: '/dev' },
  { from: '/etc/hosts', at: '/etc/hosts', readOnly: true },
  { from: '/etc/resolv.conf', at: '/etc/resolv.conf', readOnly: true },
];

/** As runtimes give it to containers whose image has none; the programs that start them are there too. */
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** `chroot` in mounts of its own, the tree read-only, without a way to regain what its user lacks. */
const START = `
set -e
tree=$1 user=$2 groups=$3; shift 3
mount --make-rprivate /
mount --bind "$tree" "$tree"
mount -o remount,bind,ro "$tree"
while [ "$1" != -- ]; do
  mount --rbind "$1" "$tree$2"
  if [ "$3" = ro ]; then mount -o remount,bind,ro "$tree$2"; fi
  shift 3
done
shift
exec setpriv --no-new-privs chroot --userspec="$user" --groups="$groups" "$tree" "$@"
`;

export class Tree {
  readonly path: string;
  readonly layout: string;
  readonly digest: string;
  /** As it was built: tests add places to mount on. */
  readonly fingerprint: string;

  private constructor(path: string, layout: string, digest: string) {
    this.path = path;
    this.fingerprint = Tree.fingerprint(path);
    this.layout = layout;
    this.digest = digest;
  }

  /** Builds the image as `npm run image` does. @param release packed */
  static async build(release: string, out: string): Promise<Tree> {
    const args = [join(root, 'scripts/image.ts'), '--release', release, '--out', out];
    const { stdout } = await run(process.execPath, args, { cwd: root });
    return new Tree(join(out, 'rootfs'), join(out, 'oci'), stdout.trim().split('\n').at(-1) ?? '');
  }

  /** Why no container can be started here; undefined when one can. */
  static obstacle(): string | undefined {
    if (process.getuid?.() !== 0) return 'only root may mount and change its root: run these tests as root';
    const { status, stderr } = spawnSync('unshare', ['-m', 'sh', '-c', 'mount --make-rprivate /']);
    return status === 0 ? undefined : `mounts of their own are needed: ${stderr}`;
  }

  blob(digest: string): Buffer {
    return readFileSync(join(this.layout, 'blobs', ...digest.split(':')));
  }

  get config(): ImageConfig {
    const manifest = JSON.parse(this.blob(this.digest).toString());
    return JSON.parse(this.blob(manifest.config.digest).toString()).config;
  }

  /** Path, mode and content of everything in a tree: what the digest of its layer depends on. */
  static fingerprint(path: string): string {
    const hash = createHash('sha256');
    for (const name of readdirSync(path, { recursive: true, encoding: 'utf8' }).toSorted()) {
      const entry = lstatSync(join(path, name));
      hash.update(`${name} ${entry.mode}\n`);
      if (entry.isFile()) hash.update(readFileSync(join(path, name)));
    }
    return hash.digest('hex');
  }

  /** All files below a folder of the tree, from there. */
  files(folder: string): string[] {
    return readdirSync(join(this.path, folder), { recursive: true, encoding: 'utf8' });
  }

  /** Starts a program as the image's user and waits for its end. */
  async run(container: Container): Promise<Ended> {
    const { args, options } = this.#command(container);
    try {
      const { stdout, stderr } = await run('/usr/bin/unshare', args, { ...options, timeout: 60_000 });
      return { code: 0, out: stdout, err: stderr };
    } catch (error) {
      const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
      return { code, out: stdout, err: stderr };
    }
  }

  /** Starts a program that goes on until it gets a signal; the process is that program itself. */
  start(t: Scope, container: Container): ChildProcess {
    const { args, options } = this.#command(container);
    const child = spawn('/usr/bin/unshare', args, { ...options, stdio: 'ignore' });
    t.teardown(() => child.kill('SIGKILL'));
    return child;
  }

  #command({ argv, env, mounts, group }: Container) {
    const { User, WorkingDir } = this.config;
    const all = [...OF_RUNTIME, ...mounts];
    // A runtime makes the places to mount on in a layer of the container; here they stay in the tree.
    for (const { from, at } of all) this.#makePlace(join(this.path, at), from);
    const args = [
      ...['-m', 'sh', '-c', START, 'sh', this.path, User, String(group ?? User.split(':')[1])],
      ...all.flatMap(({ from, at, readOnly }) => [from, at, readOnly ? 'ro' : 'rw']),
      ...['--', ...argv],
    ];
    return { args, options: { env: { PATH, ...env }, cwd: join(this.path, WorkingDir) } };
  }

  #makePlace(place: string, from: string): void {
    mkdirSync(dirname(place), { recursive: true });
    if (statSync(from).isDirectory()) mkdirSync(place, { recursive: true });
    else writeFileSync(place, '');
  }
}
