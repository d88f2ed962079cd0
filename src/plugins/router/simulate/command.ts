import { postControl } from '../../../core/host/operations/post-control.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { SIMULATE_PATH, SIMULATIONS } from './control.ts';

interface Simulated {
  readonly wan?: string;
  readonly ncid?: string;
  readonly prefix?: string;
  readonly reapplied?: readonly string[];
}

/** `holdfast router simulate`: what happens to a router without anybody writing its config (R39). */
export function registerSimulateCommand(context: PluginContext): void {
  context.command({
    name: 'router simulate <what>',
    summary: `Lets the running embedded router meet ${SIMULATIONS.join(', ')}`,
    example: 'holdfast router simulate pd-change --prefix 2001:db8:7::/56',
    flags: [
      { flags: '--wan <intf>', summary: 'the WAN; without it the one that legs delegate from' },
      {
        flags: '--prefix <cidr>',
        summary: 'the prefix of a pd-change; without it a random documentation prefix',
      },
    ],
    async run([what = ''], { wan, prefix }, { dataDir, json, print, signal }) {
      if (!SIMULATIONS.some((name) => name === what)) {
        const reason = `${what} is none of ${SIMULATIONS.join(', ')}.`;
        throw new HoldfastError('HF_CLI_USAGE', { reason, command: 'router simulate' });
      }
      const asked = {
        ...(typeof wan === 'string' && { wan }),
        ...(typeof prefix === 'string' && { prefix }),
      };
      const { status, body } = await postControl(dataDir, `${SIMULATE_PATH}/${what}`, asked, signal);
      if (status !== 200) throw refused(dataDir, status, body);
      if (json) return print(JSON.stringify(body));
      print(textOf(what, body as Simulated));
    },
  });
}

function textOf(what: string, { wan, ncid, prefix, reapplied = [] }: Simulated): string {
  if (what === 'apc')
    return 'the access-point controller took a change; router.apc_change_applied is published';
  if (what !== 'pd-change')
    return `${wan} went ${what === 'wan-down' ? 'down' : 'up'}; the two WAN channels are published`;
  return `${wan} was delegated ${prefix}; reapplied ${reapplied.join(', ') || 'nothing'}; ncid ${ncid} stands`;
}

/** What the instance refused, in its own words. */
function refused(dir: string, status: number, body: unknown): HoldfastError {
  const { code, what = '' } = (body ?? {}) as { code?: string; what?: string };
  const reason = /^Nothing is simulated: (.*)\.$/.exec(what)?.[1];
  if (code === 'HF_ROUTER_SIMULATION' && reason !== undefined) return new HoldfastError(code, { reason });
  return new HoldfastError('HF_CONTROL_UNREACHABLE', {
    dir,
    reason: `it answered ${status} ${code ?? ''}`.trim(),
  });
}
