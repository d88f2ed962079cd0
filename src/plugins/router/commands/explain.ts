import type { CommandDefinition } from '../../../core/host/plugin/command.ts';
import { plainText } from '../../../core/host/terminal.ts';
import { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { readActive } from './get.ts';
import { type CommandSettings, clientOf, targetFlags } from './target.ts';

/** `holdfast router explain`: which chain accepts a packet, and why (R22). */
export function explainCommand(settings: CommandSettings): CommandDefinition {
  return {
    name: 'router explain',
    summary:
      'Walks FW_FORWARD, FW_ULA_LOCAL_ONLY and FW_ACCEPT_DEFAULT for a packet, and names a missing address set',
    example: 'holdfast router explain --from fd5e:21aa:90c4:20::9 --to fd5e:21aa:90c4:10::5',
    flags: [
      {
        flags: '--from <addr>',
        summary: 'source address; with %intf the leg it is behind, e.g. fd00::5%eth1.30',
      },
      { flags: '--to <addr>', summary: 'destination address; the same' },
      ...targetFlags,
    ],
    async run(_args, flags, context) {
      const { from, to } = flags;
      if (typeof from !== 'string' || typeof to !== 'string') {
        const reason = '--from and --to are both needed.';
        throw new HoldfastError('HF_CLI_USAGE', { reason, command: 'router explain' });
      }
      const [{ explainFlow, missingText }, { networksOf }, { filledSets, heldNow }] = await Promise.all([
        import('../policy/firewall.ts'),
        import('../policy/networks.ts'),
        import('./live.ts'),
      ]);
      const { config, from: source } = await readActive(flags, context, settings);
      const held = await heldNow(clientOf(flags, context, settings), config, context.signal);
      const filled = await filledSets(context, config, held, flags.url === undefined);
      const answer = explainFlow(networksOf(config, held), filled.sets, from, to);
      const { json, print, note, terminal } = context;
      if (json) return print(JSON.stringify({ from, to, ...answer }));
      for (const { chain, why } of answer.steps)
        print(`${terminal.paint('bold', chain.padEnd(17))}  ${plainText(why)}`);
      print(`${terminal.paint('bold', 'accepted by')}: ${plainText(answer.accepts)}`);
      for (const missing of answer.missing) print(`missing: ${plainText(missingText(missing))}`);
      note(`read from ${source}; the address sets ${filled.from}`);
    },
  };
}
