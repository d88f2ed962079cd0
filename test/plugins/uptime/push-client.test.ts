import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { isCoded } from '../../../src/core/kernel/errors/holdfast-error.ts';
import { parseAddress, uptimeOptions } from '../../../src/plugins/uptime/options.ts';
import { PushClient, type PushClientOptions, READ_LIMIT } from '../../../src/plugins/uptime/push-client.ts';
import { readPushToken, type TokenPlaces } from '../../../src/plugins/uptime/tokens.ts';
import { tempDir } from '../../support/temp.ts';

const TOKEN = 'pushtokenpushtokenpushtoken12345';
const beat = { status: 'up', msg: 'stale=4s drift=0', ping: 12 } as const;

async function listen(t: ExecutionContext, server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

/** A monitor that answers as told, and keeps what it was asked. */
async function monitor(t: ExecutionContext, answer: RequestListener) {
  const asked: { url: string; method: string; host: string }[] = [];
  const port = await listen(
    t,
    createServer((request, response) => {
      asked.push({ url: request.url!, method: request.method!, host: request.headers.host! });
      answer(request, response);
    }),
  );
  return { asked, port, url: `http://127.0.0.1:${port}` };
}

const client = (url: string | undefined, rest: Partial<PushClientOptions> = {}) =>
  new PushClient({
    place: () => (url === undefined ? undefined : { url }),
    timeoutMs: 5_000,
    clock: systemClock,
    token: async () => TOKEN,
    ...rest,
  });

test('[O15,R27] a push is a GET with status, msg and ping, below the base, and counts on a 2xx with {"ok":true}', async (t) => {
  const { asked, url, port } = await monitor(t, (_, response) => response.end('{"ok":true,"more":1}'));
  t.deepEqual(await client(`${url}/kuma/`).push('m', beat), {
    kind: 'delivered',
    status: 200,
    body: '{"ok":true,"more":1}',
  });
  t.deepEqual(asked, [
    {
      method: 'GET',
      url: `/kuma/api/push/${TOKEN}?status=up&msg=stale%3D4s+drift%3D0&ping=12`,
      host: `127.0.0.1:${port}`,
    },
  ]);
  await client(url).push('m', { status: 'down', msg: 'x'.repeat(999), ping: -3.7 });
  const query = new URL(asked[1]!.url, url).searchParams;
  t.is(query.get('status'), 'down');
  t.is(query.get('msg')!.length, 250);
  t.is(query.get('ping'), '0', 'a ping is a non-negative integer');
});

test('[O15,R27] the body of every other answer is kept without the token, and a 404 is not blamed on it', async (t) => {
  const cases: [status: number, body: string, expected: object][] = [
    [
      404,
      '{"ok":false,"msg":"Monitor not found or not active."}',
      { msg: 'Monitor not found or not active.' },
    ],
    [404, '{"ok":false,"msg":"SQLITE_BUSY: database is locked"}', { msg: 'SQLITE_BUSY: database is locked' }],
    [502, '<html>bad gateway</html>', { body: '<html>bad gateway</html>' }],
    [200, '{"ok":false}', { body: '{"ok":false}' }],
    [200, 'welcome', { body: 'welcome' }],
    [500, '{"ok":true}', { body: '{"ok":true}' }],
    [404, `{"ok":false,"msg":"no ${TOKEN} here"}`, { msg: 'no [token] here' }],
    [404, `cannot GET /api/push/${TOKEN}`, {}],
  ];
  for (const [status, body, expected] of cases) {
    const { url } = await monitor(t, (_, response) => response.writeHead(status).end(body));
    const answer = await client(url).push('m', beat);
    t.like(answer, { kind: 'refused', status, exitStatus: 8, ...expected }, body);
    t.notRegex(JSON.stringify(answer), new RegExp(`${TOKEN}|bad token`, 'i'));
  }
  const { url } = await monitor(t, (request, response) =>
    response.writeHead(200, { 'x-asked': String(request.url) }).end('{"ok":true}'),
  );
  const { headers } = await client(url).send('m', beat);
  const asked = headers.find((header) => header.startsWith('x-asked')) ?? '';
  t.regex(asked, /^x-asked: \/api\/push\/\[\w+\]/);
  t.false(asked.includes(TOKEN));
});

test('[R27] a redirect is an answer, and is not followed', async (t) => {
  const other = await monitor(t, (_, response) => response.end('{"ok":true}'));
  for (const status of [301, 302, 307, 308]) {
    const { url } = await monitor(t, (_, response) =>
      response.writeHead(status, { location: `${other.url}/login` }).end('moved'),
    );
    t.like(await client(url).push('m', beat), { kind: 'refused', status, body: 'moved', exitStatus: 8 });
  }
  t.deepEqual(other.asked, []);
});

test('[R27] the address that is connected to is set apart from the URL, and the URL keeps its name', async (t) => {
  const { asked, port } = await monitor(t, (_, response) => response.end('{"ok":true}'));
  const named = client('http://status.invalid:81', { connect: `127.0.0.1:${port}` });
  t.like(await named.push('m', beat), { kind: 'delivered' });
  t.is(asked[0]!.host, 'status.invalid:81');
  const samePort = client(`http://status.invalid:${port}`, { connect: '127.0.0.1' });
  t.like(await samePort.push('m', beat), { kind: 'delivered' });
});

test('[O15] a network that fails ends as wget would: 4, and 5 for TLS', async (t) => {
  const { url, port } = await monitor(t, () => {});
  const slow = await client(url, { timeoutMs: 60 }).push('m', beat);
  t.deepEqual(slow, { kind: 'failed', reason: 'no answer within 0.06 s', exitStatus: 4 });

  const trickle = await monitor(t, (_, response) => void response.writeHead(200).write('{"ok":'));
  t.like(await client(trickle.url, { timeoutMs: 60 }).push('m', beat), { kind: 'failed', exitStatus: 4 });

  const cut = await monitor(t, (request) => request.socket.destroy());
  t.like(await client(cut.url).push('m', beat), { kind: 'failed', exitStatus: 4 });

  const closed = await client('http://127.0.0.1:1').push('m', beat);
  t.deepEqual(closed, { kind: 'failed', reason: 'nothing listens there (ECONNREFUSED)', exitStatus: 4 });

  const garbage = await monitor(t, (request) => void request.socket.end('what is no HTTP\r\n\r\n'));
  const misread = (await client(garbage.url).push('m', beat)) as { reason: string };
  t.regex(misread.reason, /^its answer is not valid HTTP \((?:HTTPParserError|HPE_\w+)\)$/);

  const unknown = (await client('http://nobody.invalid', { insecure: true }).push('m', beat)) as {
    reason: string;
  };
  t.regex(unknown.reason, /^bad address: the name cannot be resolved/);

  t.like(await client(`https://127.0.0.1:${port}`).push('m', beat), { kind: 'failed', exitStatus: 5 });
  t.like(await client(undefined).push('m', beat), { kind: 'failed', exitStatus: 4 });

  const given = new AbortController();
  const waiting = client(url).push('m', beat, given.signal);
  given.abort();
  t.like(await waiting, { kind: 'failed', exitStatus: 4 });
});

test('TLS is verified against the authority of caFile and the name of the URL', async (t) => {
  const dir = tempDir(t);
  const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')];
  execFileSync(
    'openssl',
    ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', key]
      .concat(['-out', cert, '-days', '2', '-subj', '/CN=status.test'])
      .concat(['-addext', 'subjectAltName=DNS:status.test']),
    { stdio: 'ignore' },
  );
  const server = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) }, (_, response) =>
    response.end('{"ok":true}'),
  );
  const connect = `127.0.0.1:${await listen(t, server)}`;
  const trusted = client('https://status.test', { connect, caFile: cert });
  t.like(await trusted.push('m', beat), { kind: 'delivered' });
  const stranger = await client('https://status.test', { connect }).push('m', beat);
  t.like(stranger, { kind: 'failed', exitStatus: 5 });
  const misnamed = await client('https://other.test', { connect, caFile: cert }).push('m', beat);
  t.like(misnamed, {
    reason: 'TLS: the certificate is for another name (ERR_TLS_CERT_ALTNAME_INVALID)',
    exitStatus: 5,
  });
});

