// Makes a checkout ready to run: installs the packages when they are not what package-lock.json says.
// Has no dependencies and runs on any Node from 18 on, because it comes before everything else.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
const localNode = join(root, 'node_modules', '.bin', 'node');

/** A failure that a person can remedy: printed as its code, what happened, and the remedy. */
export class BootstrapError extends Error {
  constructor(code, message, remedy) {
    super(`${code}: ${message}\n  ${remedy}`);
  }
}

/** The Node (>= 24.12) that runs the product: this one when it is new enough, else the installed package's. */
export function productNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  return major > 24 || (major === 24 && minor >= 12) ? process.execPath : localNode;
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}

/**
 * Why an install is needed, or undefined. npm writes node_modules/.package-lock.json as the last step of an
 * install, so comparing it with our lock file also finds an install that was cut off, and spares one that a
 * developer made by hand.
 */
function reasonToInstall() {
  const wanted = readJson(join(root, 'package-lock.json'))?.packages ?? {};
  const installed = readJson(join(root, 'node_modules', '.package-lock.json'))?.packages;
  if (installed === undefined) return 'node_modules is missing or incomplete';
  for (const [path, entry] of Object.entries(wanted)) {
    if (path === '' || (entry.optional && !(path in installed))) continue;
    const have = installed[path];
    if (have?.version !== entry.version || have?.integrity !== entry.integrity) return `${path} changed`;
    if (!existsSync(join(root, path, 'package.json'))) return `${path} is gone`;
  }
  if (!existsSync(productNode())) return 'the Node package is not unpacked';
  return undefined;
}

/** The pid of an instance that runs from this data folder, or undefined. */
function runningInstance() {
  const dataDir = resolve(process.env.HOLDFAST_DATA_DIR || '.holdfast');
  const pid = readJson(join(dataDir, 'runtime.json'))?.pid;
  if (!Number.isInteger(pid) || pid <= 0) return undefined;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (error.code !== 'EPERM') return undefined;
  }
  // After a kill -9 the file stays and its pid may by now belong to a stranger.
  try {
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    return /node|holdfast/.test(command) ? pid : undefined;
  } catch {
    return pid;
  }
}

function install() {
  // npm must not run on the very Node that it is about to replace.
  const own = join(root, 'node_modules');
  const path = (process.env.PATH ?? '').split(delimiter).filter((entry) => !resolve(entry).startsWith(own));
  const npm = spawnSync('npm', ['ci', '--no-progress', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, PATH: path.join(delimiter) },
  });
  if (npm.error || npm.status !== 0) {
    const how = npm.error?.message ?? (npm.signal ? `killed by ${npm.signal}` : `exit code ${npm.status}`);
    throw new BootstrapError(
      'HF_BOOTSTRAP_INSTALL_FAILED',
      `npm ci failed (${how}); its own message is above.`,
      'What to do: check that npm reaches its registry (npm ping); if the two package files disagree, run npm install ' +
        'with Node 24 and commit the result. Then run this command again.',
    );
  }
}

function checkNode() {
  const node = productNode();
  const answer = spawnSync(node, ['--version'], { encoding: 'utf8' });
  const [major = 0, minor = 0] = (answer.stdout ?? '').replace('v', '').split('.').map(Number);
  if (major > 24 || (major === 24 && minor >= 12)) return answer.stdout.trim();
  throw new BootstrapError(
    'HF_BOOTSTRAP_NO_NODE',
    `there is no Node 24.12 or newer: ${node} ${answer.error ? 'does not start' : 'is too old'}. The install ` +
      'script of the package "node" was probably blocked (ignore-scripts in the npm configuration).',
    'What to do: npm rebuild node --ignore-scripts=false, or put Node 24 first on the PATH; then run this again.',
  );
}

/** Installs if needed. Throws BootstrapError. */
export function bootstrap() {
  const reason = reasonToInstall();
  if (reason === undefined) return;
  const pid = runningInstance();
  if (pid !== undefined) {
    throw new BootstrapError(
      'HF_BOOTSTRAP_INSTANCE_RUNNING',
      `the packages must be installed again (${reason}), but an instance runs from this checkout (pid ${pid}).`,
      `What to do: stop it first (kill ${pid}), then run this command again.`,
    );
  }
  console.log(`bootstrap: ${reason}, running npm ci`);
  const started = Date.now();
  install();
  console.log(`bootstrap: ready in ${((Date.now() - started) / 1000).toFixed(1)} s, Node ${checkNode()}`);
}

/** Builds the pages of the console where they are out of date, on the product's Node. @returns whether they are there */
export function buildPages() {
  return (
    spawnSync(productNode(), [join(root, 'scripts', 'console.mjs')], { cwd: root, stdio: 'inherit' })
      .status === 0
  );
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    bootstrap();
    if (!buildPages()) process.exitCode = 1;
  } catch (error) {
    if (!(error instanceof BootstrapError)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}
