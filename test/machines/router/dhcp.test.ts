import test from 'ava';
import fc from 'fast-check';
import { elapsed, given } from '../../../src/core/host/testing/index.ts';
import { dhcpService } from '../../../src/machines/router/dhcp.ts';

const rewritten = (...legs: string[]) => ({ type: 'REWRITTEN' as const, legs });
const restarted = {
  type: 'RESTARTED' as const,
  at: 5,
  files: ['a_v6.conf', 'own.conf'],
  adopted: ['own.conf'],
};
const restart = (...legs: string[]) => ({ type: 'router.restart_dhcp', params: { legs } });
const quiet = { waiting: 'quiet' };

test('[R23] a burst of rewrites ends in one restart, 22 s after its last', (t) => {
  given(dhcpService)
    .when(rewritten('eth1.10'))
    .then({ state: quiet, timers: { quiet: 22_000, longest: 120_000 } })
    .when(rewritten('eth1.20', 'eth1.10'))
    .then({ state: quiet, effects: [], timers: { quiet: 22_000, longest: 120_000 } })
    .when(elapsed('quiet'))
    .then({ state: 'restarting', effects: [restart('eth1.10', 'eth1.20')], timers: {} })
    .when(restarted)
    .then({
      state: 'idle',
      context: {
        restarts: 1,
        waiting: [],
        serving: [],
        last: { at: 5, files: restarted.files, adopted: ['own.conf'] },
      },
    });
  t.pass();
});

test('[R23] a burst without end puts the restart off for two minutes at most', (t) => {
  given(dhcpService, { events: [rewritten('eth1.10'), rewritten('eth1.10')] })
    .when(elapsed('longest'))
    .then({ state: 'restarting', effects: [restart('eth1.10')] });
  t.pass();
});

test('[R23] what is rewritten while the service restarts has a restart of its own', (t) => {
  given(dhcpService, { events: [rewritten('eth1.10'), elapsed('quiet'), rewritten('eth1.20')] })
    .when(restarted)
    .then({ state: quiet, context: { waiting: ['eth1.20'], serving: [] } })
    .when(elapsed('quiet'))
    .then({ state: 'restarting', effects: [restart('eth1.20')] });
  t.pass();
});

test('[R23] a restart that fails is told and tried again, for the same legs', (t) => {
  given(dhcpService, { events: [rewritten('eth1.10'), elapsed('quiet')] })
    .when({ type: 'effect.failed', effect: 'router.restart_dhcp', message: 'no such unit' })
    .then({
      state: 'failed',
      timers: { retry: 10_000 },
      effects: [
        {
          type: 'alerts.raise',
          params: {
            name: 'router.dhcp_restart_failed',
            severity: 'warning',
            text: 'The DHCP service could not be restarted after its files were rewritten. The restart is tried again.',
            labels: { legs: 'eth1.10', reason: 'no such unit' },
          },
        },
      ],
    })
    .when(rewritten('eth1.20'))
    .then({ state: 'failed' })
    .when(elapsed('retry'))
    .then({ state: 'restarting', effects: [restart('eth1.10', 'eth1.20')] });
  t.pass();
});

test('[R23] however rewrites fall, every leg is read by a restart after its rewrite', (t) => {
  const leg = fc.constantFrom('a', 'b', 'c');
  fc.assert(
    fc.property(fc.array(fc.oneof(leg, fc.constantFrom('quiet', 'done')), { maxLength: 40 }), (steps) => {
      const owed = new Set<string>();
      let state: 'idle' | 'waiting' | 'restarting' = 'idle';
      let story = given(dhcpService);
      for (const step of [...steps, 'done', 'quiet', 'done']) {
        if (step === 'quiet') {
          if (state !== 'waiting') continue;
          state = 'restarting';
          story = story.when(elapsed('quiet')).then({ state: 'restarting', effects: [restart(...owed)] });
          owed.clear();
        } else if (step === 'done') {
          if (state !== 'restarting') continue;
          state = owed.size > 0 ? 'waiting' : 'idle';
          story = story.when(restarted).then({ state: state === 'idle' ? 'idle' : quiet });
        } else {
          owed.add(step);
          if (state === 'idle') state = 'waiting';
          story = story.when(rewritten(step)).then({ state: state === 'waiting' ? quiet : 'restarting' });
        }
      }
      return owed.size === 0;
    }),
  );
  t.pass();
});
