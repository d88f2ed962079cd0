import test from 'ava';
import { elapsed, given } from '../../../src/core/host/testing/index.ts';
import { addressSets } from '../../../src/machines/router/address-sets.ts';

const one = { c_net_a_set6: ['fd00:1::/64'] };
const two = { ...one, c_net_b_set6: ['fd00:2::/64'] };
const addresses = (sets: Record<string, string[]>) => ({ type: 'ADDRESSES' as const, sets });
const populated = (sets: Record<string, string[]>, at: number) => ({ type: 'POPULATED' as const, at, sets });
const fill = (sets: object) => ({ type: 'router.populate_sets', params: { sets } as never });
const refused = (labels: Record<string, string>) => ({
  type: 'alerts.raise',
  params: {
    name: 'router.sets_refused',
    severity: 'critical',
    text: 'The packet filter did not take the address sets, so per-network policy does not cover new prefixes. Filling them is tried again within a minute.',
    labels,
  } as never,
});

test('[R21] sets follow within a minute of the first change, with all changes of that time', (t) => {
  given(addressSets)
    .when(addresses(one))
    .then({ state: 'behind', timers: { population: 45_000 }, context: { populated: {} } })
    .when(addresses(two))
    .then({ state: 'behind', timers: { population: 45_000 } })
    .when(elapsed('population'))
    .then({ state: 'populating', effects: [fill(two)] })
    .when(populated(two, 7))
    .then({
      state: 'current',
      context: { populated: two, since: { c_net_a_set6: 7, c_net_b_set6: 7 } },
      timers: {},
    });
  t.pass();
});

test('[R21] the state says since when each set holds what it holds', (t) => {
  const events = [addresses(one), elapsed('population'), populated(one, 7)];
  given(addressSets, { events })
    .when(addresses(one))
    .then({ state: 'current', ignored: true })
    .when(addresses(two))
    .then({ state: 'behind', context: { wanted: two, populated: one } })
    .when(elapsed('population'))
    .then({ state: 'populating', effects: [fill(two)] })
    .when(populated(two, 9))
    .then({ state: 'current', context: { since: { c_net_a_set6: 7, c_net_b_set6: 9 } } })
    .when(addresses({}))
    .then({ state: 'behind' })
    .when(elapsed('population'))
    .then({ state: 'populating', effects: [fill({})] })
    .when(populated({}, 11))
    .then({ state: 'current', context: { populated: {}, since: {} } });
  t.pass();
});

test('[R21] a change that is taken back in time fills nothing', (t) => {
  given(addressSets, { events: [addresses(one), elapsed('population'), populated(one, 7), addresses(two)] })
    .when(addresses(one))
    .then({ state: 'current', timers: {}, effects: [] });
  t.pass();
});

test('[R21] what changes while the sets are filled, or a filling that failed, has its own turn', (t) => {
  given(addressSets, { events: [addresses(one), elapsed('population'), addresses(two)] })
    .when(populated(one, 7))
    .then({ state: 'behind', timers: { population: 45_000 } })
    .when(elapsed('population'))
    .then({ state: 'populating', effects: [fill(two)] })
    .when({ type: 'effect.lost', effect: 'router.populate_sets' })
    .then({
      state: 'behind',
      effects: [refused({ state: 'firing', reason: 'it was interrupted' })],
      timers: { population: 45_000 },
      context: { populated: one },
    });
  t.pass();
});

test('[R21] sets that the kernel lost while the router was away are filled at once', (t) => {
  const read = (sets: Record<string, string[]>) => ({ type: 'READ' as const, sets });
  const events = [addresses(two), elapsed('population'), populated(two, 7)];
  given(addressSets, { events })
    .when(read(two))
    .then({ state: 'current', ignored: true })
    .when(read(one))
    .then({
      state: 'populating',
      effects: [fill(two)],
      context: { populated: one, since: { c_net_a_set6: 7 } },
    })
    .when(populated(two, 9))
    .then({ state: 'current', context: { since: { c_net_a_set6: 7, c_net_b_set6: 9 } } });
  given(addressSets, { events: [addresses({ c_net_a_set6: [] }), elapsed('population'), populated({}, 7)] })
    .when(read({}))
    .then({ state: 'behind', ignored: true });
  t.pass();
});

test('[R21] a packet filter that refuses is told once, and when it takes the sets again', (t) => {
  const failed = {
    type: 'effect.failed' as const,
    effect: 'router.populate_sets',
    message: 'Operation not permitted',
  };
  given(addressSets, { events: [addresses(one), elapsed('population')] })
    .when(failed)
    .then({
      state: 'behind',
      effects: [refused({ state: 'firing', reason: 'Operation not permitted' })],
      context: { refusal: 'Operation not permitted', populated: {} },
      timers: { population: 45_000 },
    })
    .when(elapsed('population'))
    .then({ state: 'populating', effects: [fill(one)] })
    .when(failed)
    .then({ state: 'behind', effects: [], timers: { population: 45_000 } })
    .when(elapsed('population'))
    .then({ state: 'populating', effects: [fill(one)] })
    .when(populated(one, 9))
    .then({
      state: 'current',
      effects: [refused({ state: 'resolved' })],
      context: { refusal: undefined, populated: one },
    });
  t.pass();
});
