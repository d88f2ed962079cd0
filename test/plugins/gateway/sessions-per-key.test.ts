import test from 'ava';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { greeter } from '../../support/greeter-plugin.ts';
import { admission, Rig, rpc } from './rig.ts';
import { program } from './stdio-rig.ts';

const initialize = rpc('initialize', {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'test', version: '1' },
});

test('[G1] one key has at most 250 sessions of a server in this process: its own oldest give way, and those of others stay', async (t) => {
  const rig = await Rig.start(t, { routes: [] }, undefined, undefined, [greeter()]);
  const [ann, bob] = [await rig.mint({ servers: ['greeter'] }), await rig.mint({ servers: ['greeter'] })];
  const begin = async (key: string) => {
    const answer = await rig.post('/greeter/mcp', initialize, admission(key));
    await answer.text();
    return {
      status: answer.status,
      headers: { ...admission(key), 'mcp-session-id': answer.headers.get('mcp-session-id') ?? '' },
    };
  };
  const list = async (headers: Readonly<Record<string, string>>) => {
    const answer = await rig.post('/greeter/mcp', rpc('tools/list'), headers);
    await answer.text();
    return answer.status;
  };
  const quiet = await begin(bob);
  const first = await begin(ann);
  const sessions: Awaited<ReturnType<typeof begin>>[] = [];
  for (let group = 0; group < 10; group += 1)
    sessions.push(...(await Promise.all(Array.from({ length: 25 }, () => begin(ann)))));
  t.true(sessions.every(({ status }) => status === 200));
  t.is(await list(quiet.headers), 200, 'it took none of the sessions of another key');
  t.is(await list(first.headers), 404, 'it took its own');

  // Sessions that are in use do not give way: the key is told so, and the other one goes on.
  const leaving = new AbortController();
  t.teardown(() => leaving.abort());
  for (const { headers } of sessions) {
    const stream = await fetch(`${rig.url}/greeter/mcp`, {
      headers: { ...headers, accept: 'text/event-stream' },
      signal: leaving.signal,
    });
    if (stream.status !== 200) t.fail(`a stream was answered with ${stream.status}`);
  }
  const refused = await rig.post('/greeter/mcp', initialize, admission(ann));
  t.is(refused.status, 429);
  t.is(refused.headers.get('retry-after'), '10');
  t.regex(((await refused.json()) as { error: { message: string } }).error.message, /250 sessions in use/);
  t.is((await begin(bob)).status, 200);
});

test('[G1] one key has three quarters of the processes of a program, or as many as the route says, and another one gets the rest', async (t) => {
  const routes = [
    credentialFree({ name: 'shared', command: { ...program(), maxProcesses: 2 } }),
    credentialFree({ name: 'generous', command: { ...program(), maxProcesses: 2, maxProcessesPerKey: 2 } }),
  ];
  const rig = await Rig.start(t, { routes });
  const servers = ['shared', 'generous'];
  const [ann, bob] = [admission(await rig.mint({ servers })), admission(await rig.mint({ servers }))];
  t.is((await rig.post('/shared/mcp', initialize, ann)).status, 200);
  const refused = await rig.post('/shared/mcp', initialize, ann);
  t.is(refused.status, 429);
  t.is(refused.headers.get('retry-after'), '10');
  t.like(await refused.json(), {
    error: { message: 'The server runs in as many processes for this key as it may (1).' },
  });
  t.is((await rig.post('/shared/mcp', initialize, bob)).status, 200);
  t.is((await rig.post('/shared/mcp', initialize, bob)).status, 503, 'now all are taken');
  for (const expected of [200, 200, 503])
    t.is((await rig.post('/generous/mcp', initialize, ann)).status, expected);
});
