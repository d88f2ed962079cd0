import { durationFlag } from '../../../core/host/duration.ts';
import type { CommandContext, CommandDefinition } from '../../../core/host/plugin/command.ts';
import { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { type DrillResult, drill, type Moment } from './drill.ts';
import { type Step, stepsOf } from './steps.ts';

const WAIT = {
  flags: '--wait <time>',
  summary: 'for both alerts to change state, and again to recover; from 10s to 25m',
  default: '10m',
} as const;

const clock = ({ at, afterMs, what }: Moment) =>
  `      ${at.slice(11, 19)}  +${`${Math.round(afterMs / 1_000)} s`.padEnd(6)} ${what}`;

const waitOf = (given: unknown, command: string) =>
  durationFlag('--wait', given, { least: '10s', most: '25m', command });

function drillOf(command: CommandContext, waitMs: number): Promise<DrillResult> {
  return drill(command, waitMs, (moment) => {
    if (!command.json) command.print(clock(moment));
  });
}

/** `holdfast drill ula`: whether it is noticed that the reconciler is gone. */
export const drillUla: CommandDefinition = {
  name: 'drill ula',
  summary:
    'Stop the reconciler until both its alerts change state, start it until both recover; prints the timeline',
  example: 'holdfast drill ula --wait 10m',
  flags: [WAIT],
  async run(_args, { wait }, command) {
    const result = await drillOf(command, waitOf(wait, 'drill ula'));
    if (command.json) command.print(JSON.stringify(result));
    else command.print(stepLine({ step: 'drill', state: result.ok ? 'ok' : 'fail', found: result.verdict }));
    return result.ok ? 0 : 1;
  },
};

/** `holdfast deploy ula --check`: what the reconciler's deployment consists of, in its order (R33). */
export const deployUla: CommandDefinition = {
  name: 'deploy ula',
  summary:
    "Check the reconciler's deployment in its order: secrets, monitor, push route, settings, then the drill",
  example: 'holdfast deploy ula --check',
  flags: [
    { flags: '--check', summary: 'verify what is there; nothing is deployed by this program' },
    { flags: '--skip-drill', summary: 'leave out the drill, which raises both alerts for real' },
    WAIT,
  ],
  async run(_args, { check, skipDrill, wait }, command) {
    if (check !== true) {
      const reason = 'give --check: your configuration management deploys, and this verifies';
      throw new HoldfastError('HF_CLI_USAGE', { reason, command: 'deploy ula' });
    }
    const waitMs = waitOf(wait, 'deploy ula');
    const made: Step[] = [];
    const tell = (step: Step) => {
      made.push(step);
      command.terminal.progress('');
      if (!command.json) command.print(stepLine(step));
    };
    let timeline: readonly Moment[] = [];
    for (const { step, run } of stepsOf(command)) {
      if (made.some(({ state }) => state === 'fail')) {
        tell({ step, state: 'skipped', found: 'what comes before it must be fixed first' });
        continue;
      }
      command.terminal.progress(`${step} …`);
      tell({ step, ...(await run()) });
    }
    if (made.some(({ state }) => state === 'fail') || skipDrill === true) {
      tell({
        step: 'drill',
        state: 'skipped',
        found: skipDrill === true ? 'as asked for' : 'it would prove nothing yet',
      });
    } else {
      const result = await drillOf(command, waitMs);
      timeline = result.timeline;
      const remedy =
        'Look with `holdfast alerts list` and `holdfast uptime list` at the one that did not follow.';
      tell({
        step: 'drill',
        state: result.ok ? 'ok' : 'fail',
        found: result.verdict,
        ...(!result.ok && { remedy }),
      });
    }
    const ok = made.every(({ state }) => state !== 'fail');
    if (command.json) command.print(JSON.stringify({ ok, steps: made, timeline }));
    return ok ? 0 : 1;
  },
};

function stepLine({ step, state, found, remedy }: Step): string {
  return `${state.padEnd(7)} ${step.padEnd(22)} ${found}${remedy === undefined ? '' : `\n        ${remedy}`}`;
}
