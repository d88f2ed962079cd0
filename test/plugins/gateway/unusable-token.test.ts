import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { overwrite } from '../../../src/plugins/gateway/index.ts';
import { call, type Finished, writeConfig } from '../../support/cli.ts';
import { startUpstream, type Upstream } from '../../support/mcp-upstream.ts';
import { tempDir } from '../../support/temp.ts';
import { read } from '../../support/until.ts';
import { admission, initialize, Rig } from './rig.ts';

/** What an operator can do wrong with a rotated token, and what each place must say of it. */
const faults: readonly (readonly [what: string, spoil: (file: string) => void, said: RegExp])[] = [
  ['with the scheme', (file) => writeFileSync(file, 'Bearer second-token'), /begins with the word Bearer/],
  ['that others may read', (file) => chmodSync(file, 0o644), /0644/],
  ['that is empty', (file) => writeFileSync(file, ''), /it is empty/],
];

interface Setting {
  readonly dir: string;
  readonly file: string;
  readonly upstream: Upstream;
}

async function setting(t: ExecutionContext): Promise<Setting> {
  const dir = tempDir(t);
  const file = join(dir, 'token');
  writeFileSync(file, 'first-token', { mode: 0o600 });
  return { dir, file, upstream: await startUpstream(t) };
}

const start = (t: ExecutionContext, { dir, file, upstream }: Setting, probeEveryMs = 1_000): Promise<Rig> =>
  Rig.start(
    t,
    {
      routes: [overwrite({ name: 'web_crawl', url: upstream.url, tokenFile: file })],
      ...(probeEveryMs > 0 && { probeEveryMs }),
    },
    join(dir, 'data'),
  );

/** Runs a command beside the instance. */
async function run(rig: Rig, { dir, file, upstream }: Setting, ...argv: string[]): Promise<Finished> {
  writeConfig(
    dir,
    `export default defineConfig({ plugins: [gateway({ routes: [
      overwrite({ name: 'web_crawl', url: '${upstream.url}', tokenFile: '${file}' }),
    ] })] });`,
    [
      `import { gateway, overwrite } from ${JSON.stringify(new URL('../../../src/plugins/gateway/index.ts', import.meta.url).pathname)};`,
    ],
  );
  return call(['gateway', ...argv, '--data-dir', rig.dataDir], { cwd: dir, columns: 1_000 });
}

const routesText = async (rig: Rig, given: Setting): Promise<string> => (await run(rig, given, 'routes')).out;

/** Waits until something is found. */
async function until<T>(found: () => Promise<T | undefined>): Promise<T> {
  const one = await read('what is looked for', found, (seen) => seen !== undefined, 200);
  return one as T;
}

const alertsOf = async (rig: Rig): Promise<{ severity: string; text: string; labels: any }[]> =>
  (await rig.records())
    .flatMap(({ effects }) => effects)
    .map(({ params }) => params as any)
    .filter(({ name }) => name === 'gateway.route_token');

for (const [what, spoil, said] of faults) {
  test(`[G7,G17,G19] a rotated token ${what} is a state of its route, with an alert at once that its correction ends`, async (t) => {
    t.timeout(300_000);
    const given = await setting(t);
    const rig = await start(t, given);
    const key = await rig.mint({ servers: ['web_crawl'] });
    const connected = await rig.connect(t, 'web_crawl', key);
    t.is((await connected.listTools()).tools.length, 2);

    spoil(given.file);
    const [raised] = await until(async () => {
      const alerts = await alertsOf(rig);
      return alerts.length > 0 ? alerts : undefined;
    });
    t.is(raised?.severity, 'warning');
    t.regex(raised?.text ?? '', said);
    t.true(raised?.text.includes(given.file));
    t.regex(raised?.text ?? '', /The last good token goes on until the process ends/);
    t.is((await connected.listTools()).tools.length, 2, 'the last good one goes on');

    const listed = await routesText(rig, given);
    t.regex(listed, /web_crawl .*token unusable/);
    t.true(listed.includes(given.file), listed);
    const health: any = rig.runtime.health().gateway;
    t.false(health.ok);
    t.true(health.reason.includes(given.file), health.reason);

    writeFileSync(given.file, 'third-token', { mode: 0o600 });
    chmodSync(given.file, 0o600);
    const resolved = await until(async () =>
      (await alertsOf(rig)).find(({ labels }) => labels.state === 'resolved'),
    );
    t.is(resolved.severity, 'info');
    await until(async () => ((rig.runtime.health().gateway as any).ok ? true : undefined));
    t.is((await connected.listTools()).tools.length, 2);
    t.is(given.upstream.asked.at(-1)?.headers.authorization, 'Bearer third-token');
    t.is((await alertsOf(rig)).length, 2, 'one alert and its end');
    t.deepEqual(await rig.traces('second-token', 'third-token', 'first-token'), []);
  });

  test(`[G2,G7,G19] after a restart a route whose token is one ${what} answers 503 with the reason, and no alert claims more`, async (t) => {
    t.timeout(300_000);
    const given = await setting(t);
    const before = await start(t, given);
    const key = await before.mint({ servers: ['web_crawl'] });
    await before.runtime.stop('restart');
    spoil(given.file);

    const rig = await start(t, given);
    const [raised] = await until(async () => {
      const alerts = await alertsOf(rig);
      return alerts.length > 0 ? alerts : undefined;
    });
    t.is(raised?.severity, 'critical');
    t.regex(raised?.text ?? '', said);
    t.regex(raised?.text ?? '', /answers 503/);
    t.deepEqual(await rig.alerts(), ['gateway.route_token'], 'nothing says that the last good one goes on');
    const answer = await rig.post('/web_crawl/mcp', initialize, admission(key));
    t.is(answer.status, 503);
    const body: any = await answer.json();
    t.regex(body.error.message, /web_crawl is without a usable token: the one in its file is refused: /);
    t.false(JSON.stringify(body).includes(given.file), 'a client learns no path');
    t.regex(await routesText(rig, given), /web_crawl .*token unusable/);

    writeFileSync(given.file, 'third-token', { mode: 0o600 });
    chmodSync(given.file, 0o600);
    await until(async () =>
      (await rig.post('/web_crawl/mcp', initialize, admission(key))).status === 200 ? true : undefined,
    );
  });
}

test('[G7,G17] without probes the next call finds the token that became unusable', async (t) => {
  t.timeout(300_000);
  const given = await setting(t);
  const rig = await start(t, given, 0);
  const connected = await rig.connect(t, 'web_crawl', await rig.mint({ servers: ['web_crawl'] }));
  chmodSync(given.file, 0o644);
  await until(async () => {
    await connected.listTools();
    return (await alertsOf(rig))[0];
  });
  t.regex(await routesText(rig, given), /token unusable/);
});

test('[G22] gateway doctor names the file of a token that became unusable, although calls still succeed', async (t) => {
  t.timeout(300_000);
  const given = await setting(t);
  const rig = await start(t, given);
  const keyFile = join(given.dir, 'key');
  writeFileSync(keyFile, await rig.mint({ servers: ['web_crawl'] }), { mode: 0o600 });
  const doctor = ['doctor', '--key-file', keyFile];
  t.is((await run(rig, given, ...doctor)).code, 0);
  chmodSync(given.file, 0o644);
  await until(async () => (await alertsOf(rig))[0]);
  const { code, out, err } = await run(rig, given, ...doctor);
  t.is(code, 1, out + err);
  t.true(out.includes(given.file), out);
  t.regex(out, /the last good one goes on until the process ends/);
  t.regex(out, /Store the bare token in a file of mode 0600/);
});
