/**
 * A shell command with a guard beside it, which ends the command's whole session when its parent dies, also by `kill -9`.
 *
 * A group is not enough: `timeout`, which many checks begin with, makes a group of its own. The guard therefore finds the
 * processes of the session in /proc; where there is no /proc, it ends the group. A process that made a session of its own
 * (`setsid`) escapes.
 */
const SCRIPT = `
exec 3<&0 </dev/null
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
) >/dev/null 2>&1 &
exec sh -c "$1" 3<&-
`;

/**
 * The program and arguments that run a command by `sh -c` under guard. To be spawned detached, with a pipe as standard
 * input, which the command itself does not get: a line on it sends SIGTERM to the session, and its end SIGKILL.
 */
export function guarded(command: string): readonly [program: string, args: readonly string[]] {
  return ['sh', ['-c', SCRIPT, 'sh', command]];
}
