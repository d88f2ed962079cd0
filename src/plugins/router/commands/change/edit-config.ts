import type { NetworkConfig } from '../../../../core/contracts/router.ts';
import type { CommandContext } from '../../../../core/host/plugin/command.ts';
import { isCoded } from '../../../../core/kernel/errors/holdfast-error.ts';
import { parseConfig } from '../config/config-file.ts';
import { hideSecrets, putSecretsBack } from '../config/placeholders.ts';
import { editText } from './editor.ts';

/**
 * Has the active config edited, secrets as placeholders. A slip of the pen opens the editor again with what was
 * written, until it is left without a change.
 *
 * @throws HF_ROUTER_FILE, HF_ROUTER_CONTROL_FIELDS, HF_ROUTER_PLACEHOLDER
 */
export async function editConfig(
  active: NetworkConfig,
  { note, signal }: Pick<CommandContext, 'note' | 'signal'>,
): Promise<NetworkConfig> {
  let text = `${JSON.stringify(hideSecrets(active), null, 2)}\n`;
  for (;;) {
    const edited = await editText(text, signal);
    try {
      return putSecretsBack(parseConfig(edited, 'the edited copy'), active);
    } catch (error) {
      if (!isCoded(error) || edited === text) throw error;
      note(`${error.what} The editor opens again; leave it without a change to give up.`);
      text = edited;
    }
  }
}
