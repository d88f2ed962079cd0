// Texts with markup come in wherever a stranger may write one, through the real entrances of the product. Every page of the
// console is visited then, in a real browser: each text is there as text, and nothing of it has become an element or a script.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { Page } from 'playwright-core';
import { request } from 'undici';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
import { alerts } from '../../../src/plugins/alerts/index.ts';
import { collector } from '../../../src/plugins/collector/index.ts';
import { columnar } from '../../../src/plugins/columnar/index.ts';
import { credentialFree, gateway } from '../../../src/plugins/gateway/index.ts';
import { otlp } from '../../../src/plugins/otlp/index.ts';
import { reconciler } from '../../../src/plugins/reconciler/index.ts';
import { router } from '../../../src/plugins/router/index.ts';
import { uptime } from '../../../src/plugins/uptime/index.ts';
import { uptimeMonitor } from '../../../src/plugins/uptime-monitor/index.ts';
import { startChromium } from '../../support/chromium.ts';
import { door } from '../../support/door.ts';
import { resultFor, startScripted } from '../../support/scripted-upstream.ts';
import { PATIENCE_MS, read } from '../../support/until.ts';
import { CANARY, doors } from './busy-doors.ts';
import { ConsoleRig } from './console-rig.ts';

/** Ends an attribute and an element, and tries to run a script. */
const hostile = (mark: string): string => `"'><img src=x onerror=pwned()>${mark}`;

/** What is known to be shown, each in some page. Other texts come in as well: of what is never shown, and of what may be some day. */
const MARKS = {
  actor: 'mark-actor-key',
  event: 'mark-event-field',
  transaction: 'mark-transaction',
  alias: 'mark-key-alias',
  tool: 'mark-tool-name',
  silence: 'mark-silence-note',
  login: 'mark-login',
  beat: 'mark-message-of-a-beat',
  span: 'mark-span-name',
  service: 'mark-service',
  line: 'mark-line-of-a-log',
} as const;

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const DOOR = `test.door/${hostile(MARKS.actor)}`;

/** Sends JSON as a client without a browser does. @returns the status, and the body where it is JSON */
async function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<any> {
  const answer = await request(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: JSON.stringify(body),
  });
  const text = await answer.body.text();
  return { status: answer.statusCode, text, headers: answer.headers };
}

async function writeIntoTheRouter(rig: ConsoleRig): Promise<void> {
  const { url = '' } = rig.runtime.surfaces.router ?? {};
  const active = async () => (await (await request(`${url}/v1/config/active`)).body.json()) as any;
  const strange = { 'user-agent': hostile('agent'), 'x-correlation-id': hostile('correlation') };
  const config = await active();
  const vlan = config.interface.vlan['eth1.10'];
  vlan.meta.name = hostile('network');
  vlan.password = CANARY;
  await post(`${url}/v1/config/set`, config, strange);
  const append = { transactionOp: 'append', transID: hostile(MARKS.transaction) };
  await post(`${url}/v1/config/set`, { ...(await active()), ...append }, strange);
}

async function callTheGateway(rig: ConsoleRig): Promise<void> {
  const { url = '' } = rig.runtime.surfaces.gateway ?? {};
  const master = readFileSync(join(rig.dataDir, 'secrets', 'master-key'), 'utf8').trim();
  const made = await post(
    `${url}/key/generate`,
    { key_alias: hostile(MARKS.alias), object_permission: { mcp_servers: ['wiki'] } },
    { authorization: `Bearer ${master}` },
  );
  const key = { 'x-gateway-api-key': `Bearer ${JSON.parse(made.text).key}`, 'user-agent': hostile('agent') };
  const message = (id: number, method: string, params: object) => ({ jsonrpc: '2.0', id, method, params });
  const client = { name: hostile('client'), version: hostile('version') };
  const hello = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: client };
  const { headers } = await post(`${url}/wiki/mcp`, message(1, 'initialize', hello), key);
  const session = { ...key, 'mcp-session-id': String(headers['mcp-session-id'] ?? '') };
  await post(`${url}/wiki/mcp`, message(2, 'tools/list', {}), session);
  const call = { name: hostile(MARKS.tool), arguments: { password: CANARY, text: hostile('argument') } };
  await post(`${url}/wiki/mcp`, message(3, 'tools/call', call), session);
  await post(`${url}/${encodeURIComponent(hostile('route'))}/mcp`, message(4, 'initialize', hello), {
    'x-gateway-api-key': `Bearer sk-${hostile('key')}`,
  });
}

