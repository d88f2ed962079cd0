import test from 'ava';
import type { LogRecord } from '../../../src/core/kernel/log/record.ts';
import { hostActor, singletonActor } from '../../../src/plugins/cluster/actors.ts';
import { words } from '../../../src/plugins/cluster/words.ts';

/** One of each event, with what `holdfast log` says of it; `!` marks a problem. */
const said = {
  'cluster.singleton': [
    [{ type: 'STARTED', at: 1 }, 'this host starts as a follower'],
    [{ type: 'FOLLOWED', at: 1, holder: 'h1' }, 'runs on h1'],
    [{ type: 'TAKING', at: 1, token: 'i:1' }, 'this host takes it'],
    [{ type: 'TAKING', at: 1, token: 'i:1', from: 'h1' }, 'this host takes it over from h1'],
    [{ type: 'BEGUN', at: 1, host: 'h2' }, 'runs here'],
    [{ type: 'BEGUN', at: 1, host: 'h2', fencedAt: 8 }, 'runs here, from record 8 of the host before'],
    [
      {
        ...{ type: 'TOOK_OVER', at: 1, by: 4 },
        takeovers: [
          { host: 'h1', seq: 8, hash: 'a', by: 'h2', token: 'i:7' },
          { host: 'h3', seq: 9, hash: 'b', by: 'h2', token: 'i:7' },
        ],
      },
      'what counts ends with record 8 of h1, record 9 of h3',
    ],
    [
      { type: 'TAKEOVER_NOTED', at: 1, host: 'h1', token: 'i:7' },
      'h1 has noted: its records since the takeover do not count for this work',
    ],
    [
      { type: 'TAKEOVER_NOTED', at: 1, host: 'h1', token: 'i:7', seq: 43 },
      'h1 has noted: its records after 43 do not count for this work',
    ],
    [{ type: 'BEGIN_FAILED', at: 1, reason: 'no disk' }, '!could not begin here: no disk'],
    [{ type: 'ENDING', at: 1, reason: 'the lease ran out' }, 'ends here: the lease ran out'],
    [{ type: 'ENDED', at: 1 }, 'has ended here'],
    [{ type: 'MOVE_REQUESTED', at: 1, by: 'ann', to: 'h2' }, 'ann moves it to h2'],
    [{ type: 'MOVE_REQUESTED', at: 1, by: 'ann', reason: 'update' }, 'ann moves it to another host: update'],
    [{ type: 'BRANCH_EXPORTED', at: 1, by: 'ann', number: 2 }, 'ann exported the orphaned branch 2'],
    [
      { type: 'ORPHANED', at: 1, from: 5, to: 9, count: 3 },
      '!3 records, 5 to 9, do not count: another host had it',
    ],
  ],
  'cluster.host': [
    [{ type: 'HEARD', at: 1, version: '1.0.0' }, 'is heard, version 1.0.0'],
    [{ type: 'LOST', at: 1, silentMs: 10_400 }, '!has been silent for 10 s'],
    [{ type: 'LEFT', at: 1 }, 'stops'],
    [{ type: 'FORGOTTEN', at: 1, by: 'ops' }, 'is not expected any more, says ops'],
    [{ type: 'DRAINED', at: 1, by: 'ann', reason: 'a new disk' }, 'ann drained it: a new disk'],
    [{ type: 'UNDRAINED', at: 1, by: 'ann' }, 'ann lets it hold work again'],
    [
      { type: 'ADOPTED', at: 1, by: 'ann', records: 9 },
      'ann had this machine go on as it, from 9 records of its stream',
    ],
    [
      { type: 'VERSION_REFUSED', at: 1, version: '2', ownVersion: '1' },
      '!runs version 2, this host 1: this host takes nothing over',
    ],
    [
      { type: 'STREAM_REPLACED', at: 1, to: '3', reason: 'it was gone' },
      '!its stream was replaced by incarnation 3, filled from its log: it was gone',
    ],
    [
      { type: 'MIRROR_BEHIND', at: 1, records: 12_000, ms: 61_000 },
      '!12000 records are not on its stream yet, the oldest for 61 s',
    ],
    [{ type: 'MIRROR_CAUGHT_UP', at: 1 }, 'its stream has every record'],
    [{ type: 'ISOLATED', at: 1, silentMs: 2_000 }, '!reaches no quorum of the NATS servers'],
    [
      { type: 'ISOLATED', at: 1, silentMs: 6_000, isBehind: true },
      '!has not read yet what the other hosts said',
    ],
    [{ type: 'CONNECTED', at: 1 }, 'reaches the NATS servers again'],
  ],
} as const;

for (const { type, machine } of [singletonActor, hostActor]) {
  test(`[C13,C6] each event of ${type} is said in words, and problems are marked`, (t) => {
    const describe = words[type];
    const rows = said[type as keyof typeof said];
    for (const [event, text] of rows) {
      const record: LogRecord = {
        ...{ seq: 1, at: 0, actor: `${type}/x`, machine: machine.id, version: 1, correlation: 'c' },
        ...{ event, from: 'a', to: { value: 'b' }, effects: [] },
      };
      const isProblem = describe?.problem?.is(record) ?? false;
      t.is(`${isProblem ? '!' : ''}${describe?.(record)}`, text);
    }
    const missing = machine.events.filter((name) => !rows.some(([event]) => event.type === name));
    t.deepEqual(missing, []);
  });
}
