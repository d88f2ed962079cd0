import test from 'ava';
import fc from 'fast-check';
import { given } from '../../../src/core/host/testing/index.ts';
import { memoryBackups } from '../../../src/machines/memory/backups.ts';
import {
  type BackupSettings,
  backupFindings,
  expiredBackups,
  type ListedBackup,
} from '../../../src/machines/memory/backups-rules.ts';
import { runs } from '../../support/runs.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const T = 1_767_234_600_000;
const input: BackupSettings = {
  kind: 'snapshot',
  keepNewest: 2,
  staleMs: 26 * HOUR,
  missed: 'catch-up',
  retryMs: 600_000,
};
const requested = (at = T) => ({ type: 'REQUESTED', at, by: 'schedule' }) as const;
const backup = (name: string, at = T, size = 1_000) => ({ name, at, size, count: 3 });
const made = (name: string, at = T, size = 1_000) =>
  ({ type: 'MADE', backup: backup(name, at, size) }) as const;
const listed = (at: number, ...files: ListedBackup[]) => ({ type: 'LISTED', at, listed: files }) as const;
const file = (name: string, at = T, size = 1_000): ListedBackup => ({ name, at, size });
const pruned = { type: 'PRUNED', deleted: [] } as const;
const whole = (name: string, at = T) => [requested(at), made(name, at), listed(at, file(name, at)), pruned];
const alert = (name: string, severity: string, text: string, reason?: string) => ({
  type: 'alerts.raise',
  params: { name, severity, text, labels: { kind: 'snapshot', ...(reason && { reason }) } },
});
/** The answer of a run that nobody requested goes nowhere. */
const replied = (status: number, body: object) => ({
  type: 'http.reply',
  params: { status, body: body as never },
});
const failedReply = (reason: string) => replied(503, { code: 'HF_MEMORY_BACKUP', reason });
const asks = (type: string, more: object = {}) => ({ type, params: { kind: 'snapshot', ...more } as never });

test('[B1, B4] a snapshot is made, found in the list, kept with what it holds, and older ones are pruned', (t) => {
  given(memoryBackups, { input, events: [...whole('a', T - 2 * DAY), ...whole('b', T - DAY)] })
    .when(requested())
    .then({ state: 'creating', effects: [asks('memory.backup')] })
    .when(made('c'))
    .then({ state: 'listing', effects: [asks('memory.list_backups')] })
    .when(listed(T, file('b', T - DAY), file('a', T - 2 * DAY), file('c')))
    .then({
      state: 'pruning',
      effects: [asks('memory.prune_backups', { names: ['a'] })],
      context: { good: [backup('c'), backup('b', T - DAY)] as never },
    })
    .when(pruned)
    .then({
      state: { resting: 'done' },
      effects: [replied(200, { ...backup('c'), deleted: ['a'] })],
    });
  t.pass();
});

test('[B1] there are never two at once: who asks meanwhile is told so, the schedule is passed over', (t) => {
  const events = [requested()];
  given(memoryBackups, { input, events })
    .when({ type: 'REQUESTED', at: T + 1, by: 'command', request: 'r2' })
    .then({
      state: 'creating',
      effects: [
        {
          type: 'http.reply',
          params: {
            to: 'r2',
            status: 409,
            body: { code: 'HF_MEMORY_BACKUP', reason: `one is under way since ${T} (schedule)` },
          },
        },
      ],
    })
    .when(requested(T + 2))
    .then({
      state: 'creating',
      effects: [
        {
          type: 'http.reply',
          params: {
            status: 409,
            body: { code: 'HF_MEMORY_BACKUP', reason: `one is under way since ${T} (schedule)` },
          },
        },
      ],
    });
  t.pass();
});

test('[B4] snapshots of somebody else are kept as they were first seen, until they are gone or made here', (t) => {
  const seen = (name: string, size: number) => ({ name, at: T, size, seenAt: T + 1 });
  given(memoryBackups, { input, events: [{ type: 'SEEN', backups: [seen('x', 1), seen('y', 2)] }] })
    .when({ type: 'SEEN', backups: [seen('x', 9), seen('z', 3), seen('b', 4)] })
    .then({
      state: { resting: 'idle' },
      context: { seen: [seen('z', 3), seen('b', 4), seen('x', 1), seen('y', 2)] as never, good: [] },
    })
    .when(requested())
    .then({ state: 'creating', effects: [asks('memory.backup')] })
    .when(made('b'))
    .then({ state: 'listing', effects: [asks('memory.list_backups')] })
    .when(listed(T, file('b'), file('x', T - DAY), file('z', T - 2 * DAY)))
    .then({
      state: 'pruning',
      effects: [asks('memory.prune_backups', { names: ['z'] })],
      context: { seen: [seen('z', 3), seen('x', 1)] as never },
    })
    .when(pruned)
    .then({
      state: { resting: 'done' },
      effects: [replied(200, { ...backup('b'), deleted: ['z'] })],
      context: { seen: [seen('x', 1)] as never, good: [backup('b')] as never },
    });
  t.pass();
});

