import test from 'ava';
import { HostsAhead, type ReadPlace } from '../../../../src/plugins/cluster/messages/hosts-ahead.ts';

const [OLD, NEW] = ['2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z'];
const at = (seq: number, incarnation = OLD): ReadPlace => ({ incarnation, seq });

function host(own: ReadPlace) {
  const here = { now: 0, own };
  const ahead = new HostsAhead(
    () => here.now,
    () => here.own,
  );
  return { here, ahead };
}

test('[C13,G14] a host that lacks for a second what another one has read is behind, until it has read it', (t) => {
  const { here, ahead } = host(at(5));
  ahead.hear('two', at(5));
  ahead.hear('three', at(7));
  here.now = 900;
  t.is(ahead.behindMs, undefined, 'it may be on its way');
  here.now = 1_100;
  ahead.hear('three', at(9));
  t.is(ahead.behindMs, 1_100);
  here.own = at(7);
  t.is(ahead.behindMs, undefined, 'what it heard of first');
  ahead.hear('three', at(9));
  here.now = 2_200;
  t.is(ahead.behindMs, 1_100);
  here.own = at(9);
  t.is(ahead.behindMs, undefined);
});

test('[C13,G14] a host that reads on all the time is not behind, however far others are at each moment', (t) => {
  const { here, ahead } = host(at(0));
  for (let beat = 1; beat < 20; beat += 1) {
    here.now = beat * 500;
    ahead.hear('two', at(beat * 10));
    t.is(ahead.behindMs, undefined);
    here.own = at(beat * 10 - 1);
    here.now += 100;
    t.is(ahead.behindMs, undefined);
    here.own = at(beat * 10);
  }
});

test('[C13,G14] of another stream the newer one counts, and who is not heard any more counts for nothing', (t) => {
  const { here, ahead } = host(at(50));
  ahead.hear('two', at(3, NEW));
  here.now = 1_100;
  t.is(ahead.behindMs, 1_100);
  // It heard of it by mistake, or that host went back.
  ahead.hear('two', at(50));
  t.is(ahead.behindMs, undefined);
  ahead.hear('two', at(60));
  here.own = at(1, NEW);
  here.now = 2_500;
  t.is(ahead.behindMs, undefined, 'this host has left that stream');
  ahead.hear('two', at(2, NEW));
  here.now = 5_000;
  t.is(ahead.behindMs, 2_500);
  here.now = 13_000;
  t.is(ahead.behindMs, undefined);
});