test('[R27] the token is read from its file or the secrets store at each push, and a wider mode is refused', async (t) => {
  const dataDir = tempDir(t);
  const read: string[] = [];
  const places: TokenPlaces = {
    dataDir,
    monitors: { stored: { secret: 'watchdog/push#token' } },
    store: {
      read: async (path, property) => {
        read.push(`${path}#${property}`);
        return `fromstore${read.length}`;
      },
    },
  };
  const file = join(dataDir, 'secrets', 'push', 'm');
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, 'first\n', { mode: 0o600 });
  t.is(await readPushToken('m', places), 'first');
  writeFileSync(file, 'second\n');
  t.is(await readPushToken('m', places), 'second');
  t.is(await readPushToken('stored', places), 'fromstore1');
  t.is(await readPushToken('stored', places), 'fromstore2');

  const refused = async (name: string, pattern: RegExp) => {
    const error = await t.throwsAsync(readPushToken(name, places));
    t.true(isCoded(error, 'HF_UPTIME_TOKEN'));
    t.regex(error!.message, pattern);
  };
  chmodSync(file, 0o640);
  await refused('m', /0640/);
  chmodSync(file, 0o600);
  for (const wrong of ['https://kuma/api/push/abc', 'a/b', '..', 'a b']) {
    writeFileSync(file, wrong);
    await refused('m', /characters that no push token has/);
  }
  await refused('absent', /ENOENT/);
  await refused('../../etc/passwd', /not the name of a monitor/);
});

