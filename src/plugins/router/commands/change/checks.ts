import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { guarded } from '../../../../core/host/process-guard.ts';

/** The result of one `--check`. */
export interface CheckResult {
  readonly command: string;
  readonly outcome: 'passed' | 'failed' | 'cut off';
  /** Exit code, or the name of the signal that ended it. */
  readonly exit: number | string;
  readonly ms: number;
}

/** From SIGTERM to SIGKILL. */
const GRACE_MS = 500;

/**
 * Runs one check as the operator wrote it, by `sh -c`. It gets a session of its own, so that Ctrl-C reaches only us
 * and what it started can be ended with it. A guard in that session ends all of it when this process dies, also by
 * `kill -9`; and what the check leaves running when it is over is ended, too.
 *
 * @param cutOff ends it, and everything it started
 * @param show gets each line of its output
 */
export async function runCheck(
  command: string,
  env: Readonly<Record<string, string>>,
  cutOff: AbortSignal,
  show: (line: string) => void,
): Promise<CheckResult> {
  const began = performance.now();
  const result = (outcome: CheckResult['outcome'], exit: number | string): CheckResult => {
    return { command, outcome, exit, ms: Math.round(performance.now() - began) };
  };
  if (cutOff.aborted) return result('cut off', 'not started');
  const [shell, args] = guarded('sh', ['-c', command]);
  const child = spawn(shell, args, {
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  });
  child.stdin.on('error', () => {}); // the guard is gone with the session
  for (const input of [child.stdout, child.stderr]) createInterface({ input }).on('line', show);
  let force: NodeJS.Timeout | undefined;
  const end = () => {
    child.stdin.write('\n');
    force = setTimeout(() => {
      child.stdin.end();
      // A process that made a session of its own may keep the pipes open for ever.
      child.stdout.destroy();
      child.stderr.destroy();
    }, GRACE_MS);
  };
  cutOff.addEventListener('abort', end, { once: true });
  child.once('exit', () => child.stdin.end());
  try {
    const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
    if (cutOff.aborted) return result('cut off', code ?? signal ?? 'ended');
    return result(code === 0 ? 'passed' : 'failed', code ?? signal ?? 'ended');
  } catch (error) {
    return result('failed', error instanceof Error ? error.message : String(error));
  } finally {
    clearTimeout(force);
    cutOff.removeEventListener('abort', end);
  }
}
