import type { CommandContext, CommandDefinition } from '../../core/host/plugin/command.ts';
import type { CheckContext, CheckDefinition } from '../../core/host/plugin/diagnosis.ts';
import { HoldfastError } from '../../core/kernel/errors/holdfast-error.ts';
import { FAILED, OK } from '../failure.ts';

/** `holdfast doctor`: looks at everything from outside and says what to fix (R30). */
export const doctor: CommandDefinition = {
  name: 'doctor [area]',
  summary: 'look at everything from outside and say what to do; exit 1 when something must be fixed',
  example: 'holdfast doctor router --json',
  async run([area], _flags, context) {
    const { examine, findingLines, hostChecks } = await import('../doctor/index.ts');
    const configuration = configurationCheck(context);
    const plugins = await checksOfPlugins(context);
    const all = [...hostChecks, configuration, ...(plugins ?? [])];
    let checks = area === undefined ? all : all.filter(({ name }) => areaOf(name) === area);
    // Whatever was asked for: without its configuration nobody knows what there is to look at.
    if (plugins === undefined && !checks.includes(configuration)) checks = [configuration, ...checks];
    if (checks.length === 0) {
      const areas = [...new Set(all.map(({ name }) => areaOf(name)))].join(', ');
      const reason = `There is nothing to look at under ${area}; there is ${areas}.`;
      throw new HoldfastError('HF_CLI_USAGE', { reason, command: 'doctor' });
    }
    const { json, print, terminal } = context;
    const findings = await examine(checks, await contextOf(context));
    const ok = findings.every(({ state }) => state !== 'fail');
    if (json) print(JSON.stringify({ ok, checks: findings }, null, 2));
    else for (const line of findingLines(findings, terminal)) print(line);
    return ok ? OK : FAILED;
  },
};

function areaOf(name: string): string {
  return name.split('.')[0] ?? name;
}

/** A configuration that cannot be loaded is a finding, too: the machine is looked at all the same. */
function configurationCheck({ registrations }: CommandContext): CheckDefinition {
  return {
    name: 'host.config',
    async run() {
      const { plugins } = await registrations();
      const names = plugins.map(({ name }) => name).join(', ');
      return { state: 'ok', lookedAt: 'plugins.config.ts', found: `it loads: ${names}` };
    },
  };
}

async function checksOfPlugins(context: CommandContext): Promise<readonly CheckDefinition[] | undefined> {
  try {
    return (await context.registrations()).checks;
  } catch {
    return undefined; // the check of the configuration says why
  }
}

async function contextOf({ dataDir, signal }: CommandContext): Promise<CheckContext> {
  const { lookAt } = await import('../instance/index.ts');
  const instance = await lookAt(dataDir, Date.now(), signal);
  const { running, surfaces, facts } = instance;
  const isKnown = running ? facts !== undefined : instance.reason === undefined;
  const transaction = isKnown ? instance.transaction : ('unknown' as const);
  const context = { dataDir, signal, ...(transaction && { transaction }) };
  if (!running || facts === undefined) return context;
  return { ...context, running: { surfaces: surfaces ?? {}, facts } };
}
