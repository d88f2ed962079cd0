import { request } from 'node:http';
import test from 'ava';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { admission, initialize, Rig } from './rig.ts';

const rejected = async (rig: Rig) =>
  (await rig.records()).flatMap(({ event }) =>
    event.type === 'REJECTED' ? [event as { count?: number; rule?: string }] : [],
  );

/** A POST without a key from an address of this machine. @returns its status */
function strangerFrom(url: string, localAddress: string, path = '/mcp/'): Promise<number> {
  const { hostname: host, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const options = { host, port, path, method: 'POST', localAddress, agent: false };
    const call = request({ ...options, headers: { 'content-type': 'application/json' } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    call.on('error', reject);
    call.end('{}');
  });
}

test('[C14] a stranger with an address for each request makes no more records than with one', async (t) => {
  const rig = await Rig.start(t, { routes: [] });
  const addresses = Array.from({ length: 150 }, (_, index) => `127.0.1.${index + 1}`);
  const statuses = await Promise.all(addresses.map((address) => strangerFrom(rig.url, address)));
  t.deepEqual([...new Set(statuses)], [401]);
  const records = await rejected(rig);
  t.is(
    records.reduce((sum, { count = 1 }) => sum + count, 0),
    150,
  );
  t.true(records.length < 100, `${records.length} records`);
});

test('[C14] a flood of strangers ends in 429 without a record, and a key beside it goes on', async (t) => {
  const routes = [credentialFree({ name: 'wiki', url: 'http://127.0.0.1:9/mcp' })];
  const rig = await Rig.start(t, { routes, strangerBudget: { burst: 10, perSecond: 0.001 } });
  const key = await rig.mint({ servers: ['wiki'] });
  const guesses = Array.from({ length: 30 }, (_, index) =>
    rig.post('/wiki/mcp', initialize, index % 2 === 0 ? admission(`sk-guess-${index}`) : {}),
  );
  const answers = await Promise.all(guesses);
  const refused = answers.filter(({ status }) => status === 429);
  t.is(refused.length, 20);
  t.is(answers.filter(({ status }) => status === 401).length, 10);
  for (const { headers } of refused) t.regex(headers.get('retry-after') ?? '', /^\d+$/);
  // Another path, another address of loopback: the same peer.
  const rest = await rig.rest('GET', '/key/info', { authorization: 'Bearer sk-guess' });
  t.is(rest.status, 429);
  t.regex(rest.headers.get('retry-after') ?? '', /^\d+$/);
  t.is(await strangerFrom(rig.url, '127.0.2.1'), 429);
  const recorded = (await rejected(rig)).reduce((sum, { count = 1 }) => sum + count, 0);
  t.is(recorded, 10);
  const known = await rig.post('/wiki/mcp', initialize, admission(key));
  t.false([401, 429].includes(known.status), String(known.status));
  t.is(rig.lines.filter((line) => line.includes('http.over_budget')).length, 1);
});

test('[C14,G9] a key where it may leak is reported also beside a flood', async (t) => {
  const rig = await Rig.start(t, { routes: [], strangerBudget: { burst: 1, perSecond: 0.001 } });
  await Promise.all(Array.from({ length: 5 }, () => rig.post('/mcp/', initialize)));
  const leaked = await rig.post('/mcp/', initialize, { authorization: `Bearer ${rig.masterKey}` });
  t.is(leaked.status, 401);
  t.like((await rejected(rig)).at(-1), { rule: 'master_key_presented' });
});
