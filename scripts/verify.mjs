// `npm run verify`: what must be true of every commit, as fast as it can be known. Format, lint, types, spec and
// audit run beside the fast tests; what one of them has to say is shown in one piece, when it has ended.
import { spawn } from 'node:child_process';
import { BootstrapError, bootstrap, root } from './bootstrap.mjs';

/** Chains that run side by side; within one, the next begins when the one before has passed. */
const CHAINS = [['format:check', 'lint', 'spec -- --quiet'], ['types'], ['audit'], ['test -- --fast']];

/** @returns whether it passed */
function run(script) {
  return new Promise((resolve) => {
    const [name, ...args] = script.split(' ');
    const npm = spawn('npm', ['run', '--silent', name, ...args], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let said = '';
    for (const stream of [npm.stdout, npm.stderr]) stream.on('data', (chunk) => (said += chunk));
    const done = (code) => {
      console.log(`── ${name}${code === 0 ? '' : ' failed'}\n${said.trimEnd()}`);
      resolve(code === 0);
    };
    npm.on('error', () => done(1)).on('close', done);
  });
}

async function pass(chain) {
  for (const script of chain) if (!(await run(script))) return false;
  return true;
}

try {
  bootstrap();
  const passed = await Promise.all(CHAINS.map(pass));
  process.exitCode = passed.every(Boolean) ? 0 : 1;
} catch (error) {
  if (!(error instanceof BootstrapError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
