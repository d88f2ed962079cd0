import test from 'ava';
import { StateExchange } from '../../../../src/plugins/cluster/messages/state-exchange.ts';
import { silent } from '../../../support/cluster.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

interface Wish {
  /** How long it takes to send what the host has, milliseconds. */
  readonly passMs?: number;
  readonly others?: () => ReadonlySet<string> | undefined;
  /** Attempts to say something to the others that fail. */
  readonly failures?: number;
}

/** A host `cellar` whose states take their time. */
function host({ passMs = 0, others = () => new Set(['attic', 'barn']), failures = 0 }: Wish = {}) {
  const clock = new VirtualClock();
  const wanted: string[] = [];
  const told: (readonly string[])[] = [];
  const notes: string[] = [];
  let passes = 0;
  let left = failures;
  const attempt = async () => {
    left -= 1;
    if (left >= 0) throw new Error('cut off');
  };
  const exchange: StateExchange = new StateExchange({
    ...{ clock, logger: silent, host: 'cellar', others },
    actors: {
      send: async (isOver) => {
        passes += 1;
        await new Promise<void>((resolve) => clock.after(passMs, resolve));
        return !isOver();
      },
    },
    want: async (round) => {
      await attempt();
      wanted.push(round);
      exchange.wanted(round, 'cellar');
    },
    sent: async (rounds) => {
      await attempt();
      told.push(rounds);
    },
    onChange: () => void notes.push(exchange.isUnshared ? 'unshared' : 'shared'),
  });
  const round = () => wanted.at(-1) ?? '';
  return { exchange, clock, wanted, told, notes, round, passes: () => passes };
}

test('[C13] after missed messages a host counts as cut off until it has read what every other one has sent', async (t) => {
  const { exchange, clock, round } = host();
  t.false(exchange.isIncomplete);
  exchange.complete();
  t.true(exchange.isIncomplete);
  await clock.advance(1_000);
  exchange.answered([round()], 'attic');
  exchange.answered(['another'], 'barn');
  await clock.advance(60_000);
  t.true(exchange.isIncomplete, 'one of two has answered');
  exchange.answered(['another', round()], 'barn');
  await clock.advance(1_000);
  t.false(exchange.isIncomplete);
  t.is(exchange.missedMs, 62_000);
});

test('[C13] a host that has sent what this one does not understand has not answered', async (t) => {
  const { exchange, clock, round } = host({ others: () => new Set(['attic']) });
  exchange.notUnderstood('attic');
  exchange.complete();
  await clock.advance(1_000);
  exchange.notUnderstood('attic');
  exchange.answered([round()], 'attic');
  await clock.advance(1_000);
  t.true(exchange.isIncomplete);
  exchange.answered([round()], 'attic');
  await clock.advance(1_000);
  t.false(exchange.isIncomplete, 'all that it sent at the next attempt was understood');
});

test('[C13] a host that needs minutes to send what it has is waited for, and is asked for no more than one further pass', async (t) => {
  const { exchange: slow, clock, told, passes } = host({ passMs: 120_000 });
  const wishes = ['attic first', 'barn first', 'attic first', 'barn second', 'attic first', 'barn second'];
  slow.wanted('attic first', 'attic');
  for (const wish of wishes) {
    await clock.advance(10_000);
    slow.wanted(wish, wish.slice(0, wish.indexOf(' ')));
  }
  t.deepEqual([passes(), told], [1, []]);
  await clock.advance(600_000);
  t.deepEqual(told, [['attic first'], ['barn second']]);
  t.is(passes(), 2);
});

test('[C13] a host that has not answered is asked again, ever more seldom', async (t) => {
  const { exchange, clock, wanted } = host({ others: () => new Set(['attic']) });
  exchange.complete();
  await clock.advance(40_000);
  t.is(wanted.length, 4, 'at once, after 5 s, 10 s more, 20 s more');
  t.is(new Set(wanted).size, 1, 'it is the same wish: who is at work on it does not begin anew');
  await clock.advance(3_600_000);
  t.true(wanted.length < 70);
  t.true(exchange.isIncomplete);
});

test('[C13] a host that does not know yet who lives goes on waiting, and one that cannot say what it wants tries again', async (t) => {
  let others: ReadonlySet<string> | undefined;
  const { exchange, clock, wanted } = host({ others: () => others, failures: 3 });
  exchange.complete();
  await clock.advance(3_000);
  t.is(wanted.length, 1);
  t.true(exchange.isIncomplete);
  others = new Set();
  await clock.advance(1_000);
  t.false(exchange.isIncomplete, 'it is alone');
});

test('[C13] messages that are missed while states are exchanged make the exchange begin anew, on both sides', async (t) => {
  const { exchange, clock, round, wanted, told, passes } = host({ passMs: 10_000 });
  exchange.complete();
  await clock.advance(1_000);
  exchange.wanted('of the attic', 'attic');
  const first = round();
  exchange.complete();
  await clock.advance(4_000);
  for (const other of ['attic', 'barn']) exchange.answered([first], other);
  await clock.advance(1_000);
  t.true(exchange.isIncomplete, 'what they sent may be lost');
  t.not(round(), first);
  await clock.advance(60_000);
  t.deepEqual(told, [['of the attic']], 'behind a pass that was not broken');
  t.is(passes(), 2);
  t.is(new Set(wanted).size, 2);
});

test('[C13] a host stays one whose states are not shared until all of them were sent', async (t) => {
  const { exchange, clock, notes } = host({ passMs: 300_000 });
  exchange.share();
  await clock.advance(299_000);
  t.true(exchange.isUnshared);
  await clock.advance(2_000);
  t.false(exchange.isUnshared);
  t.deepEqual(notes, ['unshared', 'shared'], 'and says so, to be noted');
});

test('[C13] a host that stops sends no more', async (t) => {
  const { exchange, clock, told } = host({ passMs: 10_000 });
  exchange.wanted('of the attic', 'attic');
  await clock.advance(1_000);
  exchange.stop();
  await clock.advance(60_000);
  t.deepEqual(told, []);
});
