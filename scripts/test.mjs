// `npm test`: everything that a fresh machine needs, then all tests. The last line is `N passed, N failed`,
// with the number of tests that this machine could not run where there are any. A few files that failed run once more (second-run.mjs).
//   npm test -- test/core/kernel/log            only these files
//   npm test -- --match='*fsync*'        any option of AVA
//   npm test -- --fast                   without *.slow.test.ts, and nothing is installed on the system
// Runs on any Node from 18 on; the tests themselves run on the product's own Node.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { BootstrapError, bootstrap, buildPages, productNode, root } from './bootstrap.mjs';
import { folderInMemory } from './memory-folder.mjs';
import { filesForSecondRun, isCounterexample, together, unsteady } from './second-run.mjs';
import { TestReport } from './test-report.mjs';

/** Programs that tests start, and the Debian packages that bring them. */
const SYSTEM_PACKAGES = [
  { command: 'cc', packages: ['gcc', 'libc6-dev'] }, // builds the LD_PRELOAD shim that delays fsync
  { command: 'redis-server', packages: ['redis-server'] }, // the store of the router's config, on ports of the tests' own
  { command: 'nats-server', packages: ['nats-server'] }, // makes several hosts one system, on ports of the tests' own
  { command: 'ip', packages: ['iproute2', 'procps'] }, // the router's kernel driver, in network namespaces
  { command: 'dnsmasq', packages: ['dnsmasq-base'] }, // says whether the generated files are right, and serves them
  { command: 'nft', packages: ['nftables'] }, // the packet filter's address sets, in network namespaces
  { command: 'ipset', packages: ['ipset'] }, // the same by the other tool
  { command: 'ip6tables', packages: ['iptables'] }, // chains of the packet filter, in network namespaces
  { command: 'curl', packages: ['curl'] }, // is started by the conformance suite in the place of each client
  { command: 'openssl', packages: ['openssl'] }, // certificates of tests
  { command: 'prometheus-alertmanager', packages: ['prometheus-alertmanager'] }, // takes our alerts, and beats at our monitor
  { command: 'kubectl', packages: ['kubernetes-client'] }, // says whether what is made in a cluster is well-formed
  { command: 'chromium', packages: ['chromium', 'fonts-dejavu-core'] }, // shows the pages of the console
  { command: 'systemd-analyze', packages: ['systemd'] }, // says whether the units of deploy/ are right
];

/** On the PATH of the system: `nft` is also the name of a package of npm. */
const onPath = (command) =>
  (process.env.PATH ?? '')
    .split(delimiter)
    .some((folder) => !folder.includes('node_modules') && existsSync(join(folder, command)));

const ended = (child) => new Promise((resolve) => child.on('error', () => resolve(1)).on('close', resolve));

/**
 * Begins at once and goes on while our own packages are installed: both wait for a network most of the time.
 * A package that can't be had is no reason to stop: the tests that need it fail, and say so by name.
 */
async function installSystemPackages() {
  const packages = SYSTEM_PACKAGES.flatMap((row) => (onPath(row.command) ? [] : row.packages));
  if (packages.length === 0) return;
  console.log(`tests need ${packages.join(', ')}: installing with apt-get`);
  const apt =
    'export DEBIAN_FRONTEND=noninteractive; apt-get update -qq; apt-get install -y -qq --no-install-recommends "$@"';
  const command = ['sh', '-c', apt, 'sh', ...packages];
  const [program, ...args] = process.getuid?.() === 0 ? command : ['sudo', '-n', ...command];
  const code = await ended(spawn(program, args, { stdio: ['ignore', 'ignore', 'inherit'] }));
  if (code !== 0) console.log(`apt-get could not install ${packages.join(', ')}: install them by hand`);
}

/** Longer than a test may take on a busy machine, and than AVA waits for one: milliseconds. */
const SILENCE_MS = 10 * 60_000;

/**
 * Ends a run that says nothing any more: AVA's own timeout is lost when it comes due while a test that asked for more
 * time still has some, and a worker whose event loop stands still does not heed it.
 *
 * @param end ends the run; first by asking, then by force
 * @returns has to be called for every line of output
 */