test('[R27] options name a base and an address, and nothing that holds a token or a password', (t) => {
  const accepted = (options: object) => uptimeOptions.safeParse(options).success;
  t.true(accepted({ url: 'http://uptime:3001', insecure: true }));
  t.true(accepted({ url: 'https://status.example.org/kuma' }));
  for (const url of [
    'uptime:3001',
    'ftp://uptime',
    'http://me:pass@uptime',
    `http://uptime/api/push/${TOKEN}`,
    'http://uptime?x=1',
  ]) {
    t.false(accepted({ url }), url);
  }
  t.deepEqual(parseAddress('10.0.0.8'), { host: '10.0.0.8' });
  t.deepEqual(parseAddress('10.0.0.8:443'), { host: '10.0.0.8', port: 443 });
  t.deepEqual(parseAddress('fd00::8'), { host: 'fd00::8' });
  t.deepEqual(parseAddress('[fd00::8]:443'), { host: 'fd00::8', port: 443 });
  for (const wrong of ['uptime', 'uptime:80', '10.0.0.8:0', '10.0.0.8:99999', '']) {
    t.is(parseAddress(wrong), undefined, wrong);
  }
});

test('[O15,R27] an answer that is cut inside the token shows no part of the token', async (t) => {
  const token = TOKEN.padEnd(256, 'x');
  for (const shown of [8, 100, 255]) {
    // A character of two bytes makes the text shorter than the bytes that were read.
    const whole = token.repeat(63);
    const filler = '\u00e9'.repeat(Math.floor((READ_LIMIT - whole.length - shown) / 2));
    const { url } = await monitor(t, (_, response) => {
      response.statusCode = 404;
      response.end(`${whole}${filler}${token}${'.'.repeat(50)}`);
    });
    const answer = await client(url, { token: async () => token }).push('m', beat);
    t.is(answer.kind, 'refused');
    t.false(JSON.stringify(answer).includes(token.slice(0, 6)), `${shown} characters were read`);
  }
});
