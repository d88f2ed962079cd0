import test from 'ava';
import { type Call, type CalledKey, callViolations } from '../../support/hosts/call-rules.ts';

/** @param what `<key> <reads or writes> <host> at <ms> <done, lost or refused>`, and `<times>` where it was not done once */
function call(what: string, id: number): Call {
  const [key = '', route, host = '', , ms, end, times = end === 'refused' ? '0' : '1'] = what.split(' ');
  const sentAt = Number(ms);
  const answered = end === 'lost' ? {} : { answeredAt: sentAt + 10 };
  return {
    ...{ id, key, host, writes: route === 'writes', sentAt, ...answered },
    ...{ isDone: end === 'done', times: Number(times) },
  };
}

const KEYS: readonly CalledKey[] = [
  { alias: 'old', mintedAt: 0, revokedAt: 1_000 },
  { alias: 'new', mintedAt: 0 },
  { alias: 'few', mintedAt: 0, limit: 6 },
];

const found = (lines: readonly string[], stalledMs = 0) =>
  callViolations({
    ...{ calls: lines.map(call), keys: KEYS, hosts: 3 },
    stalledMs: () => stalledMs,
    serverTime: (at) => at,
  }).map((text) => text.replace(/:.*/, ''));
const times = (count: number, line: string) => Array.from({ length: count }, () => line);

test('[C13,G14,G16] calls that keep the rules have no violation', (t) => {
  const lines = [
    'old writes one at 500 done',
    'old writes two at 2900 lost',
    'old writes three at 3100 refused',
    'new writes one at 3200 done',
    // It is cut off: it serves what it knows, and nothing that writes.
    'old reads two at 9000 done',
    'new writes two at 9010 refused',
    ...times(9, 'few reads one at 40000 done'),
    ...times(9, 'few reads one at 80000 done'),
    // Which minute the first of these are of cannot be said.
    ...times(6, 'few reads two at 119000 done'),
    ...times(9, 'few reads two at 140000 done'),
  ];
  t.deepEqual(found(lines), []);
  t.deepEqual(found(['old writes one at 3400 done'], 500), [], 'the processor was away for half a second');
});

test('[C13,G14,G16] each rule of calls has calls that break it', (t) => {
  t.deepEqual(found(['new writes one at 0 done 2']), ['a call was done twice']);
  t.deepEqual(found(['new writes one at 0 lost 2']), ['a call was done twice']);
  t.deepEqual(found(['new writes one at 0 done 0']), ['a result of nothing']);
  t.deepEqual(found(['old writes one at 3100 done']), ['a revoked key']);
  t.deepEqual(found(['old writes one at 3100 lost']), ['a revoked key']);
  t.deepEqual(found(['old writes one at 3600 done'], 500), ['a revoked key']);
  t.deepEqual(found(['new writes one at 3100 done', 'old reads one at 3200 done']), ['a revoked key']);
  t.deepEqual(found(['new writes two at 3100 done', 'old reads one at 3200 done']), []);
  t.deepEqual(found(['new writes one at 2900 done', 'old reads one at 3200 done']), []);
  t.deepEqual(found(times(10, 'few reads one at 10000 done')), ['a limit']);
});