function watchSilence(end) {
  const timer = setTimeout(() => {
    console.log(
      `No test ended for ${SILENCE_MS / 60_000} minutes: ending the run. Those that were pending follow.`,
    );
    end('SIGINT'); // AVA names the pending tests
    setTimeout(() => end('SIGKILL'), 20_000).unref();
  }, SILENCE_MS);
  timer.unref();
  return () => timer.refresh();
}

/** Runs AVA, shows its report, resolves to its counts and exit code. @param folder in memory, if any, where fast tests make theirs */
function runAva(args, fast, folder) {
  return new Promise((resolve) => {
    const node = productNode();
    const child = spawn(node, [join(root, 'scripts', 'ava.mjs'), ...args], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      detached: true, // a group of its own, which can be ended with all that tests started
      env: {
        ...process.env,
        PATH: [join(root, 'node_modules', '.bin'), process.env.PATH].join(delimiter),
        HOLDFAST_FAST_TESTS: fast ? '1' : '',
        HOLDFAST_TESTS_IN_MEMORY: folder ?? '',
      },
    });
    const end = (signal) => {
      try {
        process.kill(-child.pid, signal);
      } catch {
        // it has ended by itself
      }
    };
    const heard = watchSilence(end);
    const shown = new TestReport();
    let counterexample = false;
    createInterface({ input: child.stdout }).on('line', (line) => {
      heard();
      counterexample ||= isCounterexample(line);
      const text = shown.line(line);
      if (text !== undefined) console.log(text);
    });
    child.stderr.pipe(process.stderr, { end: false });
    let report = '';
    child.stdio[3].on('data', (chunk) => (report += chunk));
    // This process outlives AVA, to show its last words.
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => end(signal));
    child.on('error', (error) => console.error(`${node}: ${error.message}`));
    const done = () => {
      for (const line of shown.end()) console.log(line);
      resolve({
        code: child.exitCode,
        stats: report === '' ? undefined : JSON.parse(report),
        counterexample,
      });
    };
    child.on('close', done);
    // A process that a test left behind holds the pipes open, and `close` would wait for it.
    child.on('exit', () => setTimeout(done, 2000).unref());
  });
}

const sum = (stats, names) => names.reduce((total, name) => total + (stats?.[name] ?? 0), 0);
/** Skipped, because this machine lacks something that they need. */
const notRun = (stats) => sum(stats, ['skippedTests']);
const passedTests = (stats) => sum(stats, ['passedTests', 'passedKnownFailingTests']);

/** AVA counts apart: failed tests, tests that never ended, crashed files, and errors outside of any test. */
function failures({ code, stats }) {
  const failed = sum(stats, [
    'failedTests',
    'failedHooks',
    'remainingTests',
    'failedWorkers',
    'timeouts',
    'uncaughtExceptions',
    'unhandledRejections',
    'internalErrors',
    'sharedWorkerErrors',
  ]);
  return failed === 0 && (code !== 0 || passedTests(stats) === 0) ? 1 : failed;
}

/** @param first a run of all tests @returns what it came to, after the second run of the few files that did not pass, if it has some */
async function withSecondRun(first, folder) {
  const files = filesForSecondRun(first.stats, first.counterexample);
  if (files.length === 0) return first;
  console.log('These did not pass. They run once more, one after the other:');
  for (const file of files) console.log(`  ${file}`);
  const second = await runAva(['--concurrency=1', ...files], false, folder);
  for (const line of unsteady(files, second.stats)) console.log(line);
  return second.stats === undefined
    ? second
    : { code: second.code, stats: together(first.stats, second.stats) };
}

async function main() {
  const args = process.argv.slice(2);
  const fast = args.includes('--fast');
  const system = fast ? undefined : installSystemPackages();
  try {
    bootstrap();
  } catch (error) {
    if (!(error instanceof BootstrapError)) throw error;
    console.error(error.message);
    return { passed: 0, failed: 1, skipped: 0 };
  }
  if (!buildPages()) return { passed: 0, failed: 1, skipped: 0 };
  await system;
  const folder = folderInMemory();
  const run = await runAva(
    args.filter((arg) => arg !== '--fast'),
    fast,
    folder?.path,
  ).then((first) => (args.length === 0 ? withSecondRun(first, folder?.path) : first));
  folder?.remove();
  return { passed: passedTests(run.stats), failed: failures(run), skipped: notRun(run.stats) };
}

const { passed, failed, skipped } = await main();
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} not run` : ''}`);
process.exit(failed > 0 ? 1 : 0);
