/** What `npm run audit` makes of a lock file, and of npm's answers about signatures. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { signatures } from '../../scripts/audit/answers.ts';
import { lockFile } from '../../scripts/audit/lock-file.ts';
import { root } from '../support/cli.ts';

const read = (name: string) => JSON.parse(readFileSync(join(root, name), 'utf8'));
const manifest = read('package.json');

test('the lock file of this project fixes every package by its digest', (t) => {
  t.like(lockFile(read('package-lock.json'), manifest), { state: 'ok' });
});

const FAULTS: readonly [what: string, breakIt: (lock: any) => void, says: RegExp][] = [
  ['no digest', ({ packages }) => delete packages['node_modules/zod'].integrity, /zod has no sha512 digest/],
  [
    'a weak digest',
    ({ packages }) => (packages['node_modules/zod'].integrity = 'sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk='),
    /zod has no sha512 digest/,
  ],
  [
    'another registry',
    ({ packages }) => (packages['node_modules/zod'].resolved = 'https://registry.example/zod.tgz'),
    /zod comes from a place of its own/,
  ],
  [
    'a repository',
    ({ packages }) => (packages['node_modules/zod'].resolved = 'git+ssh://git@example.org/zod.git#0'),
    /zod comes from a place of its own/,
  ],
  ['a link', ({ packages }) => (packages['node_modules/zod'].link = true), /zod is a link/],
  [
    'an install script',
    ({ packages }) => (packages['node_modules/zod'].hasInstallScript = true),
    /zod has an install script that nobody decided about/,
  ],
  [
    'an install script that runs where the package is used',
    ({ packages }) => delete packages['node_modules/node'].dev,
    /node runs an install script where it is used/,
  ],
  [
    'another version than package.json has',
    ({ packages }) => (packages[''].dependencies.zod = '4.0.0'),
    /zod is \S+ in package.json, 4\.0\.0 in the lock/,
  ],
  [
    'a package that is not locked',
    ({ packages }) => delete packages['node_modules/zod'],
    /zod is not locked/,
  ],
  ['another version of the format', (lock) => (lock.lockfileVersion = 2), /none of version 3/],
];

for (const [what, breakIt, says] of FAULTS)
  test(`a lock file with ${what} is a fault`, (t) => {
    const lock = read('package-lock.json');
    breakIt(lock);
    const { state, text } = lockFile(lock, manifest);
    t.is(state, 'failed');
    t.regex(text, says);
  });

test('signatures are ok only when npm says that none is invalid and none is missing', (t) => {
  const answer = (invalid: object[], missing: object[]) => signatures(JSON.stringify({ invalid, missing }));
  const lamp = { name: 'lamp', version: '1.0.0' };
  t.is(answer([], []).state, 'ok');
  t.deepEqual(answer([lamp], []), { state: 'failed', text: 'invalid: lamp@1.0.0' });
  t.deepEqual(answer([], [lamp]), { state: 'failed', text: 'missing: lamp@1.0.0' });
  for (const none of ['', '{}', '{"invalid":[]}', '[]', 'null', '{"error":{"summary":"no keys"}}'])
    t.is(signatures(none).state, 'not checked', none);
});
