import { existsSync } from 'node:fs';

/**
 * A program with a guard beside it, which ends the program's whole session when its parent dies, also by `kill -9`.
 *
 * A group is not enough: `timeout`, which many checks begin with, makes a group of its own. The guard therefore finds the
 * processes of the session in /proc; where there is no /proc, it ends the group. A process that made a session of its own
 * (`setsid`) escapes. The shell reads nothing but this script: it starts the program with its arguments as they are.
 */
const SCRIPT = `
(
  trap '' HUP INT TERM
  read -r self _ </proc/self/stat
  end() {
    for file in /proc/[0-9]*/stat; do
      read -r line <"$file" || continue
      pid=\${file#/proc/}
      pid=\${pid%/stat}
      set -- "$1" \${line##*) }
      [ "$5" = "$$" ] && [ "$pid" != "$self" ] && kill -s "$1" "$pid"
    done
  }
  while read -r _ <&3; do
    end TERM
    kill -s TERM 0
  done
  end KILL
  end KILL
  kill -s KILL 0
) </dev/null >/dev/null 2>&1 &
exec "$@" 3<&-
`;

const SHELL = '/bin/sh';
/** An image may have no shell: then nothing but the end of its machine or container ends what a killed parent leaves. */
export const hasGuard: boolean = existsSync(SHELL);

/** Makes the guard's pipe of standard input, of which the program gets nothing. */
const STDIN_IS_PIPE = 'exec 3<&0 </dev/null';

/**
 * The program and arguments that run another one under guard, with the same process id. To be spawned detached, with a pipe
 * for the guard, which the program itself does not get: a line on it sends SIGTERM to the session, and its end SIGKILL.
 *
 * @param program a path, or found in the PATH of its environment; without a shell's meaning, like its arguments
 * @param pipe which descriptor is the guard's pipe: standard input, or the fourth
 */
export function guarded(
  program: string,
  args: readonly string[],
  pipe: 'stdin' | 'fourth' = 'stdin',
): readonly [program: string, args: readonly string[]] {
  const script = pipe === 'stdin' ? STDIN_IS_PIPE + SCRIPT : SCRIPT;
  return [SHELL, ['-c', script, 'sh', program, ...args]];
}
