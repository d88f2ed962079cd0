import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type Benchmark, median, type Result, withFolder } from './measure.ts';

/** Its `plugins.config.ts` is what a command would load that needs the plugins. */
const ROOT = fileURLToPath(new URL('..', import.meta.url));
const BINARY = fileURLToPath(new URL('../bin/holdfast.js', import.meta.url));
const LOG = fileURLToPath(new URL('../test/fixtures/logs/0.2.0/transaction.jsonl.gz', import.meta.url));
const ROUNDS = 5;
/** Writes what the process has used, milliseconds of processor time, as its last line. */
const REPORT =
  'data:text/javascript,process.on("exit",()=>{const{user,system}=process.cpuUsage();console.error((user+system)/1e3)})';

/** @param target the most, milliseconds; none for commands that load every plugin */
const COMMANDS: readonly { readonly argv: readonly string[]; readonly target?: number }[] = [
  { argv: ['--version'], target: 150 },
  { argv: ['log', 'list'], target: 150 },
  { argv: ['log', 'show', '5'], target: 150 },
  { argv: ['status'], target: 150 },
  { argv: ['replay', 'verify'] },
  { argv: ['--help'] },
];

function processorMs(argv: readonly string[]): number {
  const { stderr } = spawnSync(process.execPath, ['--import', REPORT, ...argv], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  return Number(stderr.trimEnd().split('\n').at(-1));
}

/** The median of some runs, after one that fills the compile cache. */
function measured(argv: readonly string[]): number {
  processorMs(argv);
  return median(Array.from({ length: ROUNDS }, () => processorMs(argv)));
}

export const commandsBenchmark: Benchmark = {
  name: 'commands',
  summary: `processor time of a command in a checkout, on a small log of a stopped instance, median of ${ROUNDS}, beside \`node -e 0\``,
  run: () =>
    withFolder(async (dir) => {
      const given = ['--data-dir', dir];
      spawnSync(process.execPath, [BINARY, 'log', 'import', LOG, ...given], { cwd: ROOT });
      const bare = measured(['-e', '0']);
      return COMMANDS.map(({ argv, target }): Result => {
        const ms = measured([BINARY, ...argv, ...given]);
        return {
          what: `holdfast ${argv.join(' ')}`,
          ours: `${ms.toFixed(0)} ms`,
          baseline: `${bare.toFixed(0)} ms node -e 0`,
          ratio: ms / bare,
          ...(target !== undefined && { target: `< ${target} ms`, met: ms < target }),
        };
      });
    }),
};
