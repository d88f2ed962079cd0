import test from 'ava';
import fc from 'fast-check';
import {
  type HostRecord,
  type HostRecords,
  mergedRecords,
} from '../../../../src/core/host/history/merged.ts';
import type { LogRecord } from '../../../../src/core/kernel/log/record.ts';
import { doorRecord } from '../../../support/plain-log.ts';
import { runs } from '../../../support/runs.ts';

async function merged(hosts: readonly HostRecords[]): Promise<HostRecord[]> {
  const story: HostRecord[] = [];
  for await (const one of mergedRecords(hosts)) story.push(one);
  return story;
}

const told = (story: readonly HostRecord[]) =>
  story.map(({ host, record }) => `${host}${record.seq}`).join(' ');

test('[C13] hosts whose clocks are minutes apart are told in the order in which it happened', async (t) => {
  const at = (seq: number, ms: number, more: Partial<LogRecord> = {}) => doorRecord(seq, { at: ms, ...more });
  const hosts: HostRecords[] = [
    { host: 'a', clockBehindMs: 0, records: [at(1, 1_000), at(2, 3_000)] },
    // Ten minutes ahead.
    { host: 'b', clockBehindMs: -600_000, records: [at(1, 602_000), at(2, 604_000)] },
  ];
  t.is(told(await merged(hosts)), 'a1 b1 a2 b2');
  t.is(told(await merged(hosts.toReversed())), 'a1 b1 a2 b2');
  // Without the offsets, what led to a record stands before it all the same.
  const caused: HostRecords[] = [
    { host: 'a', clockBehindMs: 0, records: [at(1, 1_000, { origin: { host: 'b', seq: 2 } }), at(2, 3_000)] },
    { host: 'b', clockBehindMs: 0, records: [at(1, 602_000), at(2, 604_000), at(3, 605_000)] },
  ];
  t.is(told(await merged(caused)), 'b1 b2 a1 a2 b3');
});

test('[C13] whatever hosts recorded, each keeps its order and no effect stands before its cause on another host', async (t) => {
  const step = fc.record({
    host: fc.nat(2),
    passedMs: fc.nat(50),
    causedBy: fc.option(fc.nat(), { nil: undefined }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 80 }),
      fc.array(fc.integer({ min: -300_000, max: 300_000 }), { minLength: 3, maxLength: 3 }),
      async (steps, clocks) => {
        const names = ['a', 'b', 'c'];
        const logs: LogRecord[][] = [[], [], []];
        const happened: HostRecord[] = [];
        let now = 1_000_000;
        for (const { host, passedMs, causedBy } of steps) {
          now += passedMs;
          const cause = happened[causedBy === undefined ? -1 : causedBy % Math.max(1, happened.length)];
          const name = names[host] ?? '';
          const origin = cause && cause.host !== name && { host: cause.host, seq: cause.record.seq };
          const log = logs[host] ?? [];
          const record = doorRecord(log.length + 1, {
            at: now + (clocks[host] ?? 0),
            ...(origin && { origin }),
          });
          log.push(record);
          happened.push({ host: name, record });
        }
        // The offsets are known to some milliseconds only.
        const hosts = names.map((host, index) => ({
          host,
          clockBehindMs: -(clocks[index] ?? 0) + index * 7,
          records: logs[index] ?? [],
        }));
        const story = await merged(hosts);
        t.deepEqual(await merged(hosts.toReversed()), story);
        t.is(story.length, happened.length);
        const seen = new Map<string, number>();
        for (const { host, record } of story) {
          t.is(record.seq, (seen.get(host) ?? 0) + 1);
          seen.set(host, record.seq);
          const { origin } = record;
          if (origin?.seq !== undefined) t.true((seen.get(origin.host) ?? 0) >= origin.seq);
        }
      },
    ),
    { numRuns: runs(100) },
  );
});
