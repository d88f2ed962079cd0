/**
 * A process with a log and one actor, driven by lines: `open <by>` sends an event; it says `decided <by>`,
 * `durable <by>` and, from within the effect, `effect <by>`; `settle` waits until
 * all of it is durable and says `settled`.
 */
import { createInterface } from 'node:readline';
import { systemClock } from '../../src/core/kernel/clock.ts';
import { openBench } from './actors.ts';
import { door } from './door.ts';

const dataDir = process.argv[2] as string;
const say = (line: string) => process.stdout.write(`${line}\n`);
const bench = await openBench(
  dataDir,
  [{ ...door, input: () => ({ closeAfterMs: 86_400_000 }) }],
  [{ type: 'lamp.on', onRecovery: 'retry', handler: ({ by }: { by: string }) => void say(`effect ${by}`) }],
  systemClock,
);
bench.log.onFrozen((reason) => say(reason === undefined ? 'thawed' : `frozen ${reason}`));
createInterface({ input: process.stdin }).on('line', (line) => {
  const [verb, by] = line.split(' ');
  if (verb === 'settle') {
    void bench.settled().then(() => say('settled'));
    return;
  }
  const sent = bench.actors.deliver(`test.door/${by}`, { type: 'OPEN', by });
  say(`${sent.record ? 'decided' : 'waits'} ${by}`);
  void sent.durable().then(() => say(`durable ${by}`));
});
process.stdin.on('close', () => process.exit()); // whoever drove it is gone
say('ready');
