import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Scope } from './scope.ts';

const CHUNK = Buffer.alloc(64 * 1024);

/** A small file system in memory, in a namespace of its own, that a test fills. Gone with the test. */
export class SmallDisk {
  /** Where this process sees what is on it. */
  readonly path: string;
  /** What a command begins with that is to see it. */
  readonly inside: readonly string[];

  private constructor(pid: number, dir: string) {
    this.path = join(`/proc/${pid}/root`, dir);
    this.inside = ['nsenter', '--preserve-credentials', '-U', '-m', '-t', String(pid), '--'];
  }

  /** @param dir the folder in whose place it stands */
  static async mount(t: Scope, dir: string, megabytes: number): Promise<SmallDisk> {
    const mount = `mount -t tmpfs -o size=${megabytes}m small "$0" && echo mounted && exec sleep infinity`;
    const child = spawn('unshare', ['-Urm', 'sh', '-c', mount, dir], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.teardown(() => child.kill('SIGKILL'));
    const [line] = await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
    if (child.pid === undefined || !String(line).includes('mounted')) throw new Error('no small disk here');
    return new SmallDisk(child.pid, dir);
  }

  /** Leaves no room. */
  fill(): void {
    const file = openSync(join(this.path, 'filler'), 'a');
    try {
      for (;;) writeSync(file, CHUNK);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
    } finally {
      closeSync(file);
    }
  }

  free(): void {
    rmSync(join(this.path, 'filler'), { force: true });
  }
}
