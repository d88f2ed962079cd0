import test from 'ava';
import { isAhead, isRecent, isStale } from '../../src/machines/backup-age.ts';

const HOUR = 3_600_000;
const NOW = 1_767_234_600_000;
const TOLERANCE = 300_000;

test('[B10] a date is in the future only when it is ahead by more than five minutes', (t) => {
  t.false(isAhead(NOW + TOLERANCE, NOW));
  t.true(isAhead(NOW + TOLERANCE + 1, NOW));
  t.false(isAhead(0, NOW));
});

test('[B10] a date in the future is not recent, however near it is', (t) => {
  t.true(isRecent(NOW - HOUR, NOW, HOUR));
  t.false(isRecent(NOW - HOUR - 1, NOW, HOUR));
  t.true(isRecent(NOW + TOLERANCE, NOW, HOUR));
  t.false(isRecent(NOW + TOLERANCE + 1, NOW, HOUR));
  t.false(isRecent(Number.NaN, NOW, HOUR), 'a date that nobody could read');
});

test('[B10] backups are stale by the newest that is not dated in the future, or since they are expected', (t) => {
  const staleMs = 26 * HOUR;
  const since = NOW - 27 * HOUR;
  const ahead = { at: NOW + TOLERANCE + 1 };
  t.true(isStale({ good: [ahead], since, staleMs }, NOW));
  t.false(isStale({ good: [ahead, { at: NOW - 26 * HOUR }], since, staleMs }, NOW));
  t.true(isStale({ good: [ahead, { at: NOW - 26 * HOUR - 1 }], since, staleMs }, NOW));
  t.false(isStale({ good: [{ at: NOW + TOLERANCE }], since, staleMs }, NOW));
  t.true(isStale({ good: [], since, staleMs }, NOW));
  t.false(isStale({ good: [], since: NOW + HOUR, staleMs }, NOW), 'expected since the future');
  t.false(isStale({ good: [], staleMs }, NOW), 'not expected yet');
});
