import { chmodSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { standaloneCommands } from '../../../src/main.ts';
import { freshnessOf } from '../../../src/plugins/alerts/freshness.ts';
import { call } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';
import { status, webhook } from '../../support/webhook.ts';

const HOUR = 3_600_000;

/** A host with a backup of that age, and a command line that looks at it. */
function host(t: ExecutionContext, ageHours: number, url?: string) {
  const cwd = tempDir(t);
  const file = join(cwd, 'last-success');
  const at = (Date.now() - ageHours * HOUR) / 1_000;
  writeFileSync(file, '');
  utimesSync(file, at, at);
  const address = join(cwd, 'url');
  const token = join(cwd, 'token');
  writeFileSync(address, `${url}\n`, { mode: 0o600 });
  writeFileSync(token, 'token-canary-4711\n', { mode: 0o600 });
  const who = url === undefined ? [] : ['--url-file', address, '--token-file', token];
  return {
    cwd,
    file,
    address,
    run: (...more: string[]) =>
      call(['freshness', '--file', file, ...who, ...more], { cwd, standaloneCommands }),
  };
}

test('[O18] a success within 36 h is fresh, nobody is told, and neither configuration nor instance is needed', async (t) => {
  const receiver = await webhook(t);
  const { run } = host(t, 35.9, receiver.url);
  const { code, out } = await run();
  t.is(code, 0);
  t.regex(out, /^fresh: last-success succeeded 35\.9 h ago/);
  t.is(receiver.received.length, 0);
});

test('[O18,O28] an older one is told with priority 1 and ends with 1, at each run, in both formats', async (t) => {
  const receiver = await webhook(t);
  const { run } = host(t, 36.5, receiver.url);
  const { code, out } = await run();
  t.is(code, 1);
  t.regex(out, /^stale: No success of last-success for more than 36 h: the last was 36\.5 h ago/);
  const [first] = receiver.received;
  t.like(first?.headers, {
    title: 'NAS backup STALE',
    priority: '5',
    authorization: 'Bearer token-canary-4711',
  });
  const here = hostname();
  t.regex(
    String(first?.body),
    new RegExp(
      `more than 36 h.*\nWhere: ${here}\nSince: 20.* UTC, for 30 min\nCause: the file /.*/last-success is what.*\nFirst: On ${here}, look.*\nMore: docs/alerts.md#nas-backup-stale$`,
    ),
  );
  t.is((await run('--format', 'json', '--json')).code, 1);
  t.like(JSON.parse(String(receiver.received[1]?.body)), {
    title: 'NAS backup STALE',
    state: 'firing',
    value: 36.5,
    threshold: 'above 36h',
    window: '36h',
    labels: { priority: '1', severity: 'critical' },
    runbook: 'docs/alerts.md#nas-backup-stale',
  });
  t.is((await run('--max-age', '37h')).code, 0);
});

test('[O18] what cannot be seen is a failure and never fresh', async (t) => {
  const receiver = await webhook(t);
  const { cwd, run } = host(t, 1, receiver.url);
  const missing = await run('--file', join(cwd, 'never'));
  t.deepEqual([missing.code, receiver.received.length], [1, 1]);
  t.regex(missing.out, /there is no such file/);
  symlinkSync(join(cwd, 'gone'), join(cwd, 'link'));
  t.is((await run('--file', join(cwd, 'link'))).code, 1);
  t.is((await run('--file', join(cwd, 'last-success', 'below'))).code, 1);
});

test('[O18] a time of the future is a clock that is wrong, not a success; a little ahead is one', (t) => {
  const now = 1_767_225_600_000;
  const fresh = (age: number) => freshnessOf({ modifiedAt: now - age }, 'backup', 36 * HOUR, now).fresh;
  t.true(fresh(-60_000));
  t.false(fresh(-HOUR));
  t.true(fresh(36 * HOUR), 'more than 36 h, and not 36');
  t.false(fresh(36 * HOUR + 1));
  t.regex(freshnessOf({ modifiedAt: now + HOUR }, 'backup', 36 * HOUR, now).text, /in the future/);
});

test('[O18,O28] a receiver that fails is tried again under the same key, and that nobody was told is said without its address', async (t) => {
  const receiver = await webhook(t);
  const { run } = host(t, 40, receiver.url);
  let posts = 0;
  receiver.behave((answer, request) => {
    posts += 1;
    status(posts < 3 ? 500 : 200)(answer, request);
  });
  t.is((await run()).code, 1);
  const keys = receiver.received.map(({ headers }) => headers['idempotency-key']);
  t.is(keys.length, 3);
  t.is(new Set(keys).size, 1);

  receiver.behave((answer, { path, headers }) => {
    answer.writeHead(302, { location: '/proxy' }).end(`${path} ${headers.authorization}`);
  });
  const untold = await run('--json');
  t.is(untold.code, 1);
  t.regex(untold.err, /HF_ALERTS_NOT_DELIVERED/);
  t.regex(untold.err, /redirect is not followed/);
  t.notRegex(untold.out + untold.err, /canary/);
  t.like(JSON.parse(untold.out), { fresh: false, notified: false, answer: { status: 302 } });
});

test('[O28] an answer that is cut inside a secret shows no part of the secret', async (t) => {
  const receiver = await webhook(t);
  const { run } = host(t, 40, receiver.url);
  for (const shown of [2, 8, 16]) {
    // 2,048 bytes of an answer are read.
    receiver.behave((answer, { headers }) => {
      const token = String(headers.authorization).slice('Bearer '.length);
      answer.end(`${'.'.repeat(2_048 - shown)}${token} and more`);
    });
    const { answer } = JSON.parse((await run('--json')).out);
    t.regex(answer.body, /^\.+$/, `${shown} characters of the token were read`);
  }
});

test('[O18,O28] --test tells whatever the file says, and wrong usage is told as such', async (t) => {
  const receiver = await webhook(t);
  const { run, address } = host(t, 1, receiver.url);
  const { code, out } = await run('--test');
  t.is(code, 0);
  t.regex(out, /notified http:\/\/127\.0\.0\.1:\d+ \(200\)/);
  t.regex(String(receiver.received[0]?.headers.title), /this is a test/);
  for (const wrong of [
    ['--max-age', 'soon'],
    ['--format', 'xml'],
    ['--url', receiver.url],
    ['--file', ''],
  ]) {
    t.is((await run(...wrong)).code, 2, wrong.join(' '));
  }
  chmodSync(address, 0o644);
  const open = await run('--test');
  t.is(open.code, 2);
  t.regex(open.err, /HF_CONFIG_SECRET_MODE/);
  const alone = host(t, 40);
  const nobody = await alone.run();
  t.is(nobody.code, 1);
  t.regex(nobody.out, /nobody is notified/);
});
