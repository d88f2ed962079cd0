import test from 'ava';
import type { Cluster } from '../../../../src/core/contracts/cluster.ts';
import type { Json } from '../../../../src/core/kernel/json.ts';
import { type Takeover, untoldAfter } from '../../../../src/machines/cluster/singleton.ts';
import {
  TakeoverNotices,
  type TakeoverNoticesOptions,
} from '../../../../src/plugins/cluster/takeover/notices.ts';
import { silent } from '../../../support/cluster.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

type Answerer = Parameters<Cluster['onAsked']>[1];

const takeover = (host: string): Takeover => ({ host, seq: 80, hash: 'a', by: 'barn', token: 'i:7' });

/** A host that has taken the work `doors` over; what it asks is answered by `attic`, which another host is. */
function barn(untold: readonly Takeover[]) {
  const clock = new VirtualClock();
  const asked: Json[] = [];
  const noted: string[] = [];
  let answerer: Answerer = () => undefined;
  const is = { untold, present: new Set<string>(), canNote: true, endedAt: [] as unknown[] };
  const options: TakeoverNoticesOptions = {
    services: { clock, logger: silent, log: { lastSeq: () => 9, whenDurable: async () => {} } },
    host: 'barn',
    recorded: () => ({ untold: is.untold }),
    records: {
      singleton: (_, event) => {
        if (event.type !== 'TAKEOVER_NOTED') return 0;
        is.untold = untoldAfter(is.untold, event) ?? [];
        is.endedAt.push(event.seq);
        return 0;
      },
    },
    asks: {
      ask: async (_, body) => {
        asked.push(body);
        const answer = is.canNote ? [{ singleton: 'doors', token: 'i:7' }] : undefined;
        return { answers: answer ? [{ host: 'attic', answer }] : [], unanswered: [] };
      },
      onAsked: (_, answer) => {
        answerer = answer;
      },
    },
    present: () => is.present,
    outbox: {
      takenOver: async ({ singleton, seq }) => {
        if (is.canNote) noted.push(`${singleton}:${seq}`);
        return is.canNote;
      },
    },
  };
  const takeovers = new TakeoverNotices(['doors'], options);
  takeovers.start();
  return { takeovers, clock, asked, noted, is, hear: async (body: Json) => await answerer(body, 'attic') };
}

test('[C13] a host is told that it was taken over when it is there, until it has noted it', async (t) => {
  const { clock, asked, is, takeovers } = barn([takeover('attic'), takeover('cellar')]);
  await clock.advance(20_000);
  t.deepEqual(asked, [], 'nobody is there');
  is.present = new Set(['attic']);
  is.canNote = false;
  await clock.advance(20_000);
  t.true(asked.length > 1);
  t.deepEqual(asked[0], [{ singleton: 'doors', ...takeover('attic') }]);
  is.canNote = true;
  await clock.advance(20_000);
  t.deepEqual(is.untold, [takeover('cellar')]);
  t.deepEqual(is.endedAt, [80], 'the record of the note says which records count');
  const { length } = asked;
  await clock.advance(20_000);
  t.is(asked.length, length);
  takeovers.stop();
  t.is(clock.armed, 0);
});

test('[C13] a host notes what it is told of itself, and what it knows of itself from the host before', async (t) => {
  const { clock, asked, noted, is, hear } = barn([takeover('barn')]);
  const told = [
    { singleton: 'bells', ...takeover('barn') },
    { singleton: 'doors', ...takeover('shed') },
  ];
  is.canNote = false;
  t.is(await hear(told), undefined);
  is.canNote = true;
  t.deepEqual(await hear(told), [{ singleton: 'bells', token: 'i:7' }]);
  t.deepEqual(noted, ['bells:80']);
  await clock.advance(20_000);
  t.deepEqual([noted, is.untold, asked], [['bells:80', 'doors:80'], [], []]);
});
