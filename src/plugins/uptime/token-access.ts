import type { TokenAccess } from '../../core/contracts/uptime.ts';
import { parseSecretReference } from '../../core/host/secrets/secret-reference.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { readPushToken, STORE_MS, type TokenPlaces, tokenPlace } from './tokens.ts';

/** The rights that let a policy's holder read a path. */
const READING = ['read', 'root'];

/**
 * Whether the token of a monitor can be read here, and whether the policy of the secrets store lets it be fetched (R33). With
 * `storedAs` the file of an agent must also have the token that the store has.
 *
 * @returns nothing secret; `unknown` where there is no store, or no policy that can be read
 */
export async function tokenAccess(monitor: string, places: TokenPlaces): Promise<TokenAccess> {
  let fault: string | undefined;
  const token = await readPushToken(monitor, places).catch((error: unknown) => {
    if (!isCoded(error, 'HF_UPTIME_TOKEN')) throw error;
    fault = error.what.replace(/\.$/, '');
    return undefined;
  });
  const place = tokenPlace(monitor, places);
  return { place, ...(fault !== undefined && { fault }), policy: await policyOf(monitor, token, places) };
}

async function policyOf(
  monitor: string,
  token: string | undefined,
  { monitors, store }: TokenPlaces,
): Promise<TokenAccess['policy']> {
  const { secret, storedAs } = monitors[monitor] ?? {};
  const reference = secret ?? storedAs;
  const unknown = (found: string) => ({ state: 'unknown', found }) as const;
  if (reference === undefined)
    return unknown('the option `storedAs` does not say where a secrets store has the token');
  if (!store) return unknown('no plugin provides a secrets store');
  const { path, property } = parseSecretReference(reference);
  try {
    const signal = AbortSignal.timeout(STORE_MS);
    const rights = await store.rights?.(path, signal);
    if (rights && !rights.some((right) => READING.includes(right)))
      return { state: 'fail', found: `the policy allows ${rights.join(', ')} on ${path}, and not read` };
    const stored = (await store.read(path, property, signal)).trim();
    if (token !== undefined && stored !== token)
      return {
        state: 'fail',
        found: `the file has another token than the store: the agent did not write it`,
      };
    if (!rights) return unknown('the store has no policies that could be read');
    return { state: 'ok', found: `the policy allows ${rights.join(', ')} on ${path}` };
  } catch (error) {
    if (isCoded(error, 'HF_SECRETS_UNREACHABLE')) return unknown(error.what);
    if (isCoded(error)) return { state: 'fail', found: error.what };
    throw error;
  }
}
