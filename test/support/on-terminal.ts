import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { ExecutionContext } from 'ava';

/** A command on a pseudo-terminal of `script` (Debian: bsdutils). */
export interface OnTerminal {
  readonly script: ChildProcess;
  readonly screen: () => string;
  see(pattern: RegExp): Promise<RegExpMatchArray>;
  type(keys: string): void;
  /** The process of the command itself. */
  pid(): Promise<number>;
  readonly ended: Promise<number>;
}

export function onTerminal(
  t: ExecutionContext<any>,
  line: string,
  {
    cwd,
    env = {},
    size,
  }: {
    readonly cwd: string;
    readonly env?: Readonly<Record<string, string>>;
    /** Of the terminal; unknown to it unless given. */
    readonly size?: { readonly columns: number; readonly rows: number };
  },
): OnTerminal {
  const begin = size ? `stty cols ${size.columns} rows ${size.rows}; ` : '';
  const script = spawn('script', ['-qefc', `${begin}echo "pid=$$."; exec ${line}`, '/dev/null'], {
    cwd,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, TERM: 'dumb', NO_COLOR: '1', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let screen = '';
  script.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen += text;
  });
  script.stdin.on('error', () => {});
  const ended = once(script, 'close').then(([code, signal]) => (code as number | null) ?? (signal ? -1 : 0));
  const see = async (pattern: RegExp): Promise<RegExpMatchArray> => {
    for (;;) {
      const match = screen.match(pattern);
      if (match) return match;
      if (script.exitCode !== null) throw new Error(`it ended without ${pattern}:\n${screen}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  t.teardown(async () => {
    script.kill('SIGKILL');
    await ended;
  });
  return {
    script,
    screen: () => screen,
    see,
    type: (keys) => void script.stdin.write(keys),
    pid: async () => Number((await see(/pid=(\d+)\./))[1]),
    ended,
  };
}
