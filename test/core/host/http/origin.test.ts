import test from 'ava';
import { request } from 'undici';
import type { SurfaceOptions } from '../../../../src/core/host/http/contract.ts';
import { serve } from './support.ts';

const cases: [title: string, headers: (port: number) => Record<string, string>, status: number][] = [
  ['its own page', (port) => ({ origin: `http://127.0.0.1:${port}` }), 200],
  ['no page at all', () => ({}), 200],
  ['its own page, as a browser says', () => ({ 'sec-fetch-site': 'same-origin' }), 200],
  ['what a person typed, as a browser says', () => ({ 'sec-fetch-site': 'none' }), 200],
  ['another port of this machine', () => ({ origin: 'http://127.0.0.1:9999' }), 403],
  ['no port, which is port 80', () => ({ origin: 'http://127.0.0.1' }), 403],
  ['another scheme', (port) => ({ origin: `https://127.0.0.1:${port}` }), 403],
  ['another name of this machine', (port) => ({ origin: `http://localhost:${port}` }), 403],
  ['another loopback address', (port) => ({ origin: `http://127.0.0.2:${port}` }), 403],
  ['a sandboxed page', () => ({ origin: 'null' }), 403],
  ['a file', () => ({ origin: 'file://' }), 403],
  ['a name before its own', (port) => ({ origin: `http://evil@127.0.0.1:${port}` }), 403],
  ['a blob of its own', (port) => ({ origin: `blob:http://127.0.0.1:${port}` }), 403],
  ['no origin', () => ({ origin: 'evil' }), 403],
  ['another site', () => ({ 'sec-fetch-site': 'cross-site' }), 403],
  ['another origin of this site', () => ({ 'sec-fetch-site': 'same-site' }), 403],
  ['an unknown word of a browser', () => ({ 'sec-fetch-site': 'new-word' }), 403],
  [
    'a word and its own page',
    (port) => ({ origin: `http://127.0.0.1:${port}`, 'sec-fetch-site': 'same-site' }),
    403,
  ],
];

for (const [title, headers, status] of cases) {
  test(`[C14] a write from ${title} is ${status === 200 ? 'taken' : 'refused'}`, async (t) => {
    const { url, port } = await serve(t);
    const answer = await request(`${url}/act`, { method: 'POST', headers: headers(port) });
    t.is(answer.statusCode, status);
    const body = (await answer.body.json()) as { code?: string };
    if (status === 403) t.is(body.code, 'HF_HTTP_ORIGIN');
  });
}

const proxied: [title: string, options: Partial<SurfaceOptions>, origin: string, status: number][] = [
  ['a name behind a proxy, with TLS', { allowedHosts: ['gw.example'] }, 'https://gw.example', 200],
  ['that name, with TLS on another port', { allowedHosts: ['gw.example'] }, 'https://gw.example:8443', 403],
  ['that name, without TLS', { allowedHosts: ['gw.example'] }, 'http://gw.example', 403],
  ['the public origin', { publicOrigin: 'https://gw.example:8443' }, 'https://gw.example:8443', 200],
  [
    'another port than the public one',
    { publicOrigin: 'https://gw.example:8443' },
    'https://gw.example',
    403,
  ],
];

for (const [title, options, origin, status] of proxied) {
  test(`[C14] a write from ${title} is ${status === 200 ? 'taken' : 'refused'}`, async (t) => {
    const { url } = await serve(t, options);
    const answer = await request(`${url}/act`, { method: 'POST', headers: { origin } });
    t.is(answer.statusCode, status);
    await answer.body.dump();
  });
}

const bodies: [title: string, headers: Record<string, string>, body: string | undefined, status: number][] = [
  ['JSON', { 'content-type': 'application/json; charset=utf-8' }, '{}', 200],
  ['JSON in capitals', { 'content-type': 'Application/JSON' }, '{}', 200],
  ['no body', {}, undefined, 200],
  ['a body without a type', {}, '{}', 415],
  ['plain text', { 'content-type': 'text/plain' }, '{}', 415],
  ['plain text with JSON behind it', { 'content-type': 'text/plain; application/json' }, '{}', 415],
  ['a form', { 'content-type': 'application/x-www-form-urlencoded' }, 'a=1', 415],
  ['an empty form', { 'content-type': 'application/x-www-form-urlencoded' }, undefined, 415],
];

for (const [title, headers, body, status] of bodies) {
  test(`[C14] a write with ${title} is answered ${status}, whatever a route would parse`, async (t) => {
    const { url } = await serve(t, {}, (http) => {
      http.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, bytes, done) => done(null, bytes));
      http.post('/act', () => ({ done: true }));
    });
    const sent = body === undefined ? {} : { body };
    const answer = await request(`${url}/act`, { method: 'POST', headers, ...sent });
    t.is(answer.statusCode, status);
    await answer.body.dump();
  });
}
