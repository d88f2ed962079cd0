/** How the drill stops and starts the reconciler: as a unit of systemd, or by a pause within its process. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { askInstance, operatorName } from '../../core/host/operations/control-client.ts';
import type { CommandContext } from '../../core/host/plugin/command.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { ReconcilerError } from './errors.ts';
import { NO_RECONCILER, UNIT_PATH, type UnitView } from './unit.ts';

/** How long a call of systemctl, or of the instance, may take when the command itself is interrupted, milliseconds. */
const CALL_MS = 60_000;

export interface UnitSwitch {
  /** Whether its process ends, and with it what runs in the same process. */
  readonly endsProcess: boolean;
  /** Stops it; it starts again by itself after `forMs`. @returns what was done, for a person */
  stop(forMs: number): Promise<string>;
  start(): Promise<void>;
  isStopped(): Promise<boolean>;
}

/** @throws HF_CONTROL_UNREACHABLE */
export function askUnit(command: Pick<CommandContext, 'dataDir' | 'signal'>): Promise<UnitView> {
  return askInstance<UnitView>(command, UNIT_PATH, {}, NO_RECONCILER);
}

/** The embedded variant: a pause of the running instance, which ends by itself. */
export function pauseSwitch(command: CommandContext): UnitSwitch {
  const { dataDir } = command;
  const call = (verb: string, body: object) => {
    const signal = AbortSignal.timeout(CALL_MS);
    const path = `${UNIT_PATH}/${verb}`;
    return askInstance<UnitView>({ dataDir, signal }, path, { by: operatorName(), ...body }, NO_RECONCILER);
  };
  return {
    endsProcess: false,
    stop: async (forMs) => `paused, until ${(await call('pause', { forMs })).until} at the latest`,
    async start() {
      await call('resume', {});
    },
    isStopped: async () => (await askUnit(command)).state === 'paused',
  };
}

/**
 * A unit of systemd. Before it is stopped, a timer of systemd is set that starts it, for the case that this command is killed.
 *
 * @param unit e.g. `ula-reconcile.service`
 */
export function systemdSwitch(command: CommandContext, unit: string): UnitSwitch {
  const guard = `holdfast-drill-${process.pid}`;
  return {
    endsProcess: true,
    async stop(forMs) {
      const seconds = Math.ceil(forMs / 1_000);
      const until = new Date(Date.now() + seconds * 1_000).toISOString();
      await run(
        'systemd-run',
        '--quiet',
        `--unit=${guard}`,
        `--on-active=${seconds}s`,
        'systemctl',
        'start',
        unit,
      );
      try {
        await run('systemctl', 'stop', unit);
      } catch (error) {
        await run('systemctl', 'stop', `${guard}.timer`);
        throw error;
      }
      return `${unit} stopped, until ${until} at the latest`;
    },
    async start() {
      await run('systemctl', 'start', unit);
      await run('systemctl', 'stop', `${guard}.timer`);
    },
    async isStopped() {
      try {
        await askUnit(command);
        return false;
      } catch (error) {
        if (isCoded(error, 'HF_CONTROL_UNREACHABLE')) return true;
        throw error;
      }
    },
  };
}

/** @throws HF_RECONCILER_UNIT the program is not there, or failed */
async function run(program: string, ...args: string[]): Promise<void> {
  try {
    await promisify(execFile)(program, args, { timeout: CALL_MS });
  } catch (error) {
    const { code, stderr = '' } = error as NodeJS.ErrnoException & { stderr?: string };
    const reason = stderr.trim() || `it ended with ${code}`;
    throw new ReconcilerError(
      'HF_RECONCILER_UNIT',
      { command: [program, ...args].join(' '), reason },
      { cause: error },
    );
  }
}