test('[B8] a failure is told and tried again twice; one that was asked for answers at once', (t) => {
  const failed = {
    type: 'effect.failed',
    effect: 'memory.backup',
    message: 'HF_MEMORY_REFUSED: 507',
  } as const;
  const told = alert(
    'memory.backup_failed',
    'critical',
    'A snapshot of the memory store could not be made.',
    failed.message,
  );
  given(memoryBackups, { input, events: [requested()] })
    .when(failed)
    .then({
      state: { resting: 'failed' },
      effects: [failedReply(failed.message), told],
      timers: { retry: 600_000 },
    })
    .when({ type: 'elapsed', timer: 'retry' })
    .then({ state: 'creating', effects: [asks('memory.backup')] })
    .when({ type: 'effect.lost', effect: 'memory.backup' })
    .then({
      state: { resting: 'failed' },
      effects: [
        failedReply('it was interrupted'),
        { ...told, params: { ...told.params, labels: { kind: 'snapshot', reason: 'it was interrupted' } } },
      ],
    })
    .when({ type: 'elapsed', timer: 'retry' })
    .then({ state: 'creating', effects: [asks('memory.backup')] })
    .when(failed)
    .then({ state: { resting: 'failed' }, effects: [failedReply(failed.message), told] })
    .when({ type: 'elapsed', timer: 'retry' })
    .then({ state: { resting: 'failed' }, ignored: true });
  given(memoryBackups, { input, events: [{ type: 'REQUESTED', at: T, by: 'command', request: 'r' }] })
    .when(failed)
    .then({
      state: { resting: 'failed' },
      effects: [
        {
          type: 'http.reply',
          params: { to: 'r', status: 503, body: { code: 'HF_MEMORY_BACKUP', reason: failed.message } },
        },
        told,
      ],
    });
  t.pass();
});

test('[B4,B8] one that is not in the list afterwards, or is empty, is a failure', (t) => {
  for (const found of [[], [file('a', T, 0)]]) {
    given(memoryBackups, { input, events: [requested(), made('a')] })
      .when(listed(T, ...found))
      .then({
        state: { resting: 'failed' },
        effects: [
          failedReply('a is not in the list, or is empty'),
          alert(
            'memory.backup_failed',
            'critical',
            'A snapshot of the memory store could not be made.',
            'a is not in the list, or is empty',
          ),
        ],
        context: { good: [] },
      });
  }
  t.pass();
});

test('[B8] old ones that cannot be deleted are told, and the new one is good', (t) => {
  given(memoryBackups, { input, events: whole('a').slice(0, 3) })
    .when({ type: 'effect.failed', effect: 'memory.prune_backups', message: 'no' })
    .then({
      state: { resting: 'done' },
      effects: [
        alert(
          'memory.prune_failed',
          'warning',
          'A new snapshot of the memory store was made, but old ones could not be deleted.',
          'no',
        ),
        replied(200, { ...backup('a'), deleted: [], fault: 'no' }),
      ],
      context: { good: [backup('a')] as never },
    });
  t.pass();
});

test('[B8] a run that was missed is made up for, or told, as the option says', (t) => {
  const watched = { type: 'CHECK', at: T + DAY + HOUR, due: T + DAY } as const;
  given(memoryBackups, { input, events: whole('a') })
    .when(watched)
    .then({ state: 'creating', effects: [asks('memory.backup')] });
  const reporting = { ...input, missed: 'report' as const };
  given(memoryBackups, { input: reporting, events: whole('a') })
    .when({ ...watched, at: T + DAY + 60_000 })
    .then({ state: { resting: 'done' } })
    .when(watched)
    .then({
      state: { resting: 'done' },
      effects: [
        alert('memory.backup_missed', 'warning', 'A snapshot of the memory store was due and was not made.'),
      ],
    })
    .when(watched)
    .then({ state: { resting: 'done' } });
  t.pass();
});

