import { request } from 'node:http';
import test from 'ava';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { admission, initialize, Rig } from './rig.ts';

const routes = [credentialFree({ name: 'repo_wiki', url: 'http://127.0.0.1:9/mcp' })];

test('[G11] a trailing slash is redirected by 307 to the path without, on the configured scheme and host', async (t) => {
  const rig = await Rig.start(t, { routes, publicUrl: 'https://mcp.example.net/' });
  for (const method of ['POST', 'GET', 'DELETE', 'HEAD']) {
    const answer = await fetch(`${rig.url}/repo_wiki/mcp/`, { method, redirect: 'manual' });
    t.is(answer.status, 307, method);
    t.is(answer.headers.get('location'), 'https://mcp.example.net/repo_wiki/mcp', method);
  }
});

test('[G11] without a public URL the redirect names the path alone, and a client that follows keeps its body', async (t) => {
  const rig = await Rig.start(t, { routes });
  const answer = await rig.post('/repo_wiki/mcp/', initialize);
  t.is(answer.headers.get('location'), '/repo_wiki/mcp');
  const headers = admission(await rig.mint({}));
  const followed = await fetch(`${rig.url}/repo_wiki/mcp/`, {
    method: 'POST',
    headers: {
      ...headers,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify(initialize),
  });
  t.is(followed.status, 200);
  t.true(followed.headers.has('mcp-session-id'));
});

test('[G11] the gateway is called by the name of its public URL, and by no other that it was not told', async (t) => {
  const rig = await Rig.start(t, { routes, publicUrl: 'https://mcp.example.net' });
  const statusAs = (host: string) =>
    new Promise((resolve, reject) => {
      const asked = request(`${rig.url}/nobody/mcp`, { headers: { host } }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      });
      asked.on('error', reject).end();
    });
  t.is(await statusAs('mcp.example.net'), 404);
  t.is(await statusAs('mcp.example.org'), 421);
});

test('[G12] bare /mcp goes to the aggregate when servers are selected, and is otherwise not found', async (t) => {
  const rig = await Rig.start(t, { routes, publicUrl: 'https://mcp.example.net' });
  const selected = await rig.post('/mcp', initialize, { 'x-mcp-servers': 'repo_wiki' });
  t.is(selected.status, 307);
  t.is(selected.headers.get('location'), 'https://mcp.example.net/mcp/');
  const bare = await rig.post('/mcp', initialize);
  t.is(bare.status, 404);
  t.regex(((await bare.json()) as { detail: string }).detail, /^route not found: .*\/<server>\/mcp/);
});

test('[G12] SSE paths of single servers, bare /sse, unknown servers and unknown paths are 404', async (t) => {
  const rig = await Rig.start(t, { routes });
  const paths = [
    '/repo_wiki/mcp/sse',
    '/repo_wiki/sse',
    '/sse',
    '/nobody/mcp',
    '/nobody/mcp/',
    '/a/b/c',
    '/__proto__/mcp/',
  ];
  for (const path of paths) {
    for (const method of ['GET', 'POST']) {
      const answer = await fetch(`${rig.url}${path}`, { method, redirect: 'manual' });
      t.is(answer.status, 404, `${method} ${path}`);
      t.regex(((await answer.json()) as { detail: string }).detail, /^route not found/, `${method} ${path}`);
    }
  }
});

test('[G12] other methods are 405 with the methods that there are', async (t) => {
  const rig = await Rig.start(t, { routes });
  const headers = { ...admission(await rig.mint({ servers: ['repo_wiki'] })), accept: 'text/event-stream' };
  const paths = {
    '/repo_wiki/mcp': 'DELETE, GET, POST',
    '/mcp/': 'DELETE, GET, POST',
    '/mcp/sse': 'GET, POST',
  };
  for (const [path, allow] of Object.entries(paths)) {
    for (const method of ['PUT', 'PATCH', 'HEAD', 'OPTIONS']) {
      const answer = await fetch(`${rig.url}${path}`, { method, headers });
      t.is(answer.status, 405, `${method} ${path}`);
      t.is(answer.headers.get('allow'), allow, `${method} ${path}`);
    }
  }
});
