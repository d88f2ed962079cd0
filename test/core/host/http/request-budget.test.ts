import test from 'ava';
import { peerOf, RequestBudget } from '../../../../src/core/host/http/request-budget.ts';
import { createLogger } from '../../../../src/core/host/logging/logger.ts';
import { TokenBucket } from '../../../../src/core/host/token-bucket.ts';
import { raw, serve } from './support.ts';

const WRITE = 'POST /act HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';
const READ = 'GET /thing/1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
const statusOf = (answer: string) => Number(answer.split(' ')[1]);

test('[C14] a flood of writes of one peer ends in 429 with Retry-After; reads go on', async (t) => {
  const { port, metrics, lines } = await serve(t, { writeBudget: { burst: 5, perSecond: 0.001 } });
  const answers = await Promise.all(Array.from({ length: 50 }, () => raw(port, WRITE)));
  const taken = answers.filter((answer) => statusOf(answer) === 200);
  const refused = answers.filter((answer) => statusOf(answer) === 429);
  t.is(taken.length, 5);
  t.is(refused.length, 45);
  for (const answer of refused) {
    t.regex(answer, /\r\nretry-after: \d{3,4}\r\n/);
    t.regex(answer, /HF_HTTP_BUDGET/);
  }
  t.is(statusOf(await raw(port, READ)), 200);
  t.is(lines.filter(({ msg }) => msg === 'http.over_budget').length, 1);
  t.regex(await metrics.text(), /http_over_budget_total\{surface="test"\} 45/);
});

test('[C14] another peer is not held back by a flood', (t) => {
  const logger = createLogger({ destination: { write: () => {} } });
  const budget = new RequestBudget({ size: { burst: 1, perSecond: 0.01 }, logger, onRefused: () => {} });
  t.is(budget.spend('10.0.0.1'), undefined);
  t.is(budget.spend('10.0.0.1'), 100);
  t.is(budget.spend('10.0.0.2'), undefined);
});

test('[C14] another address of loopback is no other peer', async (t) => {
  const { port } = await serve(t, { writeBudget: { burst: 1, perSecond: 0.01 } });
  t.is(statusOf(await raw(port, WRITE)), 200);
  const { connect } = await import('node:net');
  const other = await new Promise<string>((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' }, () => socket.write(WRITE));
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.on('close', () => resolve(text));
  });
  t.is(statusOf(other), 429);
});

test('[C14] a read that records something is counted as a write', async (t) => {
  const { port } = await serve(t, { writeBudget: { burst: 1, perSecond: 0.01 } }, (http) => {
    const config = { writes: { types: 'any', because: 'a test' } } as const;
    http.get('/push', { config }, () => ({ ok: true }));
  });
  const push = READ.replace('/thing/1', '/push');
  // The pictures of a foreign page use up nothing.
  const picture = push.replace('\r\n', '\r\nSec-Fetch-Site: cross-site\r\n');
  const refused = await raw(port, picture);
  t.is(statusOf(refused), 403);
  t.regex(refused, /HF_HTTP_ORIGIN/);
  t.is(statusOf(await raw(port, push)), 200);
  t.is(statusOf(await raw(port, push)), 429);
});

test('[C14] where a surface records senders, users of this machine have budgets of their own', async (t) => {
  const { port, lines } = await serve(t, {
    recordsSenders: true,
    writeBudget: { burst: 1, perSecond: 0.01 },
  });
  t.is(statusOf(await raw(port, WRITE)), 200);
  // On a machine that is busy the kernel's answer may come too late for one of them, which then counts by its address.
  for (let n = 0; n < 5; n += 1) await raw(port, WRITE);
  const peers = lines.filter(({ msg }) => msg === 'http.over_budget').map(({ peer }) => peer);
  t.true(peers.includes(`uid ${process.getuid?.()}`), String(peers));
});

test('[C14] the usual budget lets hundreds of writes pass at once', async (t) => {
  const { url } = await serve(t);
  for (let n = 0; n < 300; n += 1) t.is((await fetch(`${url}/act`, { method: 'POST' })).status, 200);
});

test('[C14] peers: a network of 64 bits counts as one, mapped addresses as what they are', (t) => {
  t.is(peerOf('2001:db8:1:2:3::4', undefined), '2001:db8:1:2::/64');
  t.is(peerOf('2001:db8:1:2:ffff::9', undefined), '2001:db8:1:2::/64');
  t.not(peerOf('2001:db8:1:3::9', undefined), '2001:db8:1:2::/64');
  t.is(peerOf('::ffff:10.0.0.7', undefined), '10.0.0.7');
  t.is(peerOf('::1', undefined), 'loopback');
  t.is(peerOf('127.3.2.1', 'unknown'), 'loopback');
  t.is(peerOf('::ffff:127.0.0.9', undefined), 'loopback');
  t.is(peerOf('10.0.0.7', 'unknown'), '10.0.0.7');
  t.is(peerOf(undefined, undefined), 'unix');
  t.is(peerOf('127.0.0.1', 1000), 'uid 1000');
});

test('[C14] a peer that goes on is one line a minute, with how many were refused', (t) => {
  const lines: { refused: number }[] = [];
  const logger = createLogger({ destination: { write: (line) => void lines.push(JSON.parse(line)) } });
  let refused = 0;
  const budget = new RequestBudget({
    size: { burst: 1, perSecond: 0.001 },
    logger,
    onRefused() {
      refused += 1;
    },
  });
  for (let n = 0; n < 100; n += 1) budget.spend('a');
  budget.spend('b');
  budget.spend('b');
  t.is(refused, 100);
  t.deepEqual(
    lines.map((line) => line.refused),
    [1, 1],
  );
});

test('[C14] a bucket fills again at its rate, up to its burst', (t) => {
  const bucket = new TokenBucket({ burst: 2, perSecond: 4 }, 0);
  t.deepEqual([bucket.take(0), bucket.take(0), bucket.take(0)], [0, 0, 250]);
  t.deepEqual([bucket.take(125), bucket.take(250), bucket.take(250)], [125, 0, 250]);
  t.deepEqual([bucket.take(60_000), bucket.take(60_000), bucket.take(60_000)], [0, 0, 250]);
});
