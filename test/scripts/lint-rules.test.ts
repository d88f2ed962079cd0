import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { tempDir } from '../support/temp.ts';

const script = (name: string) => fileURLToPath(new URL(`../../scripts/${name}`, import.meta.url));

/** Runs a check over a tree of its own. @param tree path to content */
async function check(t: ExecutionContext, name: string, tree: Readonly<Record<string, string>>) {
  const root = tempDir(t);
  for (const [path, content] of Object.entries(tree)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  return new Promise<{ ok: boolean; text: string }>((resolve) => {
    execFile(process.execPath, [script(name), root], (error, _stdout, stderr) => {
      resolve({ ok: error === null, text: stderr });
    });
  });
}

const CORE = { 'src/core/kernel/log.ts': '', 'src/core/host/http.ts': '', 'src/core/contracts/lamp.ts': '' };
const LAMP = { 'src/plugins/lamp/index.ts': '', 'src/plugins/lamp/bulb.ts': '' };

const ALLOWED: readonly [what: string, tree: Readonly<Record<string, string>>][] = [
  [
    'downwards, and inside one folder',
    {
      ...CORE,
      ...LAMP,
      'src/core/host/runtime.ts': "import { log } from '../kernel/log.ts';",
      'src/plugins/lamp/switch.ts':
        "import './bulb.ts'; import '../../core/host/http.ts'; import { readFileSync } from 'node:fs';",
      'src/cli/start.ts': "await import('../core/host/http.ts');",
    },
  ],
  ['of a plugin by its entrance', { ...LAMP, 'src/main.ts': "import './plugins/lamp/index.ts';" }],
];

for (const [what, tree] of ALLOWED) {
  test(`imports ${what} are allowed`, async (t) => {
    t.deepEqual(await check(t, 'check-imports.mjs', tree), { ok: true, text: '' });
  });
}

const REFUSED: readonly [what: string, tree: Readonly<Record<string, string>>, says: RegExp][] = [
  [
    'of the host from the kernel',
    { ...CORE, 'src/core/kernel/bad.ts': "import '../host/http.ts';" },
    /kernel\/bad\.ts:1 imports src\/core\/host\/http\.ts; it may import from/,
  ],
  [
    'of the host from the contracts, by a dynamic import too',
    { ...CORE, 'src/core/contracts/bad.ts': "\nawait import('../host/http.ts');" },
    /contracts\/bad\.ts:2 imports/,
  ],
  [
    'of a plugin from the command line',
    { ...LAMP, 'src/cli/bad.ts': "import '../plugins/lamp/index.ts';" },
    /cli\/bad\.ts:1 imports/,
  ],
  [
    'of another plugin',
    { ...LAMP, 'src/plugins/fan/index.ts': "import '../lamp/index.ts';" },
    /plugins\/fan\/index\.ts:1 imports/,
  ],
  ['of anything by a machine', { ...CORE, 'src/machines/lamp.ts': "import '../core/kernel/log.ts';" }, /:1/],
  ['of the package by its own name', { 'src/cli/bad.ts': "import 'holdfast';" }, /imports holdfast/],
  [
    'past the entrance of a folder',
    { ...LAMP, 'src/main.ts': "import './plugins/lamp/bulb.ts';" },
    /src\/main\.ts:1 imports src\/plugins\/lamp\/bulb\.ts past src\/plugins\/lamp\/index\.ts/,
  ],
  ['by a new entrance', { 'src/core/host/http/index.ts': '' }, /http\/index\.ts is an entrance/],
  [
    'in both directions between the folders of a plugin',
    {
      'src/plugins/lamp/a/one.ts': "import '../b/two.ts';",
      'src/plugins/lamp/b/two.ts': "import '../a/three.ts';",
      'src/plugins/lamp/a/three.ts': '',
    },
    /leads back to it/,
  ],
];

for (const [what, tree, says] of REFUSED) {
  test(`imports ${what} fail the lint`, async (t) => {
    const { ok, text } = await check(t, 'check-imports.mjs', tree);
    t.false(ok);
    t.regex(text, says);
  });
}

test('a function or a class of a contract fails the lint', async (t) => {
  const tree = {
    'src/core/contracts/token.ts': 'export function defineToken() {}',
    'src/core/contracts/lamp.ts': [
      "export const LampToken: Token<Lamp> = defineToken('lamp');",
      'const hidden = () => 1;',
      'export const bright = (lamp: Lamp): boolean => lamp.lit;',
      'export async function* lamps() {}',
      'export class Bulb {}',
    ].join('\n'),
    'src/core/host/lamp.ts': 'export function light() {}',
  };
  const { ok, text } = await check(t, 'check-imports.mjs', tree);
  t.false(ok);
  t.deepEqual(text.match(/exports \w+/g), ['exports bright', 'exports lamps', 'exports Bulb']);
});

test('words of a feature in kernel and host fail the lint, in names and comments too', async (t) => {
  const bad = {
    'src/core/kernel/log.ts': '// the router asks for it\nconst ok = 1;',
    'src/core/host/http.ts': 'const gatewayUrl = 1;\nconst HF_ROUTER_BUSY = 2;',
    'src/core/contracts/router.ts': '// contracts may say router',
    'src/plugins/router/index.ts': '// and plugins may',
  };
  const { ok, text } = await check(t, 'domain-words.mjs', bad);
  t.false(ok);
  t.deepEqual(text.match(/^src\S+ says "\w+"/gm), [
    'src/core/kernel/log.ts:1 says "router"',
    'src/core/host/http.ts:1 says "gateway"',
    'src/core/host/http.ts:2 says "ROUTER"',
  ]);
});

test('words of the host fail the lint in the kernel, and pass in the host', async (t) => {
  const tree = {
    'src/core/kernel/errors.ts': "throw new KernelError('HF_HTTP_STOPPING'); // the vault is closed",
    'src/core/kernel/reader.ts': 'const httpStatus = 503;\nconst bearerToken = 1;',
    'src/core/host/surface.ts': "throw new HostError('HF_HTTP_STOPPING'); // of the vault",
  };
  const { ok, text } = await check(t, 'domain-words.mjs', tree);
  t.false(ok);
  t.deepEqual(text.match(/^src\S+ says "\w+"/gm), [
    'src/core/kernel/errors.ts:1 says "HTTP"',
    'src/core/kernel/errors.ts:1 says "vault"',
    'src/core/kernel/reader.ts:1 says "http"',
    'src/core/kernel/reader.ts:2 says "Token"',
  ]);
});

test('words that only look like those of a feature pass', async (t) => {
  const good = {
    'src/core/kernel/log.ts': '// wanted, formula, and Mcpherson\nconst nasty = 1;',
    'src/core/host/http.ts': 'const limits = { routerOptions: {} };',
  };
  t.deepEqual(await check(t, 'domain-words.mjs', good), { ok: true, text: '' });
});
