/** What `holdfast plugin new` writes: small plugins that work, each with a test that passes. */

/** What a new plugin is about. */
export type PluginKind = 'route' | 'machine' | 'adapter' | 'check';

/** Kinds by the flag that asks for one, with what each is for. */
export const PLUGIN_KINDS: Readonly<Record<PluginKind, string>> = {
  route: 'an MCP route: tools for agents behind the gateway, served in this process (the default)',
  machine: 'a machine with a timer and an effect, which decides and is recorded',
  adapter: 'an adapter: another implementation of what plugins share, here a secrets store',
  check: 'a check of `holdfast doctor`',
};

/** Files by their names in the plugin's folder. */
export type PluginFiles = Readonly<Record<string, string>>;

interface Names {
  /** As it is written in lists and in the folder's name: `ups-watcher`. */
  readonly name: string;
  /** As code names it: `upsWatcher`. */
  readonly id: string;
  /** As a route and an actor's type name it: `ups_watcher`. */
  readonly route: string;
}

/** @param name small letters, digits and hyphens @returns the files of a new plugin */
export function pluginFiles(kind: PluginKind, name: string): PluginFiles {
  const names: Names = {
    name,
    id: name.replaceAll(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()),
    route: name.replaceAll('-', '_'),
  };
  return { ...TEMPLATES[kind](names), 'README.md': readme(kind, names) };
}

const TEMPLATES: Readonly<Record<PluginKind, (names: Names) => PluginFiles>> = {
  route,
  machine,
  adapter,
  check,
};

function readme(kind: PluginKind, { name, id }: Names): string {
  return `# ${name}

${PLUGIN_KINDS[kind].replace(/^./, (letter) => letter.toUpperCase()).replace(' (the default)', '')}.

It stands in \`plugins.config.ts\` as \`${id}()\`; its options are described where \`plugin.ts\` declares them.

    npx holdfast plugin test ${name}    # runs its tests
    npx holdfast plugin list            # shows what runs, and what each plugin provides
`;
}

function route({ name, id, route: server }: Names): PluginFiles {
  return {
    'plugin.ts': `/** The MCP route \`${server}\`: replace its tool by what agents should be able to do. */
import { McpServer } from '@modelcontextprotocol/server';
import { definePlugin, mcpRoutes } from 'holdfast';
import { z } from 'zod';

export const ${id} = definePlugin({
  name: '${name}',
  options: z.strictObject({
    /** What the tool answers. */
    greeting: z.string().default('Hello'),
  }),
  register(context, { greeting }) {
    // Clients reach it at /${server}/mcp of the gateway, with a key whose servers contain ${server}. A tool that changes
    // anything needs \`writes: true\` here, so that the decision is durable before the call.
    context.contribute(mcpRoutes, () => ({ name: '${server}', server: () => ${id}Server(greeting) }));
  },
});

/** The server of one session: it keeps nothing that another session may not see. */
export function ${id}Server(greeting: string): McpServer {
  const server = new McpServer({ name: '${server}', version: '1.0.0' });
  server.registerTool(
    'greet',
    {
      description: 'Greets somebody by name. Says nothing about the weather.',
      inputSchema: z.object({ name: z.string().max(100).describe('Who is greeted') }),
      annotations: { readOnlyHint: true },
    },
    async ({ name }) => ({ content: [{ type: 'text', text: \`\${greeting}, \${name}!\` }] }),
  );
  return server;
}
`,
    [`${name}.test.ts`]: `import { match } from 'node:assert/strict';
import { test } from 'node:test';
import { createMcpHandler } from '@modelcontextprotocol/server';
import { ${id}Server } from './plugin.ts';

test('the tool answers a call', async () => {
  const handler = createMcpHandler(() => ${id}Server('Good evening'));
  const call = { name: 'greet', arguments: { name: 'Ada' } };
  const answer = await handler.fetch(
    new Request('http://${name}.invalid/mcp', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: call }),
    }),
  );
  match(await answer.text(), /Good evening, Ada!/);
});
`,
  };
}

