import { openStreams, possible, startPrograms } from './gateway/streams.ts';
import { type Benchmark, type Result, withFolder } from './measure.ts';

const FEW = 1_000;
const MANY = 10_000;

async function measure(dir: string): Promise<Result[]> {
  const { stop, ...parts } = await startPrograms(dir);
  try {
    const few = await openStreams(parts, FEW);
    const many = await openStreams(parts, possible(MANY));
    const what = `${many.count.toLocaleString('en')} open streams`;
    const kib = (bytes: number) => `${(bytes / 1024).toFixed(0)} KiB`;
    const ms = (value: number) => `${value.toFixed(1)} ms`;
    return [
      {
        what: `${what}, memory of each`,
        ours: kib(many.bytesEach),
        baseline: `${kib(few.bytesEach)} with ${FEW.toLocaleString('en')}`,
        ratio: many.bytesEach / few.bytesEach,
        target: '< 128 KiB',
        met: many.bytesEach < 128 * 1024,
      },
      {
        what: `${what}, until all have heard one event`,
        ours: ms(many.heardMs),
        baseline: `${ms(few.heardMs)} with ${FEW.toLocaleString('en')}`,
        ratio: many.heardMs / few.heardMs,
      },
      {
        what: `${what}, p50 of 8 clients' calls meanwhile`,
        ours: ms(many.meanwhile.p50),
        baseline: `${ms(few.meanwhile.p50)} with ${FEW.toLocaleString('en')}`,
        ratio: many.meanwhile.p50 / few.meanwhile.p50,
        target: 'none fails',
        met: many.meanwhile.failed === 0,
      },
      {
        what: `${what}, until their upstream hears of the end of all`,
        ours: ms(many.closedMs),
        baseline: `${ms(few.closedMs)} with ${FEW.toLocaleString('en')}`,
        ratio: many.closedMs / few.closedMs,
      },
    ];
  } finally {
    stop();
  }
}

export const streamsBenchmark: Benchmark = {
  name: 'streams',
  summary:
    'ten thousand event streams at once through the gateway (fewer where a process may not have the sockets)',
  onRequest: true,
  run: () => withFolder(measure),
};