test('[B8,B10] stale is none good for 26 h: told once, and again after the next good one', (t) => {
  const stale = alert(
    'memory.backup_stale',
    'critical',
    'The memory store has had no good snapshot for 26 h.',
  );
  const watch = (at: number) => ({ type: 'CHECK', at, due: T }) as const;
  given(memoryBackups, { input, events: whole('a') })
    .when(watch(T + 26 * HOUR))
    .then({ state: { resting: 'done' } })
    .when(watch(T + 26 * HOUR + 1))
    .then({ state: { resting: 'done' }, effects: [stale], context: { isStale: true } })
    .when(watch(T + 30 * HOUR))
    .then({ state: { resting: 'done' }, context: { isStale: true } });
  given(memoryBackups, {
    input,
    events: [...whole('a'), watch(T + 27 * HOUR), ...whole('b', T + 28 * HOUR)],
  })
    .initially({
      state: { resting: 'done' },
      effects: [replied(200, { ...backup('b', T + 28 * HOUR), deleted: [] })],
      context: { isStale: false },
    })
    .when(watch(T + 55 * HOUR))
    .then({ state: { resting: 'done' }, effects: [stale] });
  t.pass();
});

test('[B8] a backup that is dated in the future does not count as recent', (t) => {
  const stale = alert(
    'memory.backup_stale',
    'critical',
    'The memory store has had no good snapshot for 26 h.',
  );
  const later = T + 27 * HOUR;
  const ahead = [requested(T), made('a', T + 1_000 * HOUR), listed(T, file('a', T + 1_000 * HOUR)), pruned];
  given(memoryBackups, { input: { ...input, missed: 'report' }, events: ahead })
    .when({ type: 'CHECK', at: later, due: T })
    .then({ state: { resting: 'done' }, effects: [stale], context: { isStale: true } });
  const good = [backup('a', T + 301_000), backup('b', T)];
  t.deepEqual(backupFindings({ good, listed: 2, vanished: [], now: T }), [
    'dated in the future, and so not counted as recent: a',
  ]);
});

test('[B10] a size far from the usual is told: the configured one, or the one before', (t) => {
  const far = (size: number, usual: number) =>
    alert(
      'memory.backup_size',
      'warning',
      `A snapshot of the memory store has ${size} bytes, while ${usual} are usual.`,
    );
  given(memoryBackups, {
    input: { ...input, usualBytes: 225_000 },
    events: [requested(), made('a', T, 50_000)],
  })
    .when(listed(T, file('a', T, 50_000)))
    .then({ state: 'pruning', effects: [far(50_000, 225_000), asks('memory.prune_backups', { names: [] })] });
  const before = [requested(), made('a', T, 8_000_000), listed(T, file('a')), pruned];
  given(memoryBackups, { input, events: [...before, requested(T + 1), made('b', T + 1, 1_000)] })
    .when(listed(T + 1, file('b', T + 1)))
    .then({
      state: 'pruning',
      effects: [far(1_000, 8_000_000), asks('memory.prune_backups', { names: [] })],
    });
  t.pass();
});

test('[B8] a clock that was ahead does not hide a missed run', (t) => {
  given(memoryBackups, { input, events: whole('a', T + 10 * DAY) })
    .when({ type: 'CHECK', at: T + HOUR, due: T })
    .then({ state: 'creating', effects: [asks('memory.backup')] });
  t.pass();
});

test('[B1] retention never takes the newest or the last good one, and nothing within it', (t) => {
  const files = fc.uniqueArray(
    fc.record({ name: fc.string({ minLength: 1 }), at: fc.integer({ min: 0, max: T }), size: fc.nat() }),
    {
      selector: ({ name }) => name,
      maxLength: 30,
    },
  );
  fc.assert(
    fc.property(
      files,
      fc.integer({ min: 1, max: 20 }),
      fc.boolean(),
      fc.infiniteStream(fc.boolean()),
      (all, keep, byDays, flips) => {
        const good = all.filter(() => flips.next().value).map(({ name, at, size }) => ({ name, at, size }));
        const policy = byDays ? { keepDays: keep } : { keepNewest: keep };
        const expired = expiredBackups(all, good, policy, T);
        const sorted = [...all].sort((a, b) => b.at - a.at);
        const lastGoodAt = Math.max(-1, ...good.map(({ at }) => at));
        if (lastGoodAt >= 0 && good.every(({ name }) => expired.includes(name))) return false;
        if (all.length > 0 && expired.length === all.length) return false;
        return expired.every((name) => {
          const one = all.find((file) => file.name === name)!;
          const younger = sorted.filter(({ at }) => at >= one.at).length - 1;
          return byDays
            ? one.at < T - keep * DAY
            : younger >= keep || sorted.filter(({ at }) => at === one.at).length > 1;
        });
      },
    ),
    { numRuns: runs(300) },
  );
  t.pass();
});

