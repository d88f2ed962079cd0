// The files that one request passes, part of `npm run shape`: the shipped configuration runs as a process of its own,
// and V8's coverage says which files of src ran a function between the request and its outcome in the log.
//
//   node scripts/shape/ways.mjs          prints the counts and the files as JSON
//
// A file counts when it ran in each of several identical requests, so that timers that happen to fire do not.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { productNode } from '../bootstrap.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const SURFACES = ['ROUTER', 'GATEWAY', 'OTLP_HTTP', 'OTLP_GRPC', 'CONSOLE', 'MEMORY', 'UPTIME'];
/** Requests before the first that counts: code is loaded lazily, and caches are filled. */
const WARM = 5;
const COUNTED = 5;
/** Until the outcome of a request is in the log, milliseconds. */
const SETTLED_MS = 150;
/** Longest wait for the product to start or to answer, milliseconds. */
const ANSWER_MS = 30_000;
const MEDIA = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/**
 * The files of src that a request passes from the socket to its outcome.
 *
 * @returns {Promise<{ 'tools/call': string[], 'config/set': string[], 'otlp batch': string[] }>} sorted paths
 */
export async function filesOnTheWay() {
  const upstream = createServer(answerAsUpstream).listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-ways-'));
  const product = start(dir, `http://127.0.0.1:${upstream.address().port}/mcp`);
  try {
    const surfaces = await ready(dir, product);
    const secret = (name) => readFileSync(join(dir, 'secrets', name), 'utf8').trim();
    return {
      'tools/call': await passed(product, await toolsCall(surfaces.gateway.url, secret('master-key'))),
      'config/set': await passed(product, await configSet(surfaces.router.url)),
      'otlp batch': await passed(product, otlpBatch(surfaces.otlpHttp.url, secret('otel_ingest_api_key'))),
    };
  } finally {
    if (product.exitCode === null && product.kill('SIGTERM')) await once(product, 'exit');
    upstream.close();
    upstream.closeAllConnections();
    rmSync(dir, { recursive: true, force: true });
  }
}

function start(dir, upstream) {
  const ports = Object.fromEntries(SURFACES.map((name) => [`HOLDFAST_${name}_PORT`, '0']));
  const preload = new URL('coverage.mjs', import.meta.url).href;
  const args = ['--import', preload, join(root, 'bin/holdfast.js'), 'start', '--data-dir', dir];
  // Another Node would start the product's own as a child, which this process could not ask.
  return spawn(productNode(), args, {
    cwd: root,
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    env: {
      ...process.env,
      ...ports,
      HOLDFAST_MCP_LIBRARY_DOCS_URL: upstream,
      HOLDFAST_MCP_LIBRARY_DOCS_TOKEN: 'a token of the upstream',
    },
  });
}

async function ready(dir, product) {
  const file = join(dir, 'runtime.json');
  const deadline = Date.now() + ANSWER_MS;
  while (product.exitCode === null && Date.now() < deadline) {
    const { pid, surfaces } = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
    if (pid === product.pid && surfaces?.otlpHttp) return surfaces;
    await after(50);
  }
  throw new Error(
    product.exitCode === null ? 'it is not ready in time' : `it ended with ${product.exitCode}`,
  );
}

async function passed(product, request) {
  for (let done = 0; done < WARM; done += 1) await request(done);
  let files;
  for (let done = 0; done < COUNTED; done += 1) {
    await after(SETTLED_MS);
    await ran(product);
    await request(WARM + done);
    await after(SETTLED_MS);
    const these = new Set(await ran(product));
    files = files === undefined ? these : new Set([...files].filter((file) => these.has(file)));
  }
  return [...files].sort();
}

async function ran(product) {
  const said = once(product, 'message', { signal: AbortSignal.timeout(ANSWER_MS) });
  product.send('files');
  return (await said)[0];
}

async function post(url, headers, body) {
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${url} answers ${answer.status}: ${text}`);
  return { headers: answer.headers, text };
}

/** A call of a tool, in a session, by a key with a limit and a budget. */
async function toolsCall(gateway, masterKey) {
  const admin = { ...MEDIA, authorization: `Bearer ${masterKey}` };
  const terms = {
    key_alias: 'ways',
    rpm_limit: 1_000,
    max_budget: 10,
    object_permission: { mcp_servers: ['library_docs'] },
  };
  const { key } = JSON.parse((await post(`${gateway}/key/generate`, admin, terms)).text);
  const url = `${gateway}/library_docs/mcp`;
  const admission = { ...MEDIA, 'x-gateway-api-key': `Bearer ${key}` };
  const client = {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'ways', version: '1' },
  };
  const opened = await post(url, admission, { jsonrpc: '2.0', id: 1, method: 'initialize', params: client });
  const headers = { ...admission, 'mcp-session-id': opened.headers.get('mcp-session-id') };
  const params = { name: 'library_docs-search', arguments: { text: 'shape' } };
  return (id) => post(url, headers, { jsonrpc: '2.0', id, method: 'tools/call', params });
}

/** A write of the router's whole configuration, with another value each time. */
async function configSet(router) {
  const active = await (await fetch(`${router}/v1/config/active`)).json();
  return async (number) => {
    const { ncid } = await (await fetch(`${router}/v1/config/active`)).json();
    return post(`${router}/v1/config/set`, MEDIA, { ...active, ncid, shapeOfWays: number });
  };
}

/** One span by OTLP over HTTP. */
function otlpBatch(otlp, key) {
  const headers = { 'content-type': 'application/json', authorization: key };
  return (number) => {
    const start = BigInt(Date.now()) * 1_000_000n;
    const span = {
      traceId: String(number + 1).padStart(32, '0'),
      spanId: String(number + 1).padStart(16, '0'),
      name: 'ways',
      kind: 2,
      startTimeUnixNano: String(start),
      endTimeUnixNano: String(start + 1_000_000n),
    };
    return post(`${otlp}/v1/traces`, headers, {
      resourceSpans: [{ resource: {}, scopeSpans: [{ scope: {}, spans: [span] }] }],
    });
  };
}

function answerAsUpstream(request, response) {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const message = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString('utf8')) : {};
    if (message.id === undefined) return response.writeHead(202).end();
    const server = {
      protocolVersion: '2025-06-18',
      capabilities: { tools: {} },
      serverInfo: { name: 'ways', version: '1' },
    };
    const result = message.method === 'initialize' ? server : { content: [{ type: 'text', text: 'found' }] };
    const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }));
    response
      .writeHead(200, { 'content-type': 'application/json', 'content-length': String(body.length) })
      .end(body);
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const ways = await filesOnTheWay();
  const counts = Object.fromEntries(
    Object.entries(ways).map(([way, files]) => {
      const gateway = files.filter((file) => /^src\/(?:plugins|machines)\/gateway\//.test(file)).length;
      const core = files.filter((file) => file.startsWith('src/core/')).length;
      return [way, { files: files.length, gateway, core }];
    }),
  );
  console.log(JSON.stringify({ counts, ways }, null, 2));
}
