import test from 'ava';
import { ALERT_RAISE } from '../../../src/core/contracts/alerts.ts';
import { defineActor } from '../../../src/core/kernel/actors/definition.ts';
import type { Clock } from '../../../src/core/kernel/clock.ts';
import { asEpochMs } from '../../../src/core/kernel/ids.ts';
import { monitor } from '../../../src/machines/uptime-monitor/monitor.ts';
import { openBench } from '../../support/actors.ts';
import { tempDir } from '../../support/temp.ts';

const MONITORS = 10_000;

/** Virtual time for very many timers: those of one moment lie together, and cancelled ones are left where they are. */
class CrowdedClock implements Clock {
  #now = 1_000_000;
  readonly #due = new Map<number, Set<() => void>>();

  now() {
    return asEpochMs(this.#now);
  }

  monotonic(): number {
    return this.#now;
  }

  after(delayMs: number, callback: () => void): () => void {
    const at = this.#now + Math.max(0, delayMs);
    const all = this.#due.get(at) ?? new Set();
    this.#due.set(at, all.add(callback));
    return () => all.delete(callback);
  }

  jump(ms: number): void {
    const end = this.#now + ms;
    for (const at of [...this.#due.keys()].filter((each) => each <= end).sort((one, other) => one - other)) {
      this.#now = Math.max(this.#now, at);
      for (const callback of this.#due.get(at) ?? []) callback();
      this.#due.delete(at);
    }
    this.#now = end;
  }
}

test('[O16] 10,000 monitors beat each minute; the thousand that stop are told, once each, and nobody else', async (t) => {
  const clock = new CrowdedClock();
  const fallen = new Map<string, number>();
  const actor = defineActor({
    type: 'uptime-monitor.monitor',
    machine: monitor,
    version: 1,
    input: (name) => ({
      name,
      title: name,
      slug: 'all',
      intervalMs: 60_000,
      graceMs: 60_000,
      remindMs: 3_600_000,
    }),
  });
  const raised = {
    type: ALERT_RAISE,
    onRecovery: 'retry',
    handler: ({ labels }: { labels: { monitor: string } }) => {
      fallen.set(labels.monitor, (fallen.get(labels.monitor) ?? 0) + 1);
    },
  } as const;
  const bench = await openBench(tempDir(t), [actor], [raised], clock);
  t.teardown(() => bench.close());
  const beat = async (from: number): Promise<void> => {
    for (let index = from; index < MONITORS; index += 1) {
      const sent = bench.actors.deliver(`uptime-monitor.monitor/m${index}`, {
        type: 'BEAT',
        at: clock.now(),
        up: true,
        msg: 'OK',
      });
      if (!sent.record) await sent.durable(); // the log has no room for the moment
    }
    await bench.settled();
  };
  await beat(0);
  clock.jump(59_000);
  await beat(1_000);
  // The first thousand are late by now, and down a minute later.
  clock.jump(2_500);
  await bench.settled();
  clock.jump(56_000);
  await beat(1_000);
  clock.jump(3_000);
  await bench.settled();
  t.is(fallen.size, 1_000);
  t.true([...fallen].every(([name, times]) => Number(name.slice(1)) < 1_000 && times === 1));
});