function machine({ name, id, route: type }: Names): PluginFiles {
  return {
    'machine.ts': `import { assign, effect, setup } from 'holdfast/machines';

/** Something that must be heard of: after a minute of silence the machine asks for a warning, once. It has no clock and no I/O. */
export const ${id}Machine = setup({
  types: {} as { context: { heard: number }; events: { type: 'HEARD' } },
  delays: { silence: 60_000 },
  actions: {
    count: assign({ heard: ({ context }) => context.heard + 1 }),
    '${type}.warn': effect<{ heard: number }>(),
  },
}).createMachine({
  id: '${name}',
  context: { heard: 0 },
  initial: 'waiting',
  states: {
    waiting: { on: { HEARD: { target: 'fine', actions: 'count' } } },
    fine: {
      on: { HEARD: { target: 'fine', reenter: true, actions: 'count' } },
      after: { silence: 'silent' },
    },
    silent: {
      entry: { type: '${type}.warn', params: ({ context }) => ({ heard: context.heard }) },
      on: { HEARD: { target: 'fine', actions: 'count' } },
    },
  },
});
`,
    'plugin.ts': `/** Messages of a topic become events of an actor; its machine decides, and the plugin carries out what it asks for. */
import { defineActor, definePlugin, defineTopic } from 'holdfast';
import { z } from 'zod';
import { ${id}Machine } from './machine.ts';

/** Publish it wherever something is heard: \`bus.publish(${id}Heard, { from: 'cellar' })\`. */
export const ${id}Heard = defineTopic('${type}.heard', z.object({ from: z.string() }), 'Something was heard of.');

const ${id}Actor = defineActor({
  type: '${type}.source',
  machine: ${id}Machine,
  version: 1,
  describe: ({ event }) => (event.type === 'HEARD' ? 'is heard' : undefined),
});

export const ${id} = definePlugin({
  name: '${name}',
  options: z.strictObject({}),
  register(context) {
    context.actor(${id}Actor);
    context.route(${id}Heard, ${id}Actor, ({ payload }) => [{ key: payload.from, event: { type: 'HEARD' } }]);
    context.effect(
      '${type}.warn',
      ({ heard }: { heard: number }, { actor }, { logger }) => logger.warn({ actor, heard }, '${type}.silent'),
      { onRecovery: 'retry' }, // warned twice after a crash is better than never
    );
  },
});
`,
    [`${name}.test.ts`]: `import { deepEqual } from 'node:assert/strict';
import { test } from 'node:test';
import { elapsed, given, impurities } from 'holdfast/testing';
import { ${id}Machine } from './machine.ts';

test('a source that falls silent is warned of once', () => {
  given(${id}Machine)
    .when({ type: 'HEARD' })
    .then({ state: 'fine' })
    .when(elapsed('silence'))
    .then({ state: 'silent', effects: [{ type: '${type}.warn', params: { heard: 1 } }] })
    .when({ type: 'HEARD' })
    .then({ state: 'fine', context: { heard: 2 } });
});

test('the machine is pure, so that its log can be replayed', () => deepEqual(impurities(${id}Machine), []));
`,
  };
}

function adapter({ name, id }: Names): PluginFiles {
  return {
    'plugin.ts': `/** Provides the secrets store from a JSON file. Take the plugin out that provides \`secrets.store\` now: one plugin provides a token. */
import { readFile } from 'node:fs/promises';
import { definePlugin, type SecretsStore, SecretsStoreToken } from 'holdfast';
import { z } from 'zod';

export const ${id} = definePlugin({
  name: '${name}',
  options: z.strictObject({
    /** File (mode 0600): \`{ "<path>": { "<property>": "<value>" } }\`. */
    file: z.string().min(1).default('secrets.json'),
  }),
  provides: [SecretsStoreToken],
  register(context, { file }) {
    context.provide(SecretsStoreToken, () => new ${id.replace(/^./, (letter) => letter.toUpperCase())}(file));
  },
});

const secrets = z.record(z.string(), z.record(z.string(), z.string()));

export class ${id.replace(/^./, (letter) => letter.toUpperCase())} implements SecretsStore {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  async read(path: string, property: string, signal: AbortSignal): Promise<string> {
    const content = secrets.parse(JSON.parse(await readFile(this.#file, { encoding: 'utf8', signal })));
    const value = content[path]?.[property];
    if (value === undefined) throw new Error(\`\${path}#\${property} is not in \${this.#file}\`);
    return value;
  }
}
`,
    [`${name}.test.ts`]: `import { equal, rejects } from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ${id.replace(/^./, (letter) => letter.toUpperCase())} } from './plugin.ts';

test('a secret is read, and one that is not there is an error', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), '${name}-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'secrets.json');
  writeFileSync(file, JSON.stringify({ 'mcp/docs': { token: 'abc' } }), { mode: 0o600 });
  const store = new ${id.replace(/^./, (letter) => letter.toUpperCase())}(file);
  equal(await store.read('mcp/docs', 'token', t.signal), 'abc');
  await rejects(store.read('mcp/docs', 'key', t.signal), /is not in/);
});
`,
  };
}

function check({ name, id, route: area }: Names): PluginFiles {
  return {
    'plugin.ts': `/** A check of \`holdfast doctor ${area}\`: whether a disk has room. It says \`ok\` only of what it looked at. */
import { statfs } from 'node:fs/promises';
import { type CheckResult, definePlugin } from 'holdfast';
import { z } from 'zod';

export const ${id} = definePlugin({
  name: '${name}',
  options: z.strictObject({
    /** A path on the disk. */
    path: z.string().min(1).default('/'),
    /** Room that there must be, bytes. */
    free: z.int().min(1).default(1_073_741_824),
  }),
  register(context, { path, free }) {
    context.check({ name: '${area}.room', run: () => room(path, free) });
  },
});

/** @param free bytes */
export async function room(path: string, free: number): Promise<CheckResult> {
  const { bavail, bsize } = await statfs(path);
  const left = bavail * bsize;
  const found = \`\${Math.floor(left / 1_048_576)} MiB are free\`;
  if (left >= free) return { state: 'ok', lookedAt: path, found };
  return { state: 'fail', lookedAt: path, found, remedy: \`Make room on the disk of \${path}.\` };
}
`,
    [`${name}.test.ts`]: `import { equal } from 'node:assert/strict';
import { test } from 'node:test';
import { room } from './plugin.ts';

test('a disk with room is ok, and one without says what to do', async () => {
  equal((await room('/', 1)).state, 'ok');
  const full = await room('/', Number.MAX_SAFE_INTEGER);
  equal(full.state, 'fail');
  equal(full.remedy, 'Make room on the disk of /.');
});
`,
  };
}
