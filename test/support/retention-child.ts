/**
 * A process that keeps a log within small limits and kills itself at one step. Arguments: data folder, epoch
 * milliseconds, step.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { RETENTION, retentionOf } from '../../src/core/host/retention/records.ts';
import type { EventLog } from '../../src/core/kernel/log/event-log.ts';
import { KEPT, openKept } from './retention.ts';
import { VirtualClock } from './virtual-clock.ts';

const [dir = '', now = '', step = ''] = process.argv.slice(2);
const die = () => process.kill(process.pid, 'SIGKILL');
const folder = join(dir, 'archive');

/** The log, which ends the process when a step is reached. */
const deadly = (log: EventLog): EventLog =>
  new Proxy(log, {
    get(target, name) {
      if (name === 'prune' && step === 'before the deletion') return die;
      if (name === 'prune' && step === 'in the deletion')
        return (...args: Parameters<EventLog['prune']>) => {
          let commits = 0;
          target.onDurable(() => {
            commits += 1;
            if (commits === 3) die();
          });
          return target.prune(...args);
        };
      if (name === 'whenDurable' && step === 'before the record') return die;
      if (name === 'whenDurable' && step === 'before an archive is deleted')
        return async (seq: number) => {
          await target.whenDurable(seq);
          if (retentionOf(kept.bench.actors.snapshot(RETENTION)).deleted) die();
        };
      const value = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });

const kept = await openKept(dir, KEPT(folder), new VirtualClock(Number(now)), { wrap: deadly });
if (step === 'while the archive is written') {
  const watch = setInterval(() => {
    try {
      if (readdirSync(folder).some((name) => name.endsWith('.part'))) die();
    } catch {
      // The folder is not there yet.
    }
  }, 1);
  watch.unref();
}
await kept.retention.run();
console.log('ended');
await kept.close();
