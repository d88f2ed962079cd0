import { resolve } from 'node:path';
import { durationFlag } from '../../core/host/duration.ts';
import { HostError } from '../../core/host/errors/host-error.ts';
import type { CommandContext, CommandDefinition } from '../../core/host/plugin/command.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import type { AlertPlaces } from './alert-reading.ts';
import { type DrillResult, drill, type Moment } from './drill.ts';
import { type Step, stepsOf } from './rollout-steps.ts';

const FLAGS = [
  {
    flags: '--wait <time>',
    summary: 'for both alerts to change state, and again to recover; from 10s to 25m',
    default: '10m',
  },
  {
    flags: '--alerts <place>',
    summary:
      'data folder or health page (http://host:7800) of the instance that evaluates the rule; this one unless given',
  },
  { flags: '--alerts-token-file <path>', summary: 'file of mode 0600 with the bearer token of that page' },
  { flags: '--insecure', summary: 'that token may go to another machine over http' },
  { flags: '--status-url <url>', summary: "base of the monitor's status pages, where pushes go elsewhere" },
  {
    flags: '--unit <name>',
    summary: 'unit of systemd that the drill stops; the one that runs it unless given',
  },
] as const;

type Flags = Readonly<Record<string, unknown>>;
const textOf = (flag: unknown) => (typeof flag === 'string' && flag !== '' ? flag : undefined);

function placesOf(flags: Flags, { dataDir }: CommandContext): AlertPlaces {
  const alerts = textOf(flags.alerts) ?? dataDir;
  const tokenFile = textOf(flags.alertsTokenFile);
  return {
    alerts: /^https?:/.test(alerts) ? alerts : resolve(alerts),
    tokenFile: tokenFile === undefined ? undefined : resolve(tokenFile),
    insecure: flags.insecure === true,
    statusUrl: textOf(flags.statusUrl),
  };
}

const waitOf = (given: unknown, command: string) =>
  durationFlag('--wait', given, { least: '10s', most: '25m', command });

const clock = ({ at, afterMs, what }: Moment) =>
  `      ${at.slice(11, 19)}  +${`${Math.round(afterMs / 1_000)} s`.padEnd(6)} ${what}`;

function drillOf(command: CommandContext, flags: Flags, waitMs: number): Promise<DrillResult> {
  const settings = { places: placesOf(flags, command), unit: textOf(flags.unit), waitMs };
  return drill(command, settings, (moment) => {
    if (!command.json) command.print(clock(moment));
  });
}

/** `holdfast drill ula`: checks that both alerts notice a stopped reconciler. */
export const drillUla: CommandDefinition = {
  name: 'drill ula',
  summary:
    'Stops the reconciler until both its alerts change state, and starts it again; exit 1 not both did, 3 not begun',
  example: 'holdfast drill ula --wait 10m',
  flags: [...FLAGS],
  async run(_args, flags, command) {
    const result = await drillOf(command, flags, waitOf(flags.wait, 'drill ula'));
    if (command.json) command.print(JSON.stringify(result));
    else command.print(stepLine({ step: 'drill', state: result.state, found: result.verdict }));
    return exitOf([result]);
  },
};

/** `holdfast deploy ula --check`: verifies the steps of the reconciler's deployment in their order (R33). */
export const deployUla: CommandDefinition = {
  name: 'deploy ula',
  summary:
    "Checks the reconciler's deployment in its order, then drills it; exit 1 a step failed, 3 one could not be looked at",
  example: 'holdfast deploy ula --check',
  flags: [
    { flags: '--check', summary: 'verify the present deployment; this program deploys nothing' },
    { flags: '--skip-drill', summary: 'leave out the drill, which raises both alerts for real' },
    ...FLAGS,
  ],
  async run(_args, flags, command) {
    if (flags.check !== true) {
      const reason = 'give --check: your configuration management deploys, and this verifies';
      throw new HostError('HF_CLI_USAGE', { reason, command: 'deploy ula' });
    }
    const waitMs = waitOf(flags.wait, 'deploy ula');
    const done: Step[] = [];
    const report = (step: Step) => {
      done.push(step);
      command.terminal.progress('');
      if (!command.json) command.print(stepLine(step));
    };
    for (const { step, run } of stepsOf(command, placesOf(flags, command), waitMs)) {
      command.terminal.progress(`${step} …`);
      report({ step, ...(await run()) });
    }
    const { timeline, ...last } = await drillStep(command, flags, waitMs, done);
    report(last);
    const code = exitOf(done);
    if (command.json) command.print(JSON.stringify({ ok: code === 0, steps: done, timeline }));
    return code;
  },
};

/** A deployment that could not be looked at is not verified, and did not fail either. */
function exitOf(steps: readonly { readonly state: Step['state'] }[]): 0 | 1 | 3 {
  const has = (wanted: Step['state']) => steps.some(({ state }) => state === wanted);
  if (has('fail')) return 1;
  return has('unknown') ? 3 : 0;
}

/** The drill as the last step. After a failed step it could only show that failure again, so it is not tried. */
async function drillStep(
  command: CommandContext,
  flags: Flags,
  waitMs: number,
  done: readonly Step[],
): Promise<Step & { readonly timeline: readonly Moment[] }> {
  const step = 'drill';
  if (flags.skipDrill === true) return { step, state: 'skipped', found: 'as requested', timeline: [] };
  const failed = done.find(({ state }) => state === 'fail');
  if (failed) {
    const found = `not tried: the step ${failed.step} failed`;
    return { step, state: 'unknown', found, remedy: 'Fix that step, and check again.', timeline: [] };
  }
  const remedy = 'See `holdfast alerts list` and `holdfast uptime list` for the alert that did not change.';
  try {
    const { state, verdict, timeline } = await drillOf(command, flags, waitMs);
    return { step, state, found: verdict, timeline, ...(state !== 'ok' && { remedy }) };
  } catch (error) {
    if (!isCoded(error) || command.signal.aborted) throw error;
    const state = isCoded(error, 'HF_CONTROL_UNREACHABLE') ? 'unknown' : 'fail';
    return { step, state, found: error.what, remedy: error.remedy, timeline: [] };
  }
}

function stepLine({ step, state, found, remedy }: Step): string {
  return `${state.padEnd(7)} ${step.padEnd(22)} ${found}${remedy === undefined ? '' : `\n        ${remedy}`}`;
}