async function sendTelemetry(rig: ConsoleRig): Promise<void> {
  const { url = '' } = rig.runtime.surfaces.otlpHttp ?? {};
  const authorization = readFileSync(join(rig.dataDir, 'secrets', 'otel_ingest_api_key'), 'utf8').trim();
  const attribute = (key: string, stringValue: string) => ({ key, value: { stringValue } });
  const resource = { attributes: [attribute('service.name', hostile(MARKS.service))] };
  const now = BigInt(Date.now()) * 1_000_000n;
  const span = {
    traceId: TRACE,
    spanId: 'b7ad6b7169203331',
    name: hostile(MARKS.span),
    kind: 2,
    startTimeUnixNano: String(now),
    endTimeUnixNano: String(now + 5_000_000n),
    attributes: [attribute(hostile('attribute'), hostile('value')), attribute('password', CANARY)],
    status: { code: 2, message: hostile('status') },
  };
  const line = {
    timeUnixNano: String(now),
    severityText: hostile('severity'),
    body: { stringValue: `${hostile(MARKS.line)} authorization: Bearer ${CANARY}` },
  };
  const traces = {
    resourceSpans: [{ resource, scopeSpans: [{ scope: { name: hostile('scope') }, spans: [span] }] }],
  };
  const logs = { resourceLogs: [{ resource, scopeLogs: [{ logRecords: [line] }] }] };
  await post(`${url}/v1/traces`, traces, { authorization });
  await post(`${url}/v1/logs`, logs, { authorization });
}

/** Every path of a page that shows something of what came in. */
async function pathsOf(rig: ConsoleRig): Promise<string[]> {
  const { pages } = await rig.ask('/api/pages');
  const { actors } = await rig.ask('/api/actors?limit=500');
  const records = await rig.askAll('/api/records?text=onerror&limit=500');
  const stories = await rig.askAll('/api/stories?text=onerror&limit=100');
  const text = encodeURIComponent(hostile('typed'));
  const marked = records.filter(({ text }: { text: string }) => /mark-/.test(text));
  const last = (await rig.ask('/api/log')).last;
  return [
    ...['/now', '/stories', '/actors', '/what-if', `/compare?mark=2&at=${last}`],
    ...pages.map(({ name }: { name: string }) => `/area/${name}`),
    `/area/trace?trace=${TRACE}`,
    ...actors
      .filter(({ id }: { id: string }) =>
        /mark-|^(router.config|gateway.key|alerts.(alert|silences)|console|uptime-monitor)\b.*(?<!ula)$/.test(
          id,
        ),
      )
      .map(({ id }: { id: string }) => `/actors/${id.split('/').map(encodeURIComponent).join('/')}`),
    ...marked.slice(0, 3).map(({ seq }: { seq: number }) => `/records/${seq}`),
    ...stories.slice(0, 1).map(({ id }: { id: string }) => `/stories/${encodeURIComponent(id)}`),
    `/stories?text=${text}&actor=${text}&event=${text}`,
    `/actors?text=${text}`,
    ...['area', 'records', 'stories', 'actors', 'compare'].map((page) => `/${page}/${text}`),
    ...[`/now?at=${text}`, `/now#${text}`, `/now/${text}`, `/compare?mark=${text}&at=${text}`],
  ];
}

/** What a text would have become if it were markup. */
const MADE =
  'img, iframe, object, embed, svg [onload], [onerror], [onload], [onclick], a[href^="javascript:"], script:not([src^="/assets/"])';

