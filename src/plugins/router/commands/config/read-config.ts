import { resolve } from 'node:path';
import type { NetworkConfig } from '../../../../core/contracts/router.ts';
import { decrypt, isEncrypted } from '../copy/age.ts';
import { parseConfig, readBytes } from './config-file.ts';
import { putSecretsBack } from './placeholders.ts';

/**
 * A config from a file: plain JSON, or encrypted with age and then decrypted in memory alone.
 *
 * @param active where placeholders lead
 * @throws HF_ROUTER_FILE, HF_ROUTER_CONTROL_FIELDS, HF_ROUTER_PLACEHOLDER
 */
export async function readConfigFile(
  name: string,
  flags: Readonly<Record<string, unknown>>,
  active: NetworkConfig,
): Promise<NetworkConfig> {
  const file = resolve(name);
  const content = readBytes(file, true);
  const text = isEncrypted(content) ? await decrypt(content, file, flags) : content.toString('utf8');
  return putSecretsBack(parseConfig(text, file), active);
}
