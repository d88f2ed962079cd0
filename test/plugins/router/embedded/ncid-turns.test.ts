import test from 'ava';
import type { Reply } from '../../../../src/core/host/http/pending-replies.ts';
import { NcidTurns } from '../../../../src/plugins/router/embedded/ncid-turns.ts';

const saved = (ncid: string): Reply => ({ status: 200, body: { errors: [], ncid } });
const refused: Reply = { status: 400, body: { errors: ['no'], code: 'HF_ROUTER_APPLY_FAILED' } };

/** Posts of one ncid, in the order in which they came. */
function line(turns: NcidTurns, count: number) {
  return Array.from({ length: count }, () => {
    const answer = Promise.withResolvers<Reply>();
    const post = { answer, turn: turns.take('n0', answer.promise), began: false };
    void post.turn.then(() => {
      post.began = true;
    });
    return post;
  });
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

test('[R3] once a post has won, those behind it have lost to it, all at once', async (t) => {
  const [first, ...others] = line(new NcidTurns(64), 4);
  t.is(await first?.turn, undefined);
  await settle();
  t.true(others.every(({ began }) => !began));
  first?.answer.resolve(saved('n1'));
  t.deepEqual(await Promise.all(others.map(({ turn }) => turn)), ['n1', 'n1', 'n1']);
});

test('[R3] a post that is refused, or that nobody waits for any more, leaves its turn to the next', async (t) => {
  const [first, second, third, fourth] = line(new NcidTurns(64), 4);
  first?.answer.resolve(refused);
  t.is(await second?.turn, undefined);
  await settle();
  t.false(third?.began);
  second?.answer.reject(new Error('gave up'));
  t.is(await third?.turn, undefined);
  third?.answer.resolve(saved('n1'));
  t.is(await fourth?.turn, 'n1');
});

test('a post that gives up while it waits lets nobody pass', async (t) => {
  const [first, second, third] = line(new NcidTurns(64), 3);
  second?.answer.reject(new Error('gave up'));
  await settle();
  t.false(third?.began);
  first?.answer.resolve(saved('n1'));
  t.is(await third?.turn, 'n1');
});

test('another ncid does not wait, and neither does what comes after the line has ended', async (t) => {
  const turns = new NcidTurns(64);
  const [first] = line(turns, 1);
  t.is(await turns.take('n9', new Promise(() => {})), undefined);
  first?.answer.resolve(saved('n1'));
  await settle();
  t.is(await turns.take('n0', new Promise(() => {})), undefined, 'the store is asked, and has n1');
});

test('so many wait and no more: further ones take no turn', async (t) => {
  const turns = new NcidTurns(2);
  const [, , third, fourth, fifth] = line(turns, 5);
  await settle();
  t.deepEqual([third?.began, fourth?.began, fifth?.began], [false, true, true]);
});
