import test from 'ava';
import fc from 'fast-check';
import { defineToken } from '../../../../src/core/contracts/token.ts';
import { PluginHost } from '../../../../src/core/host/plugin/host.ts';
import { runs } from '../../../support/runs.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { plugin, services } from './fixture.ts';

const DEADLINE_MS = 1000;

/** How a piece of work ends: after some time (perhaps past its deadline), well or with a throw; or never. */
const work = fc.record({
  afterMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 900 }), fc.integer({ min: 1001, max: 5000 })),
  ends: fc.oneof({ weight: 6, arbitrary: fc.constant('well') }, fc.constant('badly'), fc.constant('never')),
});
const subject = fc.record({
  start: work,
  stop: work,
  optional: fc.boolean(),
  /** Needs the token of the plugin so many places before it. */
  needs: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
});

interface Line {
  readonly what: 'start' | 'up' | 'stop';
  readonly plugin: number;
}

test('[C12] whatever starts, hangs, fails or comes late: what has started is stopped once, in reverse', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(subject, { minLength: 1, maxLength: 5 }),
      fc.integer({ min: 0, max: 8000 }),
      async (subjects, stopAfterMs) => {
        const clock = new VirtualClock(0);
        const lines: Line[] = [];
        const does = async ({ afterMs, ends }: { afterMs: number; ends: string }) => {
          if (ends === 'never') return new Promise<void>(() => {});
          if (afterMs > 0) await new Promise<void>((resolve) => void clock.after(afterMs, resolve));
          if (ends === 'badly') throw new Error('badly');
        };
        const tokens = subjects.map((_, index) => defineToken<number>(`t${index}`));
        const provider = ({ needs }: { needs: number | undefined }, index: number) =>
          needs === undefined || index - needs < 0 ? undefined : index - needs;
        const host = new PluginHost(
          subjects.map((one, index) => {
            const needed = provider(one, index);
            return plugin(
              `p${index}`,
              (ctx) => {
                ctx.provide(tokens[index]!, () => index);
                ctx.onStop(() => {
                  lines.push({ what: 'stop', plugin: index });
                  return does(one.stop);
                });
              },
              {
                provides: [tokens[index]!],
                requires: needed === undefined ? [] : [tokens[needed]!],
                onFailure: one.optional ? 'continue' : 'abort',
                async start() {
                  lines.push({ what: 'start', plugin: index });
                  await does(one.start);
                  lines.push({ what: 'up', plugin: index });
                },
              },
            );
          }),
          { clock, deadlineMs: DEADLINE_MS },
        );

        let started: boolean | undefined;
        let stopped = false;
        const starting = host.start(services(clock).given).then(
          () => (started = true),
          () => (started = false),
        );
        await clock.advance(stopAfterMs);
        const inTime = host.status().map(({ state }) => state);
        const stopping = host.stop('test').then(() => (stopped = true));
        await clock.advance(2 * subjects.length * DEADLINE_MS);
        await Promise.all([starting, stopping]);
        await clock.advance(20_000); // whoever came late has come by now

        const of = (what: Line['what']) =>
          lines.filter((line) => line.what === what).map((line) => line.plugin);
        const begun = of('start');
        t.true(stopped && started !== undefined);
        t.deepEqual(of('stop').toSorted(), of('up').toSorted(), 'what has started is stopped, once');
        for (const [index, state] of inTime.entries()) {
          const needed = provider(subjects[index]!, index);
          if (state === 'started' && needed !== undefined) t.not(inTime[needed], 'failed');
          if (needed !== undefined && begun.includes(index))
            t.true(begun.indexOf(needed) < begun.indexOf(index));
        }
        const running = inTime.flatMap((state, index) => (state === 'started' && started ? [index] : []));
        t.deepEqual(
          of('stop').filter((index) => running.includes(index)),
          running.toReversed(),
        );
        t.is(clock.armed, 0);
      },
    ),
    { numRuns: runs(150) },
  );
});
