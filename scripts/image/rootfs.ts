/**
 * The root filesystem of the image: the release in `/opt/holdfast` with its production dependencies and Node, the shared
 * libraries of that Node, and nothing else. No shell, no package manager. Nothing is downloaded: packages are copied from
 * `node_modules`, which `npm ci` has checked against the lock file.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { chmod, copyFile, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** Where the release is in the image, and on a host on which units of `deploy/` run. */
export const HOME = '/opt/holdfast';

/** How a container of the image is started, as the image's configuration and `deploy/Dockerfile` say. */
export const START = {
  user: '65532:65532',
  workingDir: HOME,
  entrypoint: [`${HOME}/node_modules/.bin/node`, `${HOME}/deploy/entrypoint.mjs`],
  env: { NODE_ENV: 'production', HOLDFAST_DATA_DIR: '/tmp/holdfast' },
} as const;

/** Folders that pods mount something on, with their modes. */
const MOUNT_POINTS = {
  '/tmp': 0o1777,
  '/data': 0o755,
  // A new volume takes the mode over, so that the image's user may make its data folder in it.
  '/var/lib/holdfast': 0o1777,
  '/etc/holdfast': 0o755,
  '/run/secrets/mounted': 0o755,
  '/run/secrets/holdfast': 0o755,
} as const;

const FILES = {
  '/etc/passwd': 'root:x:0:0:root:/:/\nholdfast:x:65532:65532:holdfast:/tmp:/\n',
  '/etc/group': 'root:x:0:\nholdfast:x:65532:\n',
  '/etc/nsswitch.conf': 'hosts: files dns\n',
} as const;

export interface RootfsOptions {
  /** Folder that is made, and must not exist. */
  readonly target: string;
  /** A packed release: what `npm pack` makes. */
  readonly release: string;
}

/** Assembles the tree, the same one from the same inputs. @throws Error in a sentence, when something is missing */
export async function assembleRootfs({ target, release }: RootfsOptions): Promise<void> {
  if (existsSync(target)) throw new Error(`${target} is there already: name a new folder.`);
  const home = join(target, HOME);
  mkdirSync(home, { recursive: true });
  execFileSync('tar', ['-xzf', release, '-C', home, '--strip-components=1', '--no-same-owner']);
  copyDependencies(home);
  await copyNode(target);
  for (const [path, mode] of Object.entries(MOUNT_POINTS)) {
    mkdirSync(join(target, path), { recursive: true });
    await chmod(join(target, path), mode);
  }
  for (const [path, text] of Object.entries(FILES)) writeFileSync(join(target, path), text);
  await setModes(target, new Set(Object.keys(MOUNT_POINTS).map((path) => join(target, path))));
}

/** Declarations and source maps, which nothing reads at run time. */
const UNREAD = /\.d\.[cm]?ts$|\.map$/;

/** Those that the lock file lists neither for development nor as optional: the embedded columnar engine stays out. */
function copyDependencies(home: string): void {
  const read = (file: string) => JSON.parse(readFileSync(file, 'utf8'));
  const { packages } = read(join(root, 'package-lock.json')) as {
    packages: Record<string, { version: string; dev?: true; optional?: true; devOptional?: true }>;
  };
  for (const [path, { version, dev, optional, devOptional }] of Object.entries(packages)) {
    if (path === '' || dev || optional || devOptional) continue;
    const from = join(root, path);
    const installed = existsSync(from) ? read(join(from, 'package.json')).version : 'absent';
    if (installed !== version) throw new Error(`${path} is ${installed}, not ${version}: run npm ci first.`);
    cpSync(from, join(home, path), {
      recursive: true,
      filter: (source) => !source.slice(from.length).includes('/node_modules') && !UNREAD.test(source),
    });
  }
}

/** The Node that runs this, and the shared libraries that it is linked with. */
async function copyNode(target: string): Promise<void> {
  const node = join(target, START.entrypoint[0]);
  mkdirSync(dirname(node), { recursive: true });
  await copyFile(process.execPath, node);
  const linked = execFileSync('ldd', [process.execPath], { encoding: 'utf8' });
  const libraries = linked.split('\n').flatMap((line) => /(?:=> )?(\/\S+) \(0x/.exec(line)?.[1] ?? []);
  for (const library of libraries) {
    // Where the loader looks, whether or not a link in the path leads elsewhere here.
    mkdirSync(join(target, dirname(library)), { recursive: true });
    await copyFile(realpathSync(library), join(target, library));
  }
}

/** The same modes whatever the umask and the checkout's; programs stay programs. */
async function setModes(folder: string, kept: ReadonlySet<string>): Promise<void> {
  if (!kept.has(folder)) await chmod(folder, 0o755);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await setModes(path, kept);
    else if (entry.isFile()) await chmod(path, PROGRAM.test(path) ? 0o755 : 0o644);
  }
}

const PROGRAM = /\/node_modules\/\.bin\/[^/]+$|\/bin\/holdfast\.js$|\/ld-linux[^/]*$|\.so[.\d]*$/;
