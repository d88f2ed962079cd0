/** The header by which a writer says under which lease it writes (docs/cluster.md, "Who checks a fencing token"). */
import type { WriteFence } from '../../core/contracts/router.ts';
import type { Fence } from '../../machines/router/config-shapes.ts';
import { RouterError } from './errors.ts';

const HEADER = 'holdfast-fencing-token';
/** `<singleton> <incarnation of the ledger>:<number>`. */
const VALUE = /^([\w.-]{1,64}) ([\w-]{1,64}):(\d{1,15})$/;

/** The headers of a write; none of one that no lease is needed for. */
export function fenceHeaders(fence: WriteFence | undefined): Readonly<Record<string, string>> {
  return fence ? { [HEADER]: `${fence.singleton} ${fence.token}` } : {};
}

/**
 * The fence of a write, from its headers.
 *
 * @returns undefined where the writer names none
 * @throws HF_ROUTER_REQUEST_INVALID it is not understood: the write may be an old one
 */
export function fenceFrom(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Fence | undefined {
  const text = headers[HEADER];
  if (text === undefined) return undefined;
  const [, singleton, , number] = VALUE.exec(String(text)) ?? [];
  if (singleton === undefined)
    throw new RouterError('HF_ROUTER_REQUEST_INVALID', {
      reason: `the header ${HEADER} must be a name, a space, and a token <text>:<number>`,
    });
  return { singleton, number: Number(number) };
}
