// `npm run audit`: what is known of the packages that we depend on. The lock file is checked by itself; advisories and
// signatures where a registry answers. Where none does within 20 s, the line says "not checked", and nothing fails.
//   node scripts/audit.ts [--root folder] [--deadline-ms 20000]
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { advisories, type Finding, signatures } from './audit/answers.ts';
import { lockFile } from './audit/lock-file.ts';

const { values } = parseArgs({
  options: {
    root: { type: 'string', default: fileURLToPath(new URL('../', import.meta.url)) },
    'deadline-ms': { type: 'string', default: '20000' },
  },
});
const deadlineMs = Number(values['deadline-ms']);

/** `.npmrc` includes what development needs, which would count more than `--omit=dev`. */
const PRODUCTION = ['--omit=dev', '--include=prod'];

/** Asks npm. @returns what `read` makes of its answer; "not checked" without one before the deadline */
function ask(args: readonly string[], read: (answer: string) => Finding): Promise<Finding> {
  return new Promise((resolve) => {
    const options = {
      cwd: values.root,
      timeout: deadlineMs,
      killSignal: 'SIGKILL',
      maxBuffer: 64 << 20,
    } as const;
    execFile('npm', ['audit', ...args, '--json', '--fetch-retries=0'], options, (error, stdout) => {
      // The exit code is not enough: 1 is an advisory as well as a registry that has no advisories.
      if (error?.killed) resolve({ state: 'not checked', text: `no answer within ${deadlineMs / 1_000} s` });
      else resolve(read(stdout));
    });
  });
}

const readJson = (name: string) => JSON.parse(readFileSync(join(values.root, name), 'utf8'));

const found: [string, Finding][] = [
  ['lock file', lockFile(readJson('package-lock.json'), readJson('package.json'))],
  ...(await Promise.all([
    ask([...PRODUCTION, '--audit-level=high'], advisories).then((of): [string, Finding] => [
      'advisories',
      of,
    ]),
    ask(['signatures'], signatures).then((of): [string, Finding] => ['signatures', of]),
  ])),
];
for (const [name, { state, text }] of found) console.log(`${name.padEnd(10)}  ${state}: ${text}`);
process.exitCode = found.some(([, { state }]) => state === 'failed') ? 1 : 0;