test('[C15,C9] texts of strangers come in everywhere and stay text on every page; no secret is in a page, an answer or a log line', async (t) => {
  t.timeout(480_000);
  const tools = [
    { name: hostile('listed'), description: hostile('description'), inputSchema: { type: 'object' } },
  ];
  const upstream = await startScripted(t, (response, heard) => {
    if (heard.method !== 'POST') return response.writeHead(405, { allow: 'POST' }).end();
    const { method = '', params } = JSON.parse(heard.text) as { method?: string; params?: any };
    const results: Record<string, object> = {
      initialize: {
        ...{ protocolVersion: params?.protocolVersion, capabilities: { tools: {} } },
        serverInfo: { name: hostile('server'), version: '1' },
      },
      'tools/list': { tools },
      'tools/call': { isError: true, content: [{ type: 'text', text: hostile('result') }] },
    };
    const text = resultFor(heard, results[method] ?? {});
    return response.writeHead(200, { 'content-type': 'application/json' }).end(text);
  });
  const rig = await ConsoleRig.start(t, {
    others: [
      ...[router({ port: 0 }), reconciler(), alerts(), doors(), uptime(), uptimeMonitor({ port: 0 })],
      gateway({ port: 0, probeEveryMs: 0, routes: [credentialFree({ name: 'wiki', url: upstream.url })] }),
      ...[columnar(), collector(), otlp({ port: 0, grpcPort: 0, lingerMs: 0 })],
    ],
  });
  const { actors } = rig.runtime.services;
  const { body } = await postControl(
    ...([rig.dataDir, '/console/code', { by: hostile(MARKS.login) }] as const),
    AbortSignal.timeout(PATIENCE_MS),
  );
  await rig.loginWith((body as { code: string }).code);
  const live = await request(`${rig.url}/api/events`, { headers: { cookie: rig.cookie } });
  let streamed = '';
  live.body.setEncoding('utf8').on('data', (text) => (streamed += text));
  live.body.on('error', () => {});
  t.teardown(() => live.body.destroy());

  actors.deliver(DOOR, { type: 'OPEN', by: hostile(MARKS.event), password: CANARY });
  actors.send(
    door,
    hostile(MARKS.actor),
    { type: 'KNOCK' },
    { correlation: hostile('correlation') as never },
  );
  await writeIntoTheRouter(rig);
  await callTheGateway(rig);
  await sendTelemetry(rig);
  const silence = { pattern: hostile('pattern'), for: '2h', note: hostile(MARKS.silence) };
  await rig.send('/api/actions/alert-silence', { method: 'POST', body: { fields: silence } });
  const token = readFileSync(join(rig.dataDir, 'secrets', 'push', 'clickstack-watchdog'), 'utf8').trim();
  const pushed = new URLSearchParams({ status: 'down', msg: hostile(MARKS.beat) });
  await (await request(`${rig.runtime.surfaces.uptime?.url}/api/push/${token}?${pushed}`)).body.dump();
  const last = await rig.durable();
  await read(
    'the stream has the newest record',
    () => streamed,
    (text) => text.includes(`id: ${last}\n`),
  );

  const browser = await startChromium(t);
  const context = await browser.newContext({ viewport: { width: 1280, height: 2_000 } });
  context.setDefaultTimeout(PATIENCE_MS);
  const [name = '', value = ''] = rig.cookie.split('=');
  await context.addCookies([{ name, value, url: rig.url }]);
  const page = await context.newPage();
  const faults: string[] = [];
  const answers: Promise<string>[] = [];
  await page.exposeFunction('pwned', () => void faults.push('a script of a text ran'));
  page.on('pageerror', ({ message }) => faults.push(message));
  page.on('dialog', (dialog) => {
    faults.push(`dialog ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('console', (message) => {
    if (/Content Security Policy|Trusted/i.test(message.text())) faults.push(message.text());
  });
  page.on('response', (answer) => {
    if (/\/api\/(?!events)/.test(answer.url())) answers.push(answer.text().catch(() => ''));
  });
  let shown = '';
  const look = async (path: string) => {
    t.is(await page.locator(MADE).count(), 0, path);
    const html = await page.content();
    t.false(html.includes(CANARY), path);
    shown += await page.locator('body').innerText();
  };
  const paths = await pathsOf(rig);
  for (const path of paths) {
    await page.goto(rig.url + path);
    await settled(page);
    await look(path);
  }
  await page.goto(`${rig.url}/now`);
  await settled(page);
  await page.keyboard.press('Control+k');
  await page.locator('dialog input').fill('onerror');
  await page
    .getByRole('option', { name: /mark-actor-key/ })
    .first()
    .waitFor();
  await look('the palette');
  t.deepEqual(faults, []);
  const seen = await Promise.all(answers);
  t.deepEqual(
    Object.values(MARKS).filter((mark) => !shown.includes(mark)),
    [],
    'each is shown somewhere',
  );
  for (const text of [...seen, streamed, ...rig.lines]) t.false(text.includes(CANARY));
  t.true(streamed.includes(MARKS.actor) && seen.join('').includes('[redacted]'));
});

/** Waits until all that the page asks for is there. */
async function settled(page: Page): Promise<void> {
  await page.locator('main > :not(.wait)').first().waitFor();
  await page.locator('.wait').first().waitFor({ state: 'detached' });
}
