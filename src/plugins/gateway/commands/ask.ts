import { type CommandContext, postControl } from '../../../core/cli/index.ts';
import { HoldfastError } from '../../../core/errors/index.ts';
import { isObject, type JsonObject } from '../../../core/json.ts';

type Refusal = 'HF_GATEWAY_RELOAD' | 'HF_GATEWAY_ROLLBACK' | 'HF_CONTROL_UNREACHABLE';

/**
 * Asks the instance that runs on the data folder.
 *
 * @param refusal the code of an answer that says no
 * @throws HF_CONTROL_UNREACHABLE none runs, or it runs no gateway
 */
export async function askInstance(
  { dataDir, signal }: CommandContext,
  path: string,
  body: object = {},
  refusal: Refusal = 'HF_CONTROL_UNREACHABLE',
): Promise<JsonObject> {
  const { status, body: answer } = await postControl(dataDir, path, body, signal);
  if (status === 200 && isObject(answer)) return answer as JsonObject;
  if (status === 404) throw unreachable(dataDir, 'it runs no gateway');
  const said = isObject(answer) ? (answer.reason ?? answer.what) : undefined;
  const reason = typeof said === 'string' ? said.replace(/\.$/, '') : `it answered ${status}`;
  throw new HoldfastError(refusal, { dir: dataDir, reason });
}

function unreachable(dir: string, reason: string): HoldfastError {
  return new HoldfastError('HF_CONTROL_UNREACHABLE', { dir, reason });
}
