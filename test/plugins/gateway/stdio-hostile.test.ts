import test from 'ava';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { BROKEN_OFF, isAlive, messagesOf, program, StdioRig, said, until } from './stdio-rig.ts';

test('[G1,G23] a program that writes a line without an end is ended', async (t) => {
  const rig = new StdioRig(t, program());
  const session = await rig.begin();
  const pid = await said(rig.call(session, 'pid'));
  await t.throwsAsync(rig.call(session, 'endless', {}, 2), BROKEN_OFF);
  await until(() => !isAlive(pid));
  t.like(rig.server.facts(), { lastEnd: { reason: 'a line of more than 8 MiB', wanted: false } });
});

test('[G23] what is no JSON-RPC goes to the log, and the answer behind it to its caller', async (t) => {
  const rig = new StdioRig(t, program());
  const session = await rig.begin();
  const garbage = [
    'Starting …',
    '{"jsonrpc":"1.0","id":1,"result":{}}',
    '{"jsonrpc":"2.0","id":{},"result":{}}',
    '{"jsonrpc":"2.0","id":1}',
    '{"jsonrpc":"2.0","method":7}',
    '[1]',
    'null',
    '{"jsonrpc":',
    '['.repeat(100_000),
    `{"jsonrpc":"2.0","id":9,"result":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
  ];
  for (const [index, text] of garbage.entries()) {
    const messages = await messagesOf(await rig.call(session, 'garbage', { text }, index));
    t.deepEqual(
      messages.map(({ id, result }) => [id, result?.content[0].text]),
      [[index, 'done']],
      text.slice(0, 80),
    );
  }
  const logged = rig.lines.map((line) => JSON.parse(line)).filter(({ stream }) => stream === 'stdout');
  t.is(logged.length, garbage.length);
  t.is(logged[0].line, 'Starting …');
});

test('[G23] several messages of one line are taken one by one', async (t) => {
  const rig = new StdioRig(t, program());
  const session = await rig.begin();
  const held = rig.call(session, 'hold', {}, 1);
  const own = (id: number) => ({
    jsonrpc: '2.0',
    id,
    result: { content: [{ type: 'text', text: `of ${id}` }] },
  });
  const both = rig.call(session, 'garbage', { text: JSON.stringify([own(1), own(2)]) }, 2);
  t.is(await said(held), 'of 1');
  t.is(await said(both), 'of 2');
});

test('[G23] answers to ids that nobody has sent reach nobody', async (t) => {
  for (const mode of ['sessions', 'stateless']) {
    const rig = new StdioRig(t, program(mode));
    const session = mode === 'sessions' ? await rig.begin() : undefined;
    const call = (name: string, id: number | string) =>
      session ? rig.call(session, name, {}, id) : rig.ask('tools/call', { name, arguments: {} }, { id });
    const messages = await messagesOf(await call('strangers', 5));
    t.deepEqual(
      messages.map(({ id, result }) => [id, result.content[0].text]),
      [[5, 'mine']],
      mode,
    );
  }
});

test('[G23] a caller that stops waiting for a program that never answers leaves nothing behind', async (t) => {
  const rig = new StdioRig(t, program());
  const session = await rig.begin();
  for (let id = 1; id <= 3; id += 1) {
    const leave = new AbortController();
    const waiting = rig.request(
      'POST',
      { id, method: 'tools/call', params: { name: 'silent', arguments: {} } },
      session,
      leave.signal,
    );
    leave.abort(new Error('left'));
    await t.throwsAsync(waiting, { message: 'left' });
  }
  t.is(typeof (await said(rig.call(session, 'pid', {}, 1))), 'number', 'the id is free again');
});

test('[G23] the shared process hears of each caller that has left', async (t) => {
  const rig = new StdioRig(t, program('stateless'));
  const call = (name: string, signal?: AbortSignal) =>
    rig.ask('tools/call', { name, arguments: {} }, signal ? { signal } : {});
  await call('pid');
  const leave = new AbortController();
  const waiting = call('silent', leave.signal);
  await call('pid'); // the silent call, our second, has been sent by now
  leave.abort(new Error('left'));
  await t.throwsAsync(waiting, { message: 'left' });
  t.deepEqual(await said(call('cancelled')), [2]);
});

test('[G1] a program that never answers initialize is ended after half a minute', async (t) => {
  const clock = new VirtualClock();
  const rig = new StdioRig(t, program('mute'), { clock });
  const beginning = t.throwsAsync(rig.begin(), BROKEN_OFF);
  await until(() => rig.lines.some((line) => line.includes('gateway.server_started')));
  await clock.advance(29_999);
  t.is(rig.server.facts().processes, 1);
  await clock.advance(1);
  await beginning;
  t.like(rig.server.facts(), { processes: 0, lastEnd: { reason: 'no answer to initialize', wanted: false } });
});

test('[G18] a program that does not say whether it speaks the stateless revision does not', async (t) => {
  const clock = new VirtualClock();
  const rig = new StdioRig(t, program('mute'), { clock });
  const asking = rig.ask('tools/list');
  await until(() => rig.lines.some((line) => line.includes('gateway.server_started')));
  await clock.advance(30_000);
  t.is((await asking).status, 400);
  await until(() => rig.server.facts().processes === 0);
  t.like(rig.server.facts(), { waitingMs: 0, lastEnd: { wanted: true } });
});

test('[G1] a stop does not wait for a program that never answers', async (t) => {
  const rig = new StdioRig(t, program('mute'), { clock: new VirtualClock() });
  const asking = rig.ask('tools/list');
  const beginning = t.throwsAsync(rig.begin(), BROKEN_OFF);
  await until(() => rig.lines.filter((line) => line.includes('gateway.server_started')).length === 2);
  await rig.server.close();
  t.is(rig.server.facts().processes, 0);
  t.is((await asking).status, 503);
  await beginning;
});

test('[G1] a client that leaves before its session has begun leaves no process behind', async (t) => {
  const rig = new StdioRig(t, program('mute'));
  const leave = new AbortController();
  const beginning = rig.request('POST', { id: 1, method: 'initialize' }, {}, leave.signal);
  await until(() => rig.server.facts().processes === 1);
  leave.abort(new Error('left'));
  await t.throwsAsync(beginning, { message: 'left' });
  await until(() => rig.server.facts().processes === 0);
  t.is(rig.server.facts().waitingMs, 0);
});

test('[G23] a program that reads nothing any more gets no more than it can hold', async (t) => {
  const rig = new StdioRig(t, program());
  const session = await rig.begin();
  await said(rig.call(session, 'deaf'));
  const text = 'x'.repeat(1024 * 1024);
  const statuses: number[] = [];
  for (let times = 0; times < 24; times += 1) {
    const note = { method: 'notifications/cancelled', params: { requestId: 99, reason: text } };
    statuses.push((await rig.request('POST', note, session)).status);
  }
  t.is(statuses[0], 202);
  t.is(statuses.at(-1), 503);
  const refused = await rig.call(session, 'pid', {}, 2);
  t.like(await refused.json(), { id: 2, error: { message: 'The server does not read what it is sent.' } });
});

test('[G23] a client that does not read its stream is cut off, and its session goes on', async (t) => {
  const rig = new StdioRig(t, program());
  const session = await rig.begin();
  const unread = await rig.call(session, 'flood', {}, 1, { progressToken: 1 });
  t.is(typeof (await said(rig.call(session, 'pid', {}, 2))), 'number'); // behind all of the flood
  await t.throwsAsync(
    unread.bytes().then(({ length }) => length),
    BROKEN_OFF,
  );
});
