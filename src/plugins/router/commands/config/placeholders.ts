import type { NetworkConfig } from '../../../../core/contracts/router.ts';
import { REDACTED } from '../../../../core/host/logging/mask-text.ts';
import { HoldfastError } from '../../../../core/kernel/errors/holdfast-error.ts';
import { dotted, leavesOf, mapLeaves, pointer } from './leaves.ts';

/** What stands in an editor copy for the secret at a path of the active config (R35). */
const PLACEHOLDER = /^\{\{secret (\/.*)\}\}$/s;

/**
 * A copy for an editor: each secret is named by its path instead of shown. The name works anywhere in the copy, so a
 * part can be moved or doubled together with its secrets.
 */
export function hideSecrets(config: NetworkConfig): NetworkConfig {
  return mapLeaves(config, ({ path, value, secret }) =>
    // A text that only looks like a placeholder is hidden too, or it would come back as something else.
    secret || (typeof value === 'string' && PLACEHOLDER.test(value)) ? `{{secret ${pointer(path)}}}` : value,
  ) as NetworkConfig;
}

/**
 * Puts secrets back in the place of their placeholders.
 *
 * @param active where the placeholders' paths lead
 * @throws HF_ROUTER_PLACEHOLDER a placeholder names nothing, or a value was redacted and cannot be put back
 */
export function putSecretsBack(copy: NetworkConfig, active: NetworkConfig): NetworkConfig {
  const known = new Map(leavesOf(active).map(({ path, value }) => [pointer(path), value]));
  return mapLeaves(copy, ({ path, value }) => {
    if (typeof value !== 'string') return value;
    const [, named] = PLACEHOLDER.exec(value) ?? [];
    if (named !== undefined) {
      if (known.has(named)) return known.get(named);
      refuse(path, 'the placeholder there names nothing in the active config');
    }
    if (value.includes(REDACTED)) refuse(path, `${REDACTED} stands there instead of a value`);
    return value;
  }) as NetworkConfig;
}

function refuse(path: readonly string[], reason: string): never {
  throw new HoldfastError('HF_ROUTER_PLACEHOLDER', { path: dotted(path), reason });
}