test('[B7, B8] what is wrong with the deployment in the cluster is told once, and again when more is', (t) => {
  const looked = (...findings: string[]) => ({ type: 'DEPLOYMENT_CHECKED', findings }) as const;
  const told = (text: string) => alert('memory.deployment', 'critical', text);
  given(memoryBackups, { input, events: [] })
    .when(looked())
    .then({ state: { resting: 'idle' }, effects: [] })
    .when(looked('it lacks BUCKET'))
    .then({
      state: { resting: 'idle' },
      effects: [told('Backups of the memory store fail or are about to: it lacks BUCKET.')],
    })
    .when(looked('it lacks BUCKET'))
    .then({ state: { resting: 'idle' }, effects: [] })
    .when(looked('it lacks BUCKET', 'no good backup'))
    .then({
      state: { resting: 'idle' },
      effects: [told('Backups of the memory store fail or are about to: it lacks BUCKET; no good backup.')],
    })
    .when(looked())
    .then({ state: { resting: 'idle' }, effects: [], context: { deployment: [] as never } });
  t.pass();
});

test('[B7] a good snapshot that somebody else deleted is noted; one that was pruned here is not', (t) => {
  given(memoryBackups, {
    input,
    events: [...whole('a', T - 2 * DAY), requested(T - DAY), made('b', T - DAY)],
  })
    .when(listed(T - DAY, file('b', T - DAY)))
    .then({
      state: 'pruning',
      effects: [asks('memory.prune_backups', { names: [] })],
      context: { vanished: ['a'] as never, listed: 1 },
    });
  const three = [file('c'), file('b', T - DAY), file('a', T - 2 * DAY)];
  given(memoryBackups, {
    input,
    events: [
      ...whole('a', T - 2 * DAY),
      requested(T - DAY),
      made('b', T - DAY),
      listed(T - DAY, ...three.slice(1)),
      pruned,
      requested(),
      made('c'),
      listed(T, ...three),
      pruned,
      requested(T + DAY),
      made('d', T + DAY),
    ],
  })
    .when(listed(T + DAY, file('d', T + DAY), ...three.slice(0, 2)))
    .then({
      state: 'pruning',
      effects: [asks('memory.prune_backups', { names: ['b'] })],
      context: { vanished: [] as never, listed: 3 },
    });
  t.pass();
});

test('[B7] doctor finds backups that do not grow, are of another version, or are the only good one', (t) => {
  const found = (good: object[], more: object = {}, version?: string) =>
    backupFindings(
      { keepNewest: 3, listed: good.length, vanished: [], now: T, good: good as never, ...more },
      version,
    );
  const one = (name: string, count: number, size: number) => ({
    name,
    at: T,
    size,
    count,
    version: '1.19.0',
  });
  t.deepEqual(found([one('b', 200, 2_000), one('a', 100, 1_000)], {}, '1.19.4'), []);
  t.regex(
    found([one('b', 200, 1_000), one('a', 100, 1_000)]).join(),
    /do not grow: 100 points in 1000 bytes/,
  );
  t.regex(found([one('b', 1, 1)], { listed: 3 }).join(), /only b of the 3 kept backups is recorded as good/);
  t.regex(found([one('b', 1, 1)], {}, '1.20.0').join(), /b is of version 1.19.0, and the store has 1.20.0/);
  t.regex(found([], { vanished: ['a'] }).join(), /somebody else deleted the good backup a/);
  t.deepEqual(found([], {}, '1.20.0'), []);
});

test('[B8] copies that are kept by days are not counted as well: the fifteenth of a day each stays', (t) => {
  const daily: BackupSettings = { ...input, kind: 'volume', keepDays: 30 };
  const { keepNewest: _, ...byDays } = daily;
  const names = Array.from({ length: 15 }, (_, day) => [`copy-${day}`, T - (15 - day) * DAY] as const);
  const files = names.map(([name, at]) => file(name, at));
  given(memoryBackups, { input: byDays, events: [requested(), made('copy-15')] })
    .when(listed(T, ...files, file('copy-15')))
    .then({
      state: 'pruning',
      effects: [{ type: 'memory.prune_backups', params: { kind: 'volume', names: [] } as never }],
    });
  t.pass();
});
